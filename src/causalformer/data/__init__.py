"""Reading series and getting them ready for a model."""

from causalformer.data.reading import read_series
from causalformer.data.series import AUTO, SeriesTable, check_usable

__all__ = ["AUTO", "SeriesTable", "check_usable", "read_series"]
