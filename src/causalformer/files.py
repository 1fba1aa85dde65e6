"""Text files read with plain errors, and files written whole: a crash leaves the old or the new."""

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from causalformer.errors import FileFormatError, OutputError

UNFINISHED = ".unfinished-"
"""Part of the name of everything that is not written to its end yet."""


def write_atomically(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    Parameters
    ----------
    path : str or Path
        Where the file shall stand; missing parent folders are made.
    write : callable
        Receives the temporary path and writes the whole content there.

    Returns
    -------
    Path
        The final path.

    Raises
    ------
    OutputError
        If the folder cannot be made or written; an older file at ``path`` is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "a.txt", lambda p: p.write_text("whole")).read_text()
    'whole'
    """
    path = Path(path)
    try:
        temporary = _new_file_beside(path)
        try:
            write(temporary)
            _flush(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write {path}: {reason}; choose another place") from error
    return path


def _new_file_beside(path: Path) -> Path:
    """Make an empty file with the permissions that the user gives to new files."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("there is a folder of that name")
        name = f".{path.name[:40]}{UNFINISHED}{secrets.token_hex(4)}{path.suffix}"
        temporary = path.with_name(name)
        temporary.touch(exist_ok=False)
    except ValueError as error:  # a NUL or half of a surrogate pair in the name
        raise OSError(str(error)) from error
    return temporary


def _flush(path: Path) -> None:
    """Bring the content to the disk, so that no power cut leaves a file of the right name only."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process left half written in a folder, as far as possible.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / ".a.txt.unfinished-1234.txt").touch()
    >>> remove_unfinished(folder)
    >>> list(folder.iterdir())
    []
    """
    for leftover in folder.glob(f"*{UNFINISHED}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def write_text(path: str | Path, text: str) -> Path:
    """Write ``text`` as UTF-8, atomically; what a file name brought in that is none, escaped."""
    content = text.encode("utf-8", errors="backslashreplace")
    return write_atomically(path, lambda p: p.write_bytes(content))


def read_text(path: str | Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark; line ends stay as they are.

    Raises
    ------
    FileFormatError
        If the file cannot be read or is no such text.
    """
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot read the file: {reason}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8") from error


def home_expanded(path: str | os.PathLike[str]) -> Path:
    """Replace a leading ``~`` by the home folder; a name that only looks like it stays.

    Examples
    --------
    >>> home_expanded("~nobody-of-that-name.csv").name
    '~nobody-of-that-name.csv'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user
        return Path(path)
