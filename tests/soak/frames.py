"""Frames of any shape, type and scale: a valid graph with finite scores, or a clean refusal."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from causalformer import CausalFormer
from causalformer.graph import CausalGraph
from soak.fuzz import TINY, Reader

PAPER = {"window": 4, "d_model": 4, "d_ffn": 4, "n_heads": 1, "max_epochs": 2}
DTYPES = ("f8", "f4", "f2", "i8", "i1", "u2", "bool", "Int64", "Float64", "object", "str")
KINDS = ("noise", "walk", "trend", "steps", "constant", "copy", "spikes", "few values")


@st.composite
def frames(draw: Any) -> pd.DataFrame:
    """Draw columns of different kinds, types and scales, with gaps and repeated rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_slots = draw(st.integers(25, 80) | st.integers(25, 80) | st.integers(0, 25))
    n_series = draw(st.sampled_from((2, 3, 4, 2, 3, 4, 0, 1)))
    columns: list[np.ndarray] = []
    for _ in range(n_series):
        values = _column(draw(st.sampled_from(KINDS)), n_slots, rng, columns)
        scale = 10.0 ** draw(st.integers(-12, 12) | st.just(0))
        columns.append(values * scale + draw(st.sampled_from((0.0, 0.0, 1.0, 1e9))))
    names = [f"s{i}" for i in range(n_series)]
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)), index=range(n_slots))
    if n_slots and draw(st.booleans()):  # duplicated rows
        frame = frame.iloc[np.sort(rng.integers(n_slots, size=n_slots))].reset_index(drop=True)
    share = draw(st.sampled_from((0.0, 0.0, 0.0, 0.02, 0.3, 1.0)))
    frame = frame.mask(rng.random(frame.shape) < share)
    if draw(st.integers(0, 9)) == 0:
        frame = frame.mask(rng.random(frame.shape) < 0.01, np.inf)
    for name in names:
        frame[name] = _cast(frame[name], draw(st.sampled_from(DTYPES) | st.just("f8")))
    return frame


def _column(
    kind: str, n_slots: int, rng: np.random.Generator, others: list[np.ndarray]
) -> np.ndarray:
    noise = rng.standard_normal(n_slots)
    if kind == "copy" and others:
        return others[-1].copy()
    return {
        "noise": noise,
        "walk": noise.cumsum(),
        "trend": np.arange(n_slots) + 0.0,
        "steps": np.repeat(noise, 10)[:n_slots],
        "constant": np.ones(n_slots),
        "copy": noise,
        "spikes": np.where(rng.random(n_slots) < 0.05, noise * 1e6, 0.0),
        "few values": np.rint(noise),
    }[kind]


def _cast(column: pd.Series, dtype: str) -> pd.Series:
    """Change the type where the values allow it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return column.astype(dtype)
        except (TypeError, ValueError, OverflowError):  # NaN is no whole number
            return column


def frame_readers() -> list[Reader]:
    """Give the estimator as a reader of frames, once by default and once with a preset."""
    return [
        _frame_reader("default", settings=TINY, max_lag=2),
        _frame_reader("paper-fmri", settings=PAPER),
    ]


def _frame_reader(preset: str, **options: Any) -> Reader:
    def fit(frame: pd.DataFrame, _: Path) -> None:
        model = CausalFormer(preset, **options).fit(frame)
        graph = model.graph_
        assert graph.names == tuple(frame.columns)
        assert CausalGraph.from_json(graph.to_json()) == graph
        assert all(np.isfinite(edge.score) for edge in graph)
        assert np.isfinite(model.edge_scores_).all()
        if preset == "default":
            assert np.isfinite(model.scores_["p_value"]).all()
            assert np.isfinite(model.scores_["q_value"]).all()

    return Reader(f"frames, {preset}", frames(), fit)
