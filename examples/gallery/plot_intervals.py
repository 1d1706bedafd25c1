"""
Intervals that widen
====================

A prediction interval should be wide where the data are noisy, and wider where there are none.
Conformal intervals contain the requested share of new rows, if these are like the training rows.
Standard deviations grow where the data end.
"""

# %%
# The noise grows from left to right, and there is a gap without rows.
import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 900)
x = x[(x < 5) | (x > 6.5)]
y = np.sin(1.5 * x) + (0.03 + 0.05 * x) * rng.standard_normal(len(x))
grid = np.linspace(-1.5, 11.5, 400)[:, None]

# %%
# ``conformal="split"`` holds out a fifth of the rows and counts errors on them, scaled by a
# learned spread. ``return_std=True`` is the standard deviation of a new observation.
model = KernelRidge("matern52", conformal="split", random_state=0).fit(x[:, None], y)
low, high = model.predict_interval(grid, level=0.9).T
mean, std = (
    KernelRidge("matern52", random_state=0).fit(x[:, None], y).predict(grid, return_std=True)
)

figure, all_axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
bands = {
    "Conformal, 90 %: follows the noise": (model.predict(grid), low, high),
    "Mean ± 1.64 deviations: follows the gaps": (mean, mean - 1.64 * std, mean + 1.64 * std),
}
for axes, (name, (middle, lower, upper)) in zip(all_axes, bands.items(), strict=True):
    axes.scatter(x, y, s=4, color="0.5")
    axes.plot(grid, middle, color="C0")
    axes.fill_between(grid[:, 0], lower, upper, color="C0", alpha=0.25, linewidth=0)
    axes.set(title=name, xlabel="x", ylim=(-4, 4))
plt.show()

# %%
# The left band guarantees a number: the share of new rows inside.
x_new = x[rng.permutation(len(x))][:400] + 0.01 * rng.standard_normal(400)
y_new = np.sin(1.5 * x_new) + (0.03 + 0.05 * x_new) * rng.standard_normal(400)
low, high = model.predict_interval(x_new[:, None], level=0.9).T
print(f"{np.mean((low <= y_new) & (y_new <= high)):.2f} of new rows inside, 0.90 asked for")
