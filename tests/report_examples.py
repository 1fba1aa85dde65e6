"""Fitted models for reports, made in no time: what was found is drawn, not discovered."""

import numpy as np
import torch

from causalformer import CausalFormer
from causalformer.config import DetectorSettings
from causalformer.data import SeriesTable
from causalformer.data.scaling import fit_table_scaling
from causalformer.datasets import make_structure
from causalformer.default import DefaultFit
from causalformer.detect.networks import new_network
from causalformer.diagnostics import Diagnostics
from causalformer.graph import CausalGraph, Edge
from causalformer.training import History
from graph_examples import DOUBT, HOSTILE

RIGHT_TO_LEFT = "درجة الحرارة"


def made_table(names, n_slots=200, *, dates=False, missing=False, seed=0):
    rng = np.random.default_rng(seed)
    values = 20 + 3 * np.cumsum(rng.normal(size=(n_slots, len(names))), axis=0)
    if missing:
        values[rng.random(values.shape) < 0.1] = np.nan
    time = np.datetime64("2024-01-01", "ns") + np.arange(n_slots) * np.timedelta64(1, "D")
    return SeriesTable(values, tuple(names), time if dates else None, "made/data.csv")


def made_model(table, edges, *, max_lag=3, warnings=(), seed=0, **about):
    """A default fit with these edges; every other number is drawn."""
    rng = np.random.default_rng(seed)
    n = table.n_series
    settings = DetectorSettings(n_channels=2, n_folds=2)
    network = new_network(n, max_lag, settings, torch.Generator().manual_seed(seed))
    p_value = rng.uniform(1e-3, 1, size=(n, n))
    scores = {
        "p_value": p_value,
        "score": -np.log10(p_value),
        "q_value": np.clip(40 * p_value, 0, 1),
        "relative_gain": rng.uniform(-0.01, 0.3, size=(n, n)),
        "strength": rng.uniform(0, 1, size=(n, n)),
        "lag_profile": rng.uniform(0, 1, size=(n, n, max_lag)),
        "terms_p_value": p_value,
        "partial_correlation": rng.uniform(-1, 1, size=(n, n)),
    }
    model = CausalFormer(max_lag=max_lag)
    fit = DefaultFit(
        settings=settings,
        names=table.names,
        order=tuple(range(n)),
        scaling=fit_table_scaling(table),
        model=network.eval(),
        history=History((), "max_epochs"),
        graph=CausalGraph(table.names, tuple(edges), {"preset": "default", "alpha": 0.05, **about}),
        scores=scores,
        diagnostics=Diagnostics(
            names=table.names,
            r2=rng.uniform(size=n),
            better_than_linear=rng.uniform(-0.1, 0.5, size=n),
            observed=1.0 - table.missing.mean(axis=0),
            counted=np.full(n, float(table.n_slots)),
            max_lag=max_lag,
            max_lag_reason="chosen by the user",
            warnings=tuple(warnings),
        ),
    )
    model._keep(fit, table)
    return model


def made_edge(cause, effect, lag, rank=0, **changes):
    """An edge with all its numbers; a higher rank is weaker."""
    p = 10.0 ** -(9 - 0.0005 * rank)
    known = {"p_value": p, "q_value": 3 * p, "strength": 1 / (1 + 0.05 * rank), **changes}
    return Edge(cause, effect, lag, -np.log10(p), **known)


def small_model(**changes):
    """Four series: lagged edges, a self-loop, a link without direction, one series alone."""
    table = made_table(("rain", "river", "soil", "wind"), dates=True, missing=True)
    edges = [
        made_edge("rain", "river", 2),
        made_edge("rain", "soil", 1, 10),
        made_edge("soil", "river", 3, 20, strength=0.1, q_value=0.04),
        made_edge("river", "river", 1, 30),
        made_edge("river", "soil", 0, 40, oriented=False),
    ]
    return made_model(table, edges, **changes)


def doubtful_model():
    """Edges that may come from a hidden driver, and a season that was accounted for."""
    table = made_table(("rain", "river", "soil"))
    edges = [
        made_edge("rain", "river", 2),
        made_edge("rain", "soil", 1, 10, may_be_confounded=DOUBT),
        made_edge("river", "soil", 0, 20, oriented=False, may_be_confounded="<b>both</b> rise"),
    ]
    return made_model(table, edges, time_terms=["a season of 24 slots in rain, soil"])


def large_model(n_series=260, n_edges=1000, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"cell {i:03d}" for i in range(n_series)]
    pairs = rng.permutation(n_series**2)[:n_edges]
    edges = [
        made_edge(names[p // n_series], names[p % n_series], int(rng.integers(1, 4)), k)
        for k, p in enumerate(pairs.tolist())
    ]
    return made_model(made_table(names, 800), edges)


def hostile_model():
    """A ring over names that would like to be code."""
    names = [*HOSTILE, RIGHT_TO_LEFT, "x" * 300, "<!-- <script", "{{facts}}"]
    edges = [made_edge(name, names[i - 1], i % 3 + 1, i) for i, name in enumerate(names)]
    return made_model(made_table(names), edges)


def paper_model():
    """A preset of the paper, really fitted, for two epochs."""
    series = make_structure("fork", 80, random_state=0).series
    tiny = {"max_epochs": 2, "window": 4, "d_model": 8, "d_ffn": 16, "n_heads": 2}
    return CausalFormer("paper-fmri", settings=tiny).fit(series)
