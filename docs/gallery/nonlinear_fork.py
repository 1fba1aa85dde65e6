"""
A nonlinear fork that a linear test misses
==========================================

One series drives two others through a square. On average the effect does not rise with its cause,
so nothing linear can see it.
"""

import matplotlib.pyplot as plt
import numpy as np

from causalformer import CausalFormer, CausalGraph, Edge
from causalformer.baselines import VarGranger

noise = np.random.default_rng(0).standard_normal((3, 800))
x, y, z = noise
for t in range(2, 800):
    x[t] += 0.5 * x[t - 1]
    y[t] += 0.4 * y[t - 1] + 0.5 * x[t - 1] ** 2
    z[t] += 0.3 * z[t - 1] + 0.5 * x[t - 2] ** 2
series = {"x": x, "y": y, "z": z}
loops = tuple(Edge(name, name, 1) for name in series)
truth = CausalGraph(("x", "y", "z"), (*loops, Edge("x", "y", 1), Edge("x", "z", 2)))

# %%
# The VAR F-test asks for linear effects. It cannot see the cause ``x``; and as ``y`` follows ``x``
# one slot earlier than ``z`` does, ``y`` serves as a proxy for it.

var = VarGranger(max_lag=4).fit(series)
var.graph_.to_frame()

# %%
# The default asks whether held-out errors grow when a cause is taken away, whatever its shape.

model = CausalFormer(max_lag=4).fit(series)
model.graph_.to_frame()

# %%
# Both beside the truth.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
var.graph_.plot(axes[0], truth=truth)
axes[0].set_title("VAR F-test")
model.graph_.plot(axes[1], truth=truth)
axes[1].set_title("causalformer")
figure.tight_layout()

# %%
# How much better than a linear model the network predicts each series, as a share of the error:

model.diagnostics_.to_frame()[["series", "r2", "better_than_linear"]].round(2)
