"""
What you know gives power to the rest
=====================================

What is forbidden is not tested. Fewer tests leave more power to the others, which matters where
data are few: here a hundred rows.
"""

import matplotlib.pyplot as plt

from causalformer import CausalFormer, PriorKnowledge, read_series
from causalformer.datasets import load_example

example = load_example()
few = read_series(example.series.values[:100], names=example.series.names)

# %%
# Without knowledge:

plain = CausalFormer().fit(few)
print(plain.graph_)

# %%
# Nothing drives the sun, growth drives nothing, and effects run from the air to the soil to the
# plants.

known = PriorKnowledge(
    exogenous=["sun"],
    effects_only=["growth"],
    tiers=[["sun"], ["temperature", "humidity"], ["soil_moisture"], ["growth"]],
)
told = CausalFormer(knowledge=known).fit(few)
print(told.graph_)

# %%
# Both beside the truth.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
for axis, model, title in [(axes[0], plain, "without"), (axes[1], told, "with knowledge")]:
    model.graph_.plot(axis, truth=example.truth)
    axis.set_title(title)
figure.tight_layout()

# %%
# The data have caveats, with and without knowledge:

for warning in told.diagnostics_.warnings:
    print(warning)
