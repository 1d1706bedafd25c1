"""Kernels as papers write them, with NumPy and SciPy alone: the truth of every test of a kernel.

Of a kernel only its name and its parameters are read. One without an entry is tested, too: its
values are then those of one column at a time, where nothing cancels. An entry says that these are
right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import cdist

Formula = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


def of_distance(profile: Callable[[np.ndarray], np.ndarray]) -> Formula:
    """Return the formula of a kernel that is a function of the Euclidean distance."""
    return lambda k, x, z: profile(cdist(x, z))


FORMULAS: dict[str, Formula] = {  # of the kernel, and of rows divided by its lengthscale
    "gaussian": of_distance(lambda r: np.exp(-(r**2) / 2)),
    "laplacian": of_distance(lambda r: np.exp(-r)),
    "matern12": of_distance(lambda r: np.exp(-r)),
    "matern32": of_distance(lambda r: (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r)),
    "matern52": of_distance(lambda r: (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r)),
    "rational_quadratic": lambda k, x, z: (
        (1 + cdist(x, z, "sqeuclidean") / (2 * k.alpha)) ** -k.alpha
    ),
    "l1_laplacian": lambda k, x, z: np.exp(-cdist(x, z, "cityblock")),
    "linear": lambda k, x, z: x @ z.T,
    "polynomial": lambda k, x, z: (x @ z.T + k.coef0) ** k.degree,
}


def exact(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix of rows in float64, combinations of kernels included."""
    name = kernel.to_dict()["name"]
    if name == "sum":
        return exact(kernel.first, x, z) + exact(kernel.second, x, z)
    if name == "product":
        return exact(kernel.first, x, z) * exact(kernel.second, x, z)
    if name == "scaled":
        return kernel.factor * exact(kernel.kernel, x, z)
    if name not in FORMULAS:
        return column_by_column(kernel, x, z)
    scale = np.array(kernel.lengthscale)
    return FORMULAS[name](kernel, x / scale, z / scale)


def column_by_column(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the matrix of a kernel without a formula: for each column, it is the origin."""
    left, right = torch.from_numpy(x), torch.from_numpy(z)
    return torch.cat([kernel(left, column[None]) for column in right], dim=1).numpy()
