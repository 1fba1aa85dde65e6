"""Everything that can be wrong with what a user hands in: one family of exceptions.

Each message says what is wrong, where (column, option, file), and what to do about it.
The command line shows it in one line and exits with code 2.
"""


class CausalFormerError(Exception):
    """Base of every error that a user can cause and mend."""


class DataError(CausalFormerError, ValueError):
    """The series cannot be used as they are."""


class SettingsError(CausalFormerError, ValueError):
    """An option or a combination of options is not valid."""


class FileFormatError(CausalFormerError, ValueError):
    """A file is not what it should be: foreign, damaged, or of another version."""


class DamagedFileError(FileFormatError):
    """A file is not as it was written."""


class OutputError(CausalFormerError, OSError):
    """Results cannot be written where they should go."""


class ClusterError(CausalFormerError, RuntimeError):
    """A cluster has given the work up."""


class MissingExtraError(CausalFormerError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""


class DataWarning(UserWarning):
    """The series can be used, but the result deserves care."""
