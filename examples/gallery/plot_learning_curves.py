"""
More rows, or more landmarks?
=============================

The number of landmarks limits the accuracy of a model for any number of rows, and more landmarks
than the rows support gain nothing. These learning curves show which of both limits the error.
"""

# %%
# Prices of Californian houses, with 250 to 16,000 rows and 25 to 1,600 landmarks. Each model uses
# the first rows of one random order, so that it contains the data of each smaller model.
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

from gramian import KernelRidge
from gramian.data import sample_path

table = pq.read_table(sample_path("california_housing")).to_pandas()
split, y = table.pop("split").to_numpy(), table.pop("target").to_numpy() / 1000
X = table.to_numpy(dtype="float32")
order = np.random.default_rng(0).permutation(np.flatnonzero(split == 0))
test = np.flatnonzero(split == 1)

rows, landmarks = [250, 500, 1000, 2000, 4000, 8000, 16000], [25, 100, 400, 1600]
errors = np.full((len(rows), len(landmarks)), np.nan)
for i, n in enumerate(rows):
    for j, m in enumerate(landmarks):
        if m <= n:
            model = KernelRidge(
                "l1_laplacian", lengthscale=8.0, penalty=0.3 / n, landmarks=X[order[:m]]
            )
            model.fit(X[order[:n]], y[order[:n]])
            errors[i, j] = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))

# %%
# Both plots show the same numbers. Left, a flat curve needs more landmarks. Right, a flat curve
# needs more rows.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.3), sharey=True, layout="constrained")
shades = plt.get_cmap("viridis_r")(np.linspace(0.15, 1, max(errors.shape)))
for j, m in enumerate(landmarks):
    left.loglog(rows, errors[:, j], marker="o", color=shades[2 * j], label=f"{m:,} landmarks")
for i, n in enumerate(rows):
    right.loglog(landmarks, errors[i], marker="o", color=shades[i], label=f"{n:,} rows")
left.set(xlabel="rows n", ylabel="test error (1,000 dollars)", title="by rows")
right.set(xlabel="landmarks m", title="by landmarks")
ticks = [50, 60, 70, 80, 90]
left.set_yticks(ticks, [str(tick) for tick in ticks])
left.minorticks_off()
for axes in (left, right):
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
plt.show()
