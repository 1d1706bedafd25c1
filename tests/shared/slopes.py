"""Gradients of predictors by complex steps, through kernels as papers write them.

The imaginary part of f(x + ih) / h is the derivative to all digits, as no difference is taken.

All s x m x d differences are there at once, which the library avoids. Where x = z, and where
coordinates are equal under the l1 distance, the slope of a kink is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 1e-30
"""The imaginary step h."""


def _distance(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances and distances, whose slope at zero is zero."""
    s = np.square(x[:, None] - z).sum(axis=2)
    same = (x.real[:, None] == z).all(axis=2)
    s = np.where(same, 0.0, s)
    return s, np.where(same, 0.0, np.sqrt(np.where(same, 1.0, s)))


def _magnitude(x: np.ndarray) -> np.ndarray:
    """Return |x| as a function with a derivative, 0 at 0."""
    return x * np.sign(x.real)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x).sum(axis=1))


def _of_distance(
    profile: Callable[[Any, np.ndarray, np.ndarray], np.ndarray],
) -> Callable[..., np.ndarray]:
    return lambda k, x, z: profile(k, *_distance(x, z))


KERNELS: dict[
    str, Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
] = {  # of rows in lengthscales
    "gaussian": _of_distance(lambda k, s, r: np.exp(-s / 2)),
    "laplacian": _of_distance(lambda k, s, r: np.exp(-r)),
    "matern12": _of_distance(lambda k, s, r: np.exp(-r)),
    "matern32": _of_distance(lambda k, s, r: (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r)),
    "matern52": _of_distance(lambda k, s, r: (1 + 5**0.5 * r + 5 / 3 * s) * np.exp(-(5**0.5) * r)),
    "rational_quadratic": _of_distance(lambda k, s, r: (1 + s / (2 * k.alpha)) ** -k.alpha),
    "l1_laplacian": lambda k, x, z: np.exp(-_magnitude(x[:, None] - z).sum(axis=2)),
    "linear": lambda k, x, z: x @ z.T,
    "polynomial": lambda k, x, z: (x @ z.T + k.coef0) ** k.degree,
    "cosine": lambda k, x, z: (x / _norm(x)[:, None]) @ (z / _norm(z)[:, None]).T,
    "chi_squared": lambda k, x, z: np.exp(
        -(np.square(x[:, None] - z) / (x[:, None] + z)).sum(axis=2)
    ),
    "tanimoto": lambda k, x, z: (
        x @ z.T / (np.square(x).sum(axis=1)[:, None] + np.square(z).sum(axis=1) - x @ z.T)
    ),
}


def entries(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel matrix, of complex rows, too."""
    name = kernel.to_dict()["name"]
    if name == "sum":
        return entries(kernel.first, x, z) + entries(kernel.second, x, z)
    if name == "product":
        return entries(kernel.first, x, z) * entries(kernel.second, x, z)
    if name == "scaled":
        return kernel.factor * entries(kernel.kernel, x, z)
    if name == "columns":
        columns = list(kernel.columns)
        return entries(kernel.kernel, x[:, columns], z[:, columns])
    scale = np.array(kernel.lengthscale)
    if name == "periodic":
        period = np.array(kernel.period)
        sines = np.sin(np.pi * (x[:, None] - z) / period)
        return np.exp(-2 * np.square(sines / scale).sum(axis=2))
    # Products: quotients of complex numbers are rounded otherwise than those of real ones.
    return KERNELS[name](kernel, x * (1 / scale), z * (1 / scale))


def gradients(kernel: Any, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the gradients at the rows of x of the predictors k(., z) v, (b, t, d)."""
    steps = 1j * STEP * np.eye(x.shape[1])
    columns = [(entries(kernel, x + step, z) @ v).imag / STEP for step in steps]
    return np.stack(columns, axis=2).astype(x.dtype)


def steepest(kernel: Any) -> float:
    """Return one over the shortest lengthscale in a kernel."""
    named = kernel.get_params().items()
    scales = [np.array(value).min() for name, value in named if name.endswith("lengthscale")]
    return float(1 / min(scales))


def sizes(kernel: Any, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return what errors of gradients are relative to, (b, t, 1): the sum of what terms may be."""
    x, z, v = x.astype(np.float64), z.astype(np.float64), v.astype(np.float64)
    left, right = (kernel.diag(side).clip(min=1.0) for side in (x, z))
    most = np.sqrt(np.outer(left, right)) * (1 + steepest(kernel))
    return (most @ np.abs(v))[:, :, None]
