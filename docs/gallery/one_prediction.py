"""
What drove one prediction
=========================

A graph is about all of the time. ``explain`` is about one row: which past values made the network
predict what it did. The shares add up to the prediction.
"""

import matplotlib.pyplot as plt

from causalformer import CausalFormer
from causalformer.datasets import load_example

series = load_example().series
model = CausalFormer(max_lag=4).fit(series)
explanation = model.explain(at=100)
shares = explanation.to_frame()
growth = shares[shares["effect"] == "growth"].head(6)
growth.round(3)

# %%
# Relevance is in standard deviations of the effect. The past values are in the units of the data.

figure, axes = plt.subplots(figsize=(7, 3))
labels = [f"{row.cause}, {row.lag} before" for row in growth.itertuples()]
colours = ["#0072B2" if share > 0 else "#D55E00" for share in growth["relevance"]]
axes.barh(labels[::-1], growth["relevance"][::-1], color=colours[::-1])
axes.axvline(0, color="black", linewidth=0.8)
axes.set_xlabel("share of the prediction of growth in row 100")
figure.tight_layout()

# %%
# How far the shares are from adding up, over all series:

print(f"{explanation.conservation_error:.1e}")
