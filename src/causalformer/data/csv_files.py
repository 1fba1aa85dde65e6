"""Text files of numbers: separator, header and decimal mark are found out, then pyarrow reads."""

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from causalformer.data.columns import MISSING_MARKS, RawColumns
from causalformer.data.series import AnyArray
from causalformer.errors import DataError, DataWarning
from causalformer.names import listed

SEPARATORS = ("\t", ";", ",", " ")  # a tie goes to the first; " " is any run of spaces and tabs
N_SAMPLE_LINES = 30
MOST_COLUMNS = 100_000

_INK = re.compile(rb"\S")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?([T ].*)?|\d+:\d\d(:\d\d.*)?"
    r"|(?=.*\d).*\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*",
    re.IGNORECASE,
)
_OTHER_VALUES = frozenset({"true", "false", *(mark.lower() for mark in MISSING_MARKS)})


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out, as seen in its first lines."""

    separator: str
    decimal: str
    records: tuple[tuple[str, ...], ...]
    body_starts: int  # byte behind the first record


def read_text_columns(path: Path, *, header: bool | None = None) -> RawColumns:
    r"""Read a CSV, TSV or whitespace-separated file into raw columns.

    Parameters
    ----------
    path : Path
        The file: UTF-8 with or without a byte order mark, or UTF-16 with one; anything else is
        read as Latin-1.
    header : bool, optional
        Whether the first line holds names; found out if None, see `read_series`.

    Returns
    -------
    RawColumns
        Numbers as float64 with empty cells as NaN; columns that hold anything else as text.

    Raises
    ------
    DataError
        Empty or binary file, a header without rows, or lines that differ in their fields.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("sun;rain\n1,5;2\n")
    >>> read_text_columns(path).cells
    (array([1.5]), array([2.]))
    """
    content = _text_bytes(path)
    layout = _sniff(content, path)
    if layout.separator == " ":
        content = _single_spaces(content)
    names, with_header = _header_names(layout, header, path)
    if with_header is not False and not _INK.search(content, layout.body_starts):
        if with_header:
            raise DataError(f"{path} holds a header but no rows; give one row per time slot")
        with_header = False
    cells = _read_body(content, layout, path, skip_first=with_header is not False)
    if with_header is None and not _has_fraction(cells):
        with_header = False
        _warn_of_kept_numbers(layout, path)
        cells = _read_body(content, layout, path, skip_first=False)
    if len(cells) > 1 and not names[-1] and _is_blank(cells[-1]):
        names, cells = names[:-1], cells[:-1]  # every line ends with a separator
    if with_header is False:
        names = tuple(f"x{i}" for i in range(len(cells)))
    return RawColumns(names, cells, str(path))


def _text_bytes(path: Path) -> bytes:
    """Return the content as UTF-8 with plain line ends."""
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", errors="replace").encode()
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        raise DataError(f"{path} is not a text file; save the table as CSV in UTF-8")
    if not content.isascii():
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            content = content.decode("latin-1").encode()
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    content = content.rstrip(b"\n ")
    if not _INK.search(content):
        raise DataError(f"{path} is empty; give one row per time slot, one column per series")
    return content


def _single_spaces(content: bytes) -> bytes:
    return b"\n".join(b" ".join(line.split()) for line in content.split(b"\n"))


# --- Layout ---------------------------------------------------------------------------------------


def _sniff(content: bytes, path: Path) -> Layout:
    """Choose the separator that gives the most lines of equal width and the most numbers."""
    sample = _first_lines(content)
    separator, best = ",", 0.0
    for candidate in SEPARATORS:
        try:
            score = _score([record for _, record in _records(sample, candidate, path)], candidate)
        except DataError:  # another separator may fare better
            continue
        if score > best + 1e-9:
            separator, best = candidate, score
    numbered = list(_records(sample, separator, path))
    if separator == " ":
        sample = _single_spaces(sample.encode()).decode()
    head = "\n".join(sample.split("\n")[: numbered[0][0]])
    records = tuple(tuple(record) for _, record in numbered)
    cells = [cell for record in records[1:] or records for cell in record]
    commas = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    points = any("." in cell and _NUMBER.fullmatch(cell) for cell in cells)
    decimal = "," if commas and not points else "."
    return Layout(separator, decimal, records, len(head.encode()) + 1)


def _first_lines(content: bytes) -> str:
    first = _INK.search(content)
    end = first.start() if first else 0
    for _ in range(N_SAMPLE_LINES):
        end = content.find(b"\n", end) + 1
        if end == 0:
            return content.decode("utf-8")
    return content[:end].decode("utf-8")


def _records(text: str, separator: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every record that is not blank with the number of its last line."""
    if separator == " ":
        text = _single_spaces(text.encode()).decode()
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        for record in reader:
            if len(record) > MOST_COLUMNS:
                raise DataError(
                    f"{path}, line {reader.line_num}: more than {MOST_COLUMNS} columns; "
                    "give one column per series, one line per time slot"
                )
            if record:
                yield reader.line_num, [cell.strip() for cell in record]
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: {error}; look for a quotation mark without its twin"
        ) from error


def _score(records: Sequence[Sequence[str]], separator: str) -> float:
    body = records[1:] or records
    width, n_alike = Counter(len(record) for record in body).most_common(1)[0]
    if width < 2:
        return 0.0
    alike = (n_alike + (len(records[0]) == width)) / (len(body) + 1)
    cells = [cell for record in body if len(record) == width for cell in record]
    n_values = sum(_is_value(cell, separator) or bool(_DATE.fullmatch(cell)) for cell in cells)
    return alike**2 * (0.01 + n_values / len(cells))


