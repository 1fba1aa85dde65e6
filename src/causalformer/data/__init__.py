"""Reading series and getting them ready for a model."""

from causalformer.data.reading import read_series
from causalformer.data.scaling import Scaling, fit_scaling
from causalformer.data.series import SeriesTable, check_usable
from causalformer.data.time_axis import AUTO

__all__ = ["AUTO", "Scaling", "SeriesTable", "check_usable", "fit_scaling", "read_series"]
