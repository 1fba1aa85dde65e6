"""Names of series: which ones are allowed, and how messages show them."""

import re
from collections.abc import Iterable, Sequence

from causalformer.errors import DataError

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def check_names(names: Sequence[str], source: str) -> None:
    """Raise `DataError` unless all names are text, fit into UTF-8 and differ.

    Parameters
    ----------
    names : sequence of str
        One name per series.
    source : str
        Where they come from; the message begins with it.

    Examples
    --------
    >>> check_names(("a", "b", "a"), "x.csv")
    Traceback (most recent call last):
    ...
    causalformer.errors.DataError: x.csv: names given more than once: 'a' (columns 1, 3);
    rename them, or pass other `names`
    """
    if isinstance(names, str):
        raise DataError(f"{source}: `names` is the single text {names!r}; give one name per series")
    places: dict[str, list[str]] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise DataError(f"{source}: names must be text, not {name!r}")
        if not is_utf8(name):
            raise DataError(f"{source}: name {name!a} cannot be written as UTF-8; rename it")
        places.setdefault(name, []).append(str(i + 1))
    repeated = {name: columns for name, columns in places.items() if len(columns) > 1}
    if repeated:
        found = (f"{name!r} (columns {listed(columns)})" for name, columns in repeated.items())
        raise DataError(
            f"{source}: names given more than once: {listed(found)}; "
            "rename them, or pass other `names`"
        )


def is_utf8(text: str) -> bool:
    r"""Tell whether `text` can be written: half a surrogate pair, from broken decoding, cannot.

    Examples
    --------
    >>> is_utf8("é"), is_utf8("\ud800")
    (True, False)
    """
    return not any("\ud800" <= character <= "\udfff" for character in text)


def listed(items: Iterable[str], most: int = 5) -> str:
    """Join `items` by commas, naming at most `most` of them.

    Examples
    --------
    >>> listed("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    every = list(items)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def printable_name(name: str) -> str:
    r"""Return ``name`` on one line, control characters as visible escapes such as ``\x1b``.

    For terminals and pictures; files keep the names as they are.

    Examples
    --------
    >>> print(printable_name("flow\nnorth"))
    flow\x0anorth
    """
    return _CONTROL.sub(visible, name)


def visible(match: re.Match[str]) -> str:
    r"""Return the escape ``\xNN`` or ``\uNNNN`` of a matched character.

    Examples
    --------
    >>> re.sub("\t", visible, "a\tb")
    'a\\x09b'
    """
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Ask whether something similar was meant; nothing if there is nothing similar.

    Examples
    --------
    >>> did_you_mean("rian", ["rain", "river"])
    " did you mean 'rain'?"
    """
    from difflib import get_close_matches

    close = get_close_matches(word[:80], list(known), n=1) if isinstance(word, str) else ()
    return f" did you mean {close[0]!r}?" if close else ""
