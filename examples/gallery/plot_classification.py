"""
Boundaries of classes
=====================

A classifier estimates the probability of each class at every point. The boundary is where
probabilities are equal. The faster they change, the more certain the classifier is.
"""

# %%
# Two moons, two circles, and three arms of a spiral.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_circles, make_moons

from gramian import KernelRidgeClassifier


def spiral(n=600, noise=0.25):
    """Return points of three arms."""
    rng = np.random.default_rng(0)
    arm, radius = rng.integers(3, size=n), np.sqrt(rng.uniform(0.02, 1, n)) * 4
    angle = radius + 2 * np.pi / 3 * arm
    points = radius * np.stack([np.cos(angle), np.sin(angle)])
    return points.T + noise * rng.standard_normal((n, 2)), arm


sets = {
    "moons": make_moons(400, noise=0.25, random_state=0),
    "circles": make_circles(400, noise=0.15, factor=0.5, random_state=0),
    "spiral": spiral(),
}

# %%
# No hyperparameter is set by hand: held-out rows choose kernel, lengthscale and penalty. The
# probabilities mix the colours.
palette = np.array([[0.12, 0.47, 0.71], [1.0, 0.5, 0.05], [0.17, 0.63, 0.17]])
figure, all_axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
for axes, (name, (X, y)) in zip(all_axes, sets.items(), strict=True):
    model = KernelRidgeClassifier(random_state=0).fit(X, y)
    low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    xs, ys = np.linspace(low[0], high[0], 100), np.linspace(low[1], high[1], 100)
    points = np.stack(np.meshgrid(xs, ys), axis=-1)
    shares = model.predict_proba(points.reshape(-1, 2))
    colours = 1 - 0.6 * (1 - shares @ palette[: shares.shape[1]])
    axes.imshow(
        colours.reshape(100, 100, 3).clip(0, 1),
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
    )
    axes.scatter(*X.T, c=y, s=9, cmap=ListedColormap(palette[: shares.shape[1]]))
    axes.set(title=f"{name}: {type(model.kernel_).__name__}", xticks=[], yticks=[])
plt.show()
