"""Validated settings and the presets that carry the paper's."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from causalformer.errors import SettingsError
from causalformer.names import did_you_mean

DEFAULT = "default"
"""The name of the default method, beside the paper's presets."""


class Settings(BaseModel):
    """Everything that decides what is learned and how it is read; immutable.

    The names follow the paper: `window` is T, `n_heads` h, `d_model` d, `temperature` τ,
    `l1_kernel` and `l1_mask` the two λ, `n_clusters` n and `top_clusters` m.

    Examples
    --------
    >>> Settings(window=8).n_heads
    4
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # what a window looks like
    window: int = Field(16, ge=2, description="slots per window, T; lags up to T - 1 are seen")
    scaling: Literal["minmax", "standard", "none"] = Field(
        "minmax", description="minmax scales every series to [0.5, 1], the paper's data zoom"
    )

    # architecture
    d_model: int = Field(256, ge=1, description="embedding width, d; a multiple of n_heads")
    n_heads: int = Field(4, ge=1, description="attention heads, h, each of d / h features")
    d_ffn: int = Field(256, ge=1, description="feed forward width, d_FFN")
    temperature: float = Field(1.0, gt=0, description="softmax temperature, τ")
    normalisation: Literal["published", "none"] = Field(
        "published", description="layer norms of the published runs; none: the paper's text"
    )
    multi_kernel: bool = Field(True, description="one kernel per (cause, effect), else one for all")

    # training
    l1_kernel: float = Field(1e-4, ge=0, description="penalty on the kernels, λ_K")
    l1_mask: float = Field(1e-4, ge=0, description="penalty on the attention mask, λ_M")
    learning_rate: float = Field(1e-2, gt=0)
    decay_every: int = Field(30, ge=1, description="epochs between two cuts of the learning rate")
    decay_factor: float = Field(0.1, gt=0, le=1)
    batch_size: int = Field(128, ge=1)
    max_epochs: int = Field(500, ge=1)
    patience: int = Field(30, ge=1, description="epochs without a better validation loss")
    validation: Literal["random", "blocked"] = Field(
        "random",
        description="windows that validate: a random share, which overlaps training windows "
        "(published runs), or the last ones, which share no slot with training if half remain",
    )
    validation_share: float = Field(0.01, gt=0, lt=0.9, description="share of the windows")

    # detector
    interpretation: bool = Field(True, description="False: read attention and kernels directly")
    relevance: bool = Field(True, description="False: scores are the gradients alone")
    gradient: bool = Field(True, description="False: scores are the relevance alone")
    relevance_bias: bool = Field(
        False, description="True: biases stand in the relevance denominators, the paper's text"
    )
    relevance_layers: Literal["linear", "all"] = Field(
        "linear", description="all: the rule for norms, too, the paper's text; linear: they pass it"
    )
    n_clusters: int = Field(2, ge=2, description="k-means classes per effect, n")
    top_clusters: int = Field(1, ge=1, description="classes kept as causes, m < n")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of n_heads ({self.n_heads}): every "
                "head has d_model / n_heads features"
            )
        if self.top_clusters >= self.n_clusters:
            raise ValueError(
                f"top_clusters (m = {self.top_clusters}) must be smaller than n_clusters "
                f"(n = {self.n_clusters}): keeping every class keeps every edge"
            )
        if not (self.relevance or self.gradient):
            raise ValueError("relevance and gradient cannot both be off: no score would be left")
        return self


class DetectorSettings(BaseModel):
    """Settings of the default detector; nobody needs to touch them.

    They were chosen once, on generated data, and hold for every data set.

    Examples
    --------
    >>> DetectorSettings().n_folds
    4
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_channels: int = Field(64, ge=1, description="kernels per (cause, effect)")
    n_folds: int = Field(4, ge=2, le=20, description="blocks of time that are held out in turn")
    max_epochs: int = Field(50, ge=1, description="passes over the data")
    learning_rate: float = Field(1e-2, gt=0, description="highest rate of the one-cycle schedule")
    ridge: float = Field(3e-3, gt=0, description="least penalty on squared weights")
    ridge_slots: float = Field(5.0, ge=0, description="short series: penalty at least this / slots")
    lag_power: float = Field(2.0, ge=0, description="how much more long lags are penalised")
    removed_share: float = Field(0.5, ge=0, lt=1, description="samples that miss one cause")
    sparse_evidence: bool = Field(True, description="False: leave the terms test out")
    min_effect: float = Field(
        0.01, ge=0, lt=1, description="share of variance; edges go that are shown to explain less"
    )
    screen_above: int = Field(
        8,
        ge=1,
        description="with more series an effect may get candidates; see max_candidates",
    )
    max_candidates: int = Field(
        20,
        ge=2,
        description="most candidates of an effect, itself among them; 8 or more",
    )

    def ridge_for(self, n_slots: int) -> float:
        """Give the penalty for series of a length: the shorter they are, the higher.

        Examples
        --------
        >>> DetectorSettings().ridge_for(250), DetectorSettings().ridge_for(10_000)
        (0.02, 0.003)
        """
        return max(self.ridge, self.ridge_slots / n_slots)


