"""What the form of the app asks for; the same choices as those of `causalformer discover`."""

import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=1000)]


class Columns(BaseModel):
    """How to read the file.

    Attributes
    ----------
    time_column : int, "auto" or "none"
        Position of the column that holds the time.
    group : str, optional
        Name of the column that tells recordings apart.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_column: Annotated[int, Field(ge=0)] | Literal["auto", "none"] = "auto"
    group: Text | None = None


def _readable_season(text: str) -> str:
    from causalformer.data.time_terms import read_season
    from causalformer.errors import SettingsError

    try:
        read_season(text)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return text


class RunSettings(Columns):
    """Everything that can be chosen for one run; see `causalformer.CausalFormer`."""

    max_lag: Annotated[int, Field(ge=1, le=1000)] | Literal["auto"] = 5
    alpha: float = Field(0.05, gt=0, lt=1)
    instantaneous: Literal["auto", "yes", "no"] = "auto"
    stability: int = Field(0, ge=0, le=1000)
    season: Annotated[Text, AfterValidator(_readable_season)] = "auto"
    missing: Literal["mask", "interpolate", "previous", "mean"] = "mask"
    prepare: Texts = ()
    forbid: Texts = ()
    require: Texts = ()
    preset: Text = "default"
    seed: int = Field(0, ge=0)
    set: Annotated[dict[Text, Text], Field(max_length=100)] = {}

    def command(self, source: str) -> str:
        """Return the command that does the same in a terminal.

        Examples
        --------
        >>> RunSettings(max_lag=3, forbid=["* -> rain"]).command("data.csv")
        "causalformer discover data.csv --max-lag 3 --forbid '* -> rain' --out results"
        """
        words = ["causalformer", "discover", source]
        for name, value in self.model_dump(exclude_defaults=True).items():
            pairs = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
            for each in pairs if isinstance(pairs, list | tuple) else [pairs]:
                words += [f"--{name.replace('_', '-')}", str(each)]
        return shlex.join([*words, "--out", "results"])
