"""Entries of a kernel matrix, and gradients of functions of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._arrays import Float
from ..kernels import Kernel, L1Laplacian
from ..kernels.radial.base import Radial


def is_differentiable(kernel: Kernel) -> bool:
    """Return whether `gradients` supports a kernel: of the Euclidean distance, or L1 Laplacian."""
    radial = isinstance(kernel, Radial) and kernel.differentiable
    return radial or isinstance(kernel, L1Laplacian)


def entries(
    kernel: Kernel, X: Float[np.ndarray, "n d"], Z: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "n m"]:
    """Return k(x, z) at lengthscale 1."""
    return _unit(kernel)(X, Z)


def gradients(
    kernel: Kernel,
    X: Float[np.ndarray, "n d"],
    Z: Float[np.ndarray, "m d"],
    outer: Float[np.ndarray, "n m"],
) -> Float[np.ndarray, "n d"]:
    """Return gradients with respect to X of a function of the entries, its gradient being `outer`.

    Cost: slopes of n m entries, n m d operations. At equal points, a kernel with a kink counts as
    flat.
    """
    unit, ones = _unit(kernel), np.ones((len(Z), 1))
    rows, points = unit.prepare(X, "left"), unit.prepare(Z, "right")
    return unit.gradients(rows, points, ones, outer)[:, 0]


def _unit(kernel: Any) -> Kernel:
    unit: Kernel = replace(kernel, lengthscale=1.0)
    return unit
