"""Text files read with plain errors, and files written whole: a crash leaves the old or the new."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from causalformer.errors import FileFormatError, OutputError


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
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("there is a folder of that name")
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name[:40]}.", suffix=path.suffix, dir=path.parent
        )
        os.close(handle)
        temporary = Path(name)
        temporary.chmod(0o644)
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write {path}: {reason}; choose another place") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return path


def write_text(path: str | Path, text: str) -> Path:
    """Write ``text`` as UTF-8, atomically."""
    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8", newline="\n"))


def read_text(path: str | Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark; line ends stay as they are.

    Raises
    ------
    FileFormatError
        If the file cannot be read or is no such text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot read the file: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8") from error
