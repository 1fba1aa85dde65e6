"""Benchmark folders: several data files with the truth beside them."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from causalformer.data.reading import read_series
from causalformer.datasets.generated import Generated
from causalformer.errors import DataError, SettingsError
from causalformer.truth import read_truth

Orientation: TypeAlias = Literal["netsim", "as-published"]

_DATA_FILE = re.compile(r"(data_|timeseries)(.*)\.csv", re.IGNORECASE)


@dataclass(frozen=True)
class BenchmarkFile:
    """One data file of a benchmark and its truth; nothing is read before `load`.

    Parameters
    ----------
    name : str
        The file's name without its suffix.
    series_path : Path
        The series.
    truth_path : Path
        The true edges, ``cause,effect,lag``.
    orientation : {"netsim", "as-published", ""}
        For a file of the fMRI benchmark, how its truth is read; see `load_folder`.
    """

    name: str
    series_path: Path
    truth_path: Path
    orientation: Orientation | Literal[""] = ""

    @property
    def reverse_truth(self) -> bool:
        """Whether `load` turns every edge round."""
        return self.orientation == "netsim"

    @property
    def fingerprint(self) -> str:
        """A name of the content of series and truth, and of the way the truth is read."""
        digest = hashlib.sha256(b"reversed" if self.reverse_truth else b"")
        for path in (self.series_path, self.truth_path):
            try:
                content = path.read_bytes()
            except OSError:
                content = b""  # `load` will say what is wrong
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()[:12]

    def load(self) -> Generated:
        """Read the series and their graph."""
        series = read_series(self.series_path)
        truth = read_truth(self.truth_path, series.names, reverse=self.reverse_truth)
        return Generated(series, truth)


def load_folder(
    path: str | Path, *, orientation: Orientation = "netsim", fmri: bool | None = None
) -> tuple[BenchmarkFile, ...]:
    """List the data files of a benchmark folder, each with its truth.

    A folder holds ``data_*.csv`` or ``timeseries*.csv`` with one ``truth.csv`` for all of them, or
    ``timeseriesK.csv`` with a ``truthK.csv`` each; a file's own truth goes before the common one.

    The truth files of the fMRI benchmark in circulation (28 networks of NetSim, Smith et al. 2011)
    are edge-reversed: they are the transpose of NetSim's own ``net`` matrices, in which
    ``net[i, j]`` says that i causes j. So the edges of that folder are turned round when they are
    read, unless results are to be compared with papers that scored against the files as they are.
    Edges of other folders are never turned round.

    Parameters
    ----------
    path : str or Path
        The folder.
    orientation : {"netsim", "as-published"}
        For an fMRI folder: edges as in NetSim's matrices, or as in its truth files.
    fmri : bool, optional
        Whether the folder is the fMRI benchmark. If None, it is if its name contains "fmri" in
        any case and its files have a truth each.

    Returns
    -------
    tuple of BenchmarkFile
        In natural order: 2 before 10.

    Raises
    ------
    DataError
        The folder is missing, holds no data file, or a truth is missing.
    SettingsError
        Another `orientation`.

    Examples
    --------
    >>> import tempfile
    >>> from causalformer.datasets import make_structure
    >>> folder = tempfile.mkdtemp()
    >>> for index in (10, 2):
    ...     _ = make_structure("fork", 50, random_state=index).save(folder, index)
    >>> [file.name for file in load_folder(folder)]
    ['data_2', 'data_10']
    >>> load_folder(folder)[0].load().series.n_series
    3
    """
    if orientation not in get_args(Orientation):
        raise SettingsError(
            f"orientation is {orientation!r}; choose among {', '.join(get_args(Orientation))}"
        )
    folder = Path(path).expanduser()
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"{folder} {kind}; name a folder with data files and their truth")
    files = [
        _with_truth(file, match[2])
        for file in folder.iterdir()
        if (match := _DATA_FILE.fullmatch(file.name)) and file.is_file()
    ]
    if not files:
        raise DataError(f"{folder} holds no data file; expected data_*.csv or timeseries*.csv")
    own_truth = all(truth.stem.lower() != "truth" for _, truth in files)
    if fmri is None:
        fmri = own_truth and "fmri" in folder.resolve().name.lower()
    return tuple(
        BenchmarkFile(series.stem, series, truth, orientation if fmri else "")
        for series, truth in sorted(files, key=lambda pair: _natural_order(pair[0].name))
    )


def _with_truth(series: Path, key: str) -> tuple[Path, Path]:
    own, common = series.with_name(f"truth{key}.csv"), series.with_name("truth.csv")
    for truth in (own, common):
        if truth.is_file():
            return series, truth
    raise DataError(
        f"{series} has no truth beside it; expected {own.name} or one {common.name} for all files"
    )


def _natural_order(name: str) -> tuple[tuple[bool, int, str], ...]:
    parts = re.split(r"(\d+)", name)
    return tuple((p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts if p)
