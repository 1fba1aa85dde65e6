"""
A hidden driver, and the warning
================================

Something that nobody measured drives all series. Then series predict one another without causing
one another.
"""

import matplotlib.pyplot as plt

from causalformer import CausalFormer
from causalformer.baselines import VarGranger
from causalformer.datasets import make_random_system
from causalformer.metrics import evaluate

made = make_random_system(6, 800, n_edges=6, n_hidden=1, hidden_share=0.5, random_state=0)
model = CausalFormer(max_lag=3).fit(made.series)
var = VarGranger(max_lag=3).fit(made.series)

# %%
# The warning comes with the result, as text and as a ``DataWarning``:

for warning in model.diagnostics_.warnings:
    print(warning)

# %%
# An edge must explain more than the series share anyway. That removes most edges that only the
# hidden driver makes, and costs some weak true ones.

for name, graph in [("VAR F-test", var.graph_), ("causalformer", model.graph_)]:
    found = evaluate(graph, made.truth)
    false, missed = found.n_predicted - found.n_correct, found.n_true - found.n_correct
    print(f"{name:12}  false {false:2}  missed {missed:2}")

# %%
# What is left is not proof. Measure the driver if you can; otherwise read weak edges with care.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
var.graph_.plot(axes[0], truth=made.truth)
axes[0].set_title("VAR F-test")
model.graph_.plot(axes[1], truth=made.truth)
axes[1].set_title("causalformer")
figure.tight_layout()
