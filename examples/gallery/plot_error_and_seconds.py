"""
Error against seconds
=====================

This example compares accuracy and time on prices of 20,640 blocks of Californian houses. Boosted
trees are fast and accurate. Textbook kernel ridge regression cannot use all rows, because its cost
grows with their cube. Landmarks and iterative solvers can. A search that learns which features
matter reaches the error of trees, or a smaller one, in more time.
"""

# %%
# The data ship with the package and have a fixed split into training and test rows.
import time

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
from sklearn import kernel_ridge
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gramian import KernelRidge, KernelRidgeCV
from gramian.data import sample_path

table = pq.read_table(sample_path("california_housing")).to_pandas()
split = table.pop("split")
y = table.pop("target").to_numpy() / 1000  # thousands of dollars
X = table.to_numpy()
X_train, y_train = X[split == 0], y[split == 0]
X_test, y_test = X[split == 1], y[split == 1]


def timed(model, rows=None):
    """Return CPU seconds of a fit to the first rows, and the error on the test rows."""
    start = time.process_time()
    model.fit(X_train[:rows], y_train[:rows])
    seconds = time.process_time() - start
    return seconds, np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))


# %%
# Each method runs with cheap and expensive settings: more trees, more rows for scikit-learn's
# ``KernelRidge``, more landmarks and then all rows for ``gramian.KernelRidge``, and more kernel
# evaluations for the search. A budget can also be a time, ``budget="10 s"``, but then the result
# depends on the load of the machine.
# Both kernel ridge regressions use the same kernel: gramian's penalty is scikit-learn's
# ``alpha / n``, and its lengthscale of this kernel is 1 / ``gamma``. All methods use one core.
rows_at_random = np.random.default_rng(0).permutation(len(X_train))
X_train, y_train = X_train[rows_at_random], y_train[rows_at_random]
threadpool_limits(1)
one_core = threadpool_limits(1)

exact = make_pipeline(StandardScaler(), kernel_ridge.KernelRidge(kernel="laplacian", alpha=0.05))
kernel = dict(kernel="l1_laplacian", lengthscale=8, penalty=3e-6, tol=1e-3, random_state=0)
points = {
    "HistGradientBoosting, 50 to 500 trees": [
        timed(HistGradientBoostingRegressor(max_iter=trees, random_state=0))
        for trees in (50, 150, 500)
    ],
    "scikit-learn's KernelRidge, 500 to 4,000 rows": [
        timed(exact, rows) for rows in (500, 1000, 2000, 4000)
    ],
    "gramian.KernelRidge, 100 landmarks to all rows": [
        timed(KernelRidge(landmarks=m, **kernel)) for m in (100, 400, 1600, None)
    ],
    "gramian.KernelRidgeCV, two budgets": [
        timed(KernelRidgeCV(budget=budget, random_state=0)) for budget in (2e8, 7e8)
    ],
}

# %%
# Down and to the left is better.
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for (name, measured), marker in zip(points.items(), "os^D", strict=True):
    axes.plot(*np.transpose(measured), marker=marker, label=name)
axes.set(xscale="log", xlabel="CPU seconds of the fit", ylabel="test error (1,000 dollars)")
axes.set_title("Prices of Californian houses")
axes.grid(alpha=0.3)
axes.legend()
plt.show()