def _is_value(cell: str, separator: str) -> bool:
    """Tell whether a cell can stand in a column of numbers: number, truth value or missing."""
    return bool(
        _NUMBER.fullmatch(cell)
        or cell.lower() in _OTHER_VALUES
        or (separator != "," and _DECIMAL_COMMA.fullmatch(cell))
    )


# --- Header ---------------------------------------------------------------------------------------


def _header_names(
    layout: Layout, header: bool | None, path: Path
) -> tuple[tuple[str, ...], bool | None]:
    """Return the first record, and whether it is a header: None if the body must decide."""
    first = layout.records[0]
    if header is not None:
        return first, header
    if _is_numbered(first):
        return first, None
    second = layout.records[1] if len(layout.records) > 1 else first
    dates_go_on = [
        _DATE.fullmatch(cell) and position < len(second) and _DATE.fullmatch(second[position])
        for position, cell in enumerate(first)
    ]
    values = [_is_value(cell, layout.separator) for cell in first]
    found = not all(value or date for value, date in zip(values, dates_go_on, strict=True))
    if found:
        _warn_of_mixed_header(first, values, path)
    return first, found


def _is_numbered(first: Sequence[str]) -> bool:
    """Tell whether the cells count 0, 1, 2, ... or 1, 2, 3, ... (behind an empty corner cell)."""
    counted = list(first[1:] if len(first) > 1 and not first[0] else first)
    ranges = ([str(i + start) for i in range(len(counted))] for start in (0, 1))
    return len(counted) > 1 and counted in ranges


def _warn_of_mixed_header(first: Sequence[str], values: Sequence[bool], path: Path) -> None:
    """Warn unless the numbers among the names look like labels: whole and rising, as years do."""
    numbers = [cell for cell, value in zip(first, values, strict=True) if value and cell]
    texts = [cell for cell, value in zip(first, values, strict=True) if not value]
    labels = all(cell.isdecimal() for cell in numbers) and not any(t[0].isdecimal() for t in texts)
    rising = labels and all(float(low) < float(high) for low, high in pairwise(numbers))
    if not numbers or rising:
        return
    warnings.warn(
        f"{path}: the first row was taken as the header though it holds numbers such as "
        f"{listed(numbers, most=3)}; choose `header=False` if it is data",
        DataWarning,
        stacklevel=2,
    )


def _has_fraction(cells: Sequence[AnyArray]) -> bool:
    numbers = [column[np.isfinite(column)] for column in cells if column.dtype.kind == "f"]
    return any((column != np.rint(column)).any() for column in numbers)


def _warn_of_kept_numbers(layout: Layout, path: Path) -> None:
    warnings.warn(
        f"{path}: the first row, {listed(layout.records[0], most=4)}, may be names or data; since "
        "all values are whole numbers it was kept as data: choose `header=True` if it holds names",
        DataWarning,
        stacklevel=2,
    )


# --- Body -----------------------------------------------------------------------------------------


def _read_body(
    content: bytes, layout: Layout, path: Path, *, skip_first: bool
) -> tuple[AnyArray, ...]:
    """Read the rows as numbers, and columns that are seen to hold anything else as text."""
    import pyarrow as pa

    width = len(layout.records[0])
    texts = {
        position
        for record in layout.records[skip_first:]
        for position, cell in enumerate(record[:width])
        if not _is_value(cell, layout.separator)
    }
    decimals = [layout.decimal]
    if layout.separator != ",":
        decimals.append("." if layout.decimal == "," else ",")
    start = layout.body_starts if skip_first else 0
    for attempt in [(decimal, texts) for decimal in decimals] + [(decimals[0], set(range(width)))]:
        try:
            table = _arrow_table(memoryview(content)[start:], layout, *attempt)
        except pa.ArrowInvalid as error:
            if "parse error" in str(error):
                _refuse_ragged(content, layout, path)
                raise DataError(f"{path} cannot be read: {error}; mend that line") from error
            continue
        return tuple(_column(column, attempt[0]) for column in table.columns)
    raise DataError(f"{path} cannot be read as a table of numbers; save it as plain CSV")


def _arrow_table(body: memoryview, layout: Layout, decimal: str, texts: set[int]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    width = len(layout.records[0])
    longest = max(sum(len(cell) + 4 for cell in record) for record in layout.records)
    types = {str(i): pa.string() if i in texts else pa.float64() for i in range(width)}
    return arrow_csv.read_csv(
        pa.py_buffer(body),
        read_options=arrow_csv.ReadOptions(
            column_names=list(types),
            block_size=max(1 << 20, 32 * longest),
            use_threads=False,  # one that frees the buffer while Python ends would abort it
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=layout.separator),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            decimal_point=decimal,
            null_values=list(MISSING_MARKS),
            strings_can_be_null=True,
        ),
    )


def _column(column: Any, decimal: str) -> AnyArray:
    cells: AnyArray = column.to_numpy()
    if cells.dtype.kind != "O" or decimal == ".":
        return cells
    return np.array(
        [c.replace(",", ".") if c and _DECIMAL_COMMA.fullmatch(c.strip()) else c for c in cells],
        dtype=object,
    )


def _is_blank(cells: AnyArray) -> bool:
    if cells.dtype.kind == "f":
        return bool(np.isnan(cells).all())
    return all(cell is None for cell in cells)


def _refuse_ragged(content: bytes, layout: Layout, path: Path) -> None:
    """Raise `DataError` that names the first line whose number of fields differs."""
    records = _records(content.decode("utf-8"), layout.separator, path)
    first_line, first = next(records)
    for line, record in records:
        if len(record) != len(first):
            hint = " and remove comment lines" if first[0].startswith("#") else ""
            raise DataError(
                f"{path}, line {line}: {len(record)} fields found, {len(first)} expected as in "
                f"line {first_line}; mend the line (text with a separator in it needs quotation "
                f"marks){hint}"
            )
