"""
Landmarks on a map
==================

Landmarks are the rows that a model uses as centers. Most random rows are in the cities, where most
rows are. Leverage scores find the rows that the others do not explain, so that the landmarks also
cover the country.
"""

# %%
# The two features are the location of a block of houses.
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

from gramian import NystromTransformer
from gramian.data import sample_path
from gramian.landmarks import BlessR, RecursiveRLS, Uniform

columns = ["longitude", "latitude"]
X = pq.read_table(sample_path("california_housing"), columns=columns).to_pandas().to_numpy()

# %%
# One kernel, and 100 landmarks by three selectors. ``NystromTransformer`` returns features whose
# inner products approximate the kernel. Their squared length is the share of k(x, x) = 1 that the
# landmarks explain: in dark places the model has no information. The titles show the share of rows
# of which more than half is explained.
selectors = {
    "Uniform": Uniform(100),
    "BLESS-R": BlessR(100),
    "Recursive leverage scores": RecursiveRLS(100),
}
figure, all_axes = plt.subplots(1, 3, figsize=(11, 4.6), layout="constrained", sharey=True)
for axes, (name, selector) in zip(all_axes, selectors.items(), strict=True):
    map_ = NystromTransformer("gaussian", lengthscale=0.7, landmarks=selector, random_state=0)
    unexplained = 1 - (map_.fit_transform(X) ** 2).sum(axis=1)
    chosen = X[map_.landmark_index_]
    dots = axes.scatter(*X.T, s=3, c=unexplained, cmap="magma_r", vmin=0, vmax=1, linewidths=0)
    axes.scatter(*chosen.T, s=16, color="C0", edgecolors="white", linewidths=0.5)
    axes.set_title(f"{name}\n{np.mean(unexplained < 0.5):.1%} of the rows")
    axes.set(xlabel="longitude", aspect=1.25)
all_axes[0].set_ylabel("latitude")
figure.colorbar(dots, ax=all_axes, label="unexplained share of k(x, x)", shrink=0.7)
plt.show()

# %%
# The lengthscale is 0.7 degrees. Uniform landmarks crowd around Los Angeles and San Francisco.
# Landmarks by leverage scores also cover the mountains and the desert, where a single block of
# houses is the only information about its surroundings. When this matters, and its cost:
# :doc:`/choosing`.
