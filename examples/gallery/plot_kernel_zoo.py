"""
A zoo of kernels
================

A kernel encodes an assumption about functions. Top: the similarity of two points by distance.
Middle: random functions under this assumption. Bottom: the fit to the same eight points.
"""

# %%
# All kernels have one lengthscale, and the periodic kernel also has a period.
import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge
from gramian._arrays import RandomStream
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
# Random functions are samples of the Gaussian process of the kernel: a square root of its matrix,
# times normal numbers, which are the same for each kernel.
normal = RandomStream(3).standard_normal((301, 3), np.float64)
figure, all_axes = plt.subplots(
    3, len(zoo), figsize=(14, 6), sharex=True, sharey="row", layout="constrained"
)
for (name, kernel), (above, middle, below) in zip(zoo.items(), all_axes.T, strict=True):
    K = KernelOperator(kernel, grid, grid).dense()
    above.plot(grid, K[150], color="C1")
    values, vectors = np.linalg.eigh(K)
    middle.plot(grid, vectors @ (np.sqrt(values.clip(min=0))[:, None] * normal), linewidth=1)
    fit = KernelRidge(kernel, penalty=3e-3, standardize=False).fit(x, y)
    below.plot(grid, fit.predict(grid), color="C0")
    below.scatter(x, y, s=14, color="0.3", zorder=3)
    above.set_title(name)
all_axes[0, 0].set_ylabel("k(0, x)")
all_axes[1, 0].set_ylabel("random functions")
all_axes[2, 0].set(ylabel="fits", ylim=(-3, 3))
plt.show()

# %%
# Rough kernels follow data that jump; smooth kernels need fewer rows if the truth is smooth. Far
# from all rows, most functions return to the mean, a periodic one repeats, and a sum with a linear
# kernel continues the trend. Kernels can be added, multiplied, and restricted to features,
# ``kernel.on([0, 1])``. How to choose a kernel: :doc:`/choosing`.
