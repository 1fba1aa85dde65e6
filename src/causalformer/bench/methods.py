"""The methods that a benchmark knows by name, and the settings that belong to a folder."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from causalformer import baselines
from causalformer.baselines import METHODS
from causalformer.bench.ablations import (
    ABLATIONS,
    BY_RELEVANCE,
    DEFAULT_ABLATIONS,
    PAPER_ABLATIONS,
    PAPER_READINGS,
    ByRelevance,
    PaperVariant,
    training_settings,
)
from causalformer.config import DEFAULT, PRESETS, resolve_settings
from causalformer.errors import SettingsError

_PAPER_VARIANTS: Final = {**PAPER_ABLATIONS, **PAPER_READINGS}

REFERENCES: Final = ("self-loops", "var")
"""Methods that are part of every benchmark: no figure means anything without them."""

PAPER: Final = "paper"
"""Stands for the preset that belongs to a folder."""

CORRECTED: Final[Mapping[str, str]] = MappingProxyType(
    {f"{name}@bh": name for name in ("var", "pcmci", "pcmci-plus")}
)
"""Tests at 5 % after Benjamini and Hochberg in place of 1 % each: name and method."""

COMPARED: Final = (*METHODS, PAPER, DEFAULT)
"""Every method of the comparison, ``"all"`` for short."""

PRESET_OF_FOLDER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "diamond": "paper-diamond-mediator",
        "mediator": "paper-diamond-mediator",
        "v_structure": "paper-v-fork",
        "fork": "paper-v-fork",
        "lorenz96": "paper-lorenz96",
        "fmri": "paper-fmri",
        "sst": "paper-sst",
    }
)
"""The paper's settings for each of its data sets."""


@dataclass(frozen=True)
class Method:
    """One method, ready to be run on the files of one folder.

    Parameters
    ----------
    name : str
        The name under which its results are listed.
    settings : mapping
        Everything besides data and seed that decides the result.
    preset : str, optional
        For `CausalFormer`: the preset that `settings` start from.
    options : mapping
        For `CausalFormer`: other arguments of its constructor.

    Examples
    --------
    >>> method = method_for("paper", "fork")
    >>> method.preset, method.settings["temperature"]
    ('paper-v-fork', 100.0)
    >>> method_for("var", "fork").build(None)
    VarGranger()
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seeded(self) -> bool:
        """Whether the result depends on a seed."""
        return self.preset is not None or "random_state" in self.settings

    @property
    def takes_missing(self) -> bool:
        """Whether the method copes with missing values by itself."""
        if self.preset is None:
            return bool(_baseline(self.kind).missing_ok)
        return self.preset == DEFAULT

    @property
    def fingerprint(self) -> str:
        """A short name of method and settings: results of equal fingerprints are comparable."""
        parts = [self.kind, dict(self.settings), *([dict(self.options)] if self.options else [])]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def kind(self) -> str:
        """What is run, whatever it is called: one of `METHODS`, or ``"causalformer"``."""
        plain = self.preset is None or self.name == BY_RELEVANCE
        return CORRECTED.get(self.name, self.name) if plain else "causalformer"

    @property
    def training(self) -> str:
        """What is trained: jobs that share it on one file, with one seed, share the network."""
        return training_settings(self.settings) if self.name in _PAPER_VARIANTS else self.name

    def build(self, seed: int | None) -> Any:
        """Make an estimator that has not been fitted."""
        if self.name == BY_RELEVANCE:
            return ByRelevance(dict(self.settings), seed or 0)
        if self.name in _PAPER_VARIANTS:
            return PaperVariant(dict(self.settings), seed or 0)
        if self.preset is not None:
            from causalformer.estimator import CausalFormer

            return CausalFormer(
                self.preset,
                settings=dict(self.settings),
                random_state=seed or 0,
                device="cpu",
                **self.options,
            )
        seeds = {"random_state": seed or 0} if self.seeded else {}
        return _baseline(self.kind)(**{**self.settings, **seeds})

    def with_max_lag(self, max_lag: int) -> "Method":
        """Let the method look at so many lags, if it has that setting.

        Examples
        --------
        >>> method_for("var", "any").with_max_lag(7).settings["max_lag"]
        7
        """
        if self.preset == DEFAULT:
            return replace(self, options={**self.options, "max_lag": max_lag})
        if "max_lag" in self.settings:
            return replace(self, settings={**self.settings, "max_lag": max_lag})
        return self


def method_names() -> tuple[str, ...]:
    """List every name that `method_for` knows.

    Examples
    --------
    >>> method_names()[:2]
    ('self-loops', 'var')
    """
    return (*COMPARED, *PRESETS, *CORRECTED, *ABLATIONS)


def _baseline(name: str) -> Any:
    return getattr(baselines, METHODS[name])


def method_for(name: str, folder: str, overrides: Mapping[str, Any] | None = None) -> Method:
    """Look up a method, with the settings that it has on a folder.

    Parameters
    ----------
    name : str
        One of `method_names`.
    folder : str
        Name of the data folder; it decides which preset ``"paper"`` stands for.
    overrides : mapping, optional
        Settings that replace the preset's; the reference methods have none of them.

    Raises
    ------
    SettingsError
        If there is no such method or setting, or no preset belongs to the folder.

    Examples
    --------
    >>> method_for("paper", "my-data")
    Traceback (most recent call last):
    ...
    causalformer.errors.SettingsError: no paper preset belongs to the folder 'my-data' ...
    """
    if name in METHODS:
        return Method(name, _baseline(name)().get_params())
    if name in CORRECTED:
        plain = method_for(CORRECTED[name], folder)
        return replace(plain, name=name, settings={**plain.settings, "alpha": 0.05, "fdr": True})
    if name in _PAPER_VARIANTS:
        changed = {**(overrides or {}), **_PAPER_VARIANTS[name]}
        return replace(method_for(PAPER, folder, changed), name=name)
    if name in (DEFAULT, BY_RELEVANCE, *DEFAULT_ABLATIONS):
        from causalformer.default import DefaultOptions

        changed = {**(overrides or {}), **DEFAULT_ABLATIONS.get(name, {})}
        settings = resolve_settings(DEFAULT, changed).model_dump()
        return Method(name, settings, DEFAULT, asdict(DefaultOptions()))
    if name == PAPER:
        preset = PRESET_OF_FOLDER.get(folder.lower())
        if preset is None:
            raise SettingsError(
                f"no paper preset belongs to the folder {folder!r} "
                f"(only to {', '.join(PRESET_OF_FOLDER)}); name one in place of 'paper': "
                f"{', '.join(PRESETS)}"
            )
    elif name in PRESETS:
        preset = name
    else:
        raise SettingsError(
            f"no method is called {name!r}; choose among {', '.join(method_names())}"
        )
    return Method(name, resolve_settings(preset, overrides).model_dump(), preset)
