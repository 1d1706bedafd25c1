"""
A learned metric
================

A kernel compares rows by a distance, and a plain distance weights all features equally. A learned
metric finds the directions of the features along which the target changes, and stretches them.
"""

# %%
# Three of ten features matter: the first two only by their sum, and the third by itself.
import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge
from gramian.plots import ImportanceDisplay

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 10))
y = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.5 * X[:, 2] + 0.1 * rng.standard_normal(2000)
X_train, y_train, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]

# %%
# ``metric="learned"`` is a recursive feature machine: fit, compute the gradients of the fit,
# stretch the features by them, fit again. The kernel then uses distances of ``X @ metric_``.
plain = KernelRidge(random_state=0).fit(X_train, y_train)
learned = KernelRidge(metric="learned", random_state=0).fit(X_train, y_train)
print(f"R2 with plain distances: {plain.score(X_test, y_test):.2f}")
print(f"R2 with learned ones:    {learned.score(X_test, y_test):.2f}")

# %%
# The matrix shows more than importances: features 0 and 1 matter together, with the same sign.
M = learned.metric_ @ learned.metric_.T
M /= np.abs(M).max()
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ImportanceDisplay.from_estimator(learned, ax=left)
left.set_title("importances")
image = right.imshow(M, cmap="RdBu_r", vmin=-1, vmax=1)
right.set(title="learned metric", xlabel="feature", ylabel="feature")
right.set_xticks(range(10))
right.set_yticks(range(10))
figure.colorbar(image, ax=right, shrink=0.8)
plt.show()

# %%
# How to interpret importances: :doc:`/accuracy`.
