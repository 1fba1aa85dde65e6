"""
Ten short recordings of the same system
=======================================

Sixty slots are few. Ten subjects with sixty slots each are many, if they share a graph.
"""

import matplotlib.pyplot as plt
import numpy as np

from causalformer import CausalFormer
from causalformer.datasets import make_random_system
from causalformer.each import fit_each
from causalformer.metrics import evaluate

made = make_random_system(4, 600, n_edges=4, max_lag=2, links="linear", random_state=3)
subjects = np.split(made.series.values, 10)  # a list of ten arrays [slot, series]

# %%
# One graph of all. Nothing looks across the end of a recording.

pooled = CausalFormer(max_lag=2).fit(subjects)
print(pooled.graph_)

# %%
# One graph per recording, and how many of them found each edge.

each = fit_each(CausalFormer(max_lag=2), subjects)
each.agreement()

# %%
# F1 of the edges between series. Recordings on their own miss many of them; the pooled graph has
# them all.

alone = [evaluate(graph, made.truth).off_diagonal_f1 for graph in each.graphs.values()]
together = evaluate(pooled.graph_, made.truth).off_diagonal_f1

figure, axes = plt.subplots(figsize=(7, 3))
axes.bar(range(1, 11), alone, color="#999999", label="each on its own")
axes.axhline(together, color="#0072B2", label="all together")
axes.set(xlabel="recording", ylabel="F1 off the diagonal", xticks=range(1, 11), ylim=(0, 1.05))
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
figure.tight_layout()
