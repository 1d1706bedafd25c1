"""Kernels as papers write them, with NumPy and SciPy alone: the truth of every test of a kernel.

Of a kernel only its name and its parameters are read. One without an entry is tested, too: its
values are then those of one column at a time, where nothing cancels. An entry says that these are
right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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
    "cosine": lambda k, x, z: _units(x) @ _units(z).T,
    "tanimoto": lambda k, x, z: tanimoto(k.counts, x, z),
    "chi_squared": lambda k, x, z: np.exp(-_chi_squared(x[:, None], z).sum(axis=2)),
}


def _chi_squared(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    total = np.broadcast_to(x + z, np.broadcast_shapes(x.shape, z.shape))
    return np.divide((x - z) ** 2, total, out=np.zeros_like(total), where=total > 0)


def periodic(k: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the product over features, with lengthscales that have no unit."""
    turns = (x[:, None] - z) / np.array(k.period)
    return np.exp(-2 * (np.sin(np.pi * turns) ** 2 / np.array(k.lengthscale) ** 2).sum(axis=2))


def haversine(k: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel of rows (latitude, longitude), from the formula that it is called after."""
    x, z = (np.radians(side) if k.degrees else side for side in (x, z))
    half = np.sin((x[:, None] - z) / 2) ** 2
    h = half[..., 0] + np.cos(x[:, None, 0]) * np.cos(z[:, 0]) * half[..., 1]
    if k.profile == "matern12":
        return np.exp(-2 * k.radius * np.arcsin(np.sqrt(np.minimum(h, 1.0))) / k.lengthscale)
    r = 2 * k.radius * np.sqrt(h) / k.lengthscale
    return {
        "matern32": (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r),
        "matern52": (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r),
        "gaussian": np.exp(-(r**2) / 2),
    }[k.profile]


MAPPED: dict[str, Formula] = {"periodic": periodic, "haversine": haversine}
"""Kernels whose lengthscale is no unit of the features."""


def _units(x: np.ndarray) -> np.ndarray:
    norms = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return np.divide(x, norms, out=np.zeros_like(x), where=norms > 0)


def tanimoto(counts: str, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return what RDKit says of vectors of bits; and of counts, for "minmax"."""
    if counts == "product":
        shared = x @ z.T
        total = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - shared
    else:
        shared = np.minimum(x[:, None], z).sum(axis=2)
        total = np.maximum(x[:, None], z).sum(axis=2)
    return np.divide(shared, total, out=np.ones_like(shared), where=total > 0)


def suited(kernel: Any, *rows: Any) -> list[Any]:
    """Return rows that a kernel takes: without negative features, with latitude and longitude."""
    if kernel.to_dict()["name"] == "haversine":
        rows = tuple(20 * x[:, [0, -1]] for x in rows)
    return [abs(x) if kernel.nonnegative else x for x in rows]


def exact(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix of rows in float64, combinations of kernels included."""
    name = kernel.to_dict()["name"]
    if name == "sum":
        return exact(kernel.first, x, z) + exact(kernel.second, x, z)
    if name == "product":
        return exact(kernel.first, x, z) * exact(kernel.second, x, z)
    if name == "scaled":
        return kernel.factor * exact(kernel.kernel, x, z)
    if name == "columns":
        columns = list(kernel.columns)
        return exact(kernel.kernel, x[:, columns], z[:, columns])
    if name in MAPPED:
        return MAPPED[name](kernel, x, z)
    if name not in FORMULAS:
        return column_by_column(kernel, x, z)
    scale = np.array(kernel.lengthscale)
    return FORMULAS[name](kernel, x / scale, z / scale)


def column_by_column(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the matrix of a kernel without a formula: for each column, it is the origin."""
    left, right = x, z
    return np.concatenate([kernel(left, column[None]) for column in right], axis=1)
