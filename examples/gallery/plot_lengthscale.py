"""
A lengthscale too long, right, too short
========================================

The lengthscale is the distance over which a kernel expects the function to change. If it is too
long, the model underfits. If it is too short, the model overfits the noise and predicts the mean
between the rows.
"""

# %%
# A known function, with noise.
import logging

import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge

# Fits with a bad lengthscale log that they explain little, which is intended in this example.
logging.getLogger("gramian").setLevel("ERROR")

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(0, 10, 80))[:, None]


def truth(x):
    """Return a wave that grows faster."""
    return np.sin(0.15 * x**2)


y = truth(X[:, 0]) + 0.2 * rng.standard_normal(80)
grid = np.linspace(0, 10, 400)[:, None]

# %%
# Features are standardised, so a lengthscale of 1 is one standard deviation. The
# last panel shows the error for many lengthscales. The line is the choice of
# ``lengthscale="auto"``, which uses only the training rows.
settings = dict(penalty=1e-3, landmarks=None, random_state=0)
figure, all_axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for axes, (name, scale) in zip(
    all_axes.flat, {"too long": 1.0, "right": 0.2, "too short": 0.01}.items(), strict=False
):
    model = KernelRidge("gaussian", lengthscale=scale, **settings).fit(X, y)
    axes.plot(grid, truth(grid), color="0.7", label="truth")
    axes.scatter(X, y, s=8, color="0.4")
    axes.plot(grid, model.predict(grid), color="C0", label="model")
    axes.set_title(f"{name}: lengthscale {scale}")
all_axes[0, 0].legend()

scales = np.geomspace(0.005, 3, 25)
errors = [
    np.std(
        KernelRidge("gaussian", lengthscale=scale, **settings).fit(X, y).predict(grid)
        - truth(grid[:, 0])
    )
    for scale in scales
]
chosen = KernelRidge("gaussian", **settings).fit(X, y).kernel_.lengthscale
axes = all_axes[1, 1]
axes.loglog(scales, errors, color="C0")
axes.axvline(float(np.min(chosen)), color="C3", linestyle="--", label="chosen by itself")
axes.set(title="error by lengthscale", xlabel="lengthscale", ylabel="distance from the truth")
axes.legend()
plt.show()
