"""
A zoo of kernels
================

A kernel is a belief about functions. Above, how alike two points are at a distance; in the middle,
functions drawn at random from the belief; below, what it makes of the same eight points.
"""

# %%
# All have one lengthscale, but for the periodic kernel, which has a period, too.
import matplotlib.pyplot as plt
import numpy as np
import torch

from gramian import KernelRidge
from gramian.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from gramian.operators import KernelOperator

zoo = {
    "Laplacian": Laplacian(1.0),
    "Matérn 3/2": Matern32(1.0),
    "Matérn 5/2": Matern52(1.0),
    "Gaussian": Gaussian(1.0),
    "rational quadratic": RationalQuadratic(1.0),
    "periodic": Periodic(1.0, period=3.0),
    "0.1 linear + Gaussian": 0.1 * Linear() + Gaussian(1.0),
}
grid = np.linspace(-5, 5, 301)[:, None]
x = np.array([-3.2, -2.5, -1.1, -0.4, 0.6, 1.3, 1.9, 2.4])[:, None]
y = np.sin(2 * np.pi * x[:, 0] / 3) + 0.2 * x[:, 0]

# %%
# Random functions are the Gaussian process of the kernel: a square root of its matrix, times
# normal numbers. The same numbers for each kernel.
normal = torch.randn(301, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
figure, all_axes = plt.subplots(
    3, len(zoo), figsize=(14, 6), sharex=True, sharey="row", layout="constrained"
)
for (name, kernel), (above, middle, below) in zip(zoo.items(), all_axes.T, strict=True):
    K = KernelOperator(kernel, grid, grid).dense()
    above.plot(grid, K[150], color="C1")
    values, vectors = torch.linalg.eigh(K)
    middle.plot(grid, vectors @ (values.clamp(min=0).sqrt()[:, None] * normal), linewidth=1)
    fit = KernelRidge(kernel, penalty=3e-3, standardize=False).fit(x, y)
    below.plot(grid, fit.predict(grid), color="C0")
    below.scatter(x, y, s=14, color="0.3", zorder=3)
    above.set_title(name)
all_axes[0, 0].set_ylabel("k(0, x)")
all_axes[1, 0].set_ylabel("random functions")
all_axes[2, 0].set(ylabel="fits", ylim=(-3, 3))
plt.show()

# %%
# Rough kernels follow data that jump, smooth ones need fewer rows where the truth is smooth. Away
# from all rows most functions go back to the mean; a periodic one repeats, a sum with a linear one
# goes on. Kernels are values: they are added, multiplied, and given single features,
# ``kernel.on([0, 1])``. Which one to take: :doc:`/choosing`.