# The settings of the published runs, one by one: the paper's "Training scheme" and, where it is
# silent, what was established of the runs (docs/explanation/paper-map.md).
_SYNTHETIC = Settings()
_V_FORK = Settings(temperature=100.0, l1_kernel=1e-10, l1_mask=1e-10, max_epochs=150)
_LORENZ96 = Settings(
    window=32,
    d_model=512,
    n_heads=8,
    d_ffn=512,
    temperature=10.0,
    l1_kernel=5e-4,
    l1_mask=5e-4,
    max_epochs=100,
    patience=10,
    validation_share=0.1,
    n_clusters=3,
    top_clusters=2,
)
_FMRI = Settings(
    window=32,
    d_ffn=512,
    temperature=100.0,
    l1_kernel=0.0,
    l1_mask=0.0,
    patience=10,
)
_SST = Settings(
    window=32,
    d_model=512,
    n_heads=8,
    d_ffn=512,
    temperature=100.0,
    l1_kernel=5e-4,
    l1_mask=5e-4,
    decay_every=50,
    decay_factor=0.5,
    batch_size=32,
    max_epochs=100,
    patience=10,
    validation_share=0.1,
)

PRESETS: Mapping[str, Settings] = {
    "paper-diamond-mediator": _SYNTHETIC,
    "paper-v-fork": _V_FORK,
    "paper-lorenz96": _LORENZ96,
    "paper-fmri": _FMRI,
    "paper-sst": _SST,
}


def resolve_settings(
    preset: str, overrides: Mapping[str, Any] | None = None
) -> Settings | DetectorSettings:
    """Look up a preset and change single settings.

    Raises
    ------
    SettingsError
        For an unknown preset or setting, or a value out of range; the message names it.

    Examples
    --------
    >>> resolve_settings("paper-fmri", {"window": 16}).window
    16
    >>> resolve_settings("paper-mri")
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: unknown preset 'paper-mri'; did you mean 'paper-fmri'? ...
    """
    known: Mapping[str, Settings | DetectorSettings] = {DEFAULT: DetectorSettings(), **PRESETS}
    if preset not in known:
        raise SettingsError(
            f"unknown preset {preset!r};{did_you_mean(preset, known)} "
            f"the presets are {', '.join(known)}"
        )
    if overrides is not None and not isinstance(overrides, Mapping):
        raise SettingsError(f"settings are {overrides!r}; give a mapping such as {{'window': 8}}")
    start = known[preset]
    merged = {**start.model_dump(), **(overrides or {})}
    try:
        return type(start).model_validate(merged)
    except ValidationError as error:
        raise SettingsError(_explain(error, type(start))) from None


_WHOSE = {Settings: "the paper's presets", DetectorSettings: f"the preset {DEFAULT!r}"}


def _explain(error: ValidationError, kind: type[BaseModel]) -> str:
    """Turn pydantic's report into sentences that name the setting."""
    parts = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            other = DetectorSettings if kind is Settings else Settings
            belongs = f" it is one of {_WHOSE[other]};" if name in other.model_fields else ""
            hint = did_you_mean(name, kind.model_fields) + belongs
            parts.append(f"unknown setting {name!r};{hint} see causalformer.config.{kind.__name__}")
        elif name:
            parts.append(f"setting {name} = {problem['input']!r}: {problem['msg']}")
        else:
            parts.append(problem["msg"].removeprefix("Value error, "))
    return "; ".join(parts)
