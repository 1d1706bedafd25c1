"""A product with a kernel matrix that several programs compute, and its exact value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import Array, RandomStream
from gramian.kernels import Kernel

M = 5000
"""Columns of the kernel matrix."""

CHUNK = 10_000
"""Rows at a time of contenders that form entries."""


@dataclass
class Case:
    """One product to be computed by several contenders."""

    x: np.ndarray
    z: np.ndarray
    v: np.ndarray
    y: np.ndarray
    kernel: Kernel
    lengthscale: float
    normal: bool

    @classmethod
    def draw(cls, n: int, d: int, t: int, dtype: np.dtype, normal: bool, **change: Any) -> Case:
        rng = RandomStream(0)
        x = rng.standard_normal((n, d), np.float32)
        z = x[rng.permutation(n)[:M]] if change.get("near") else None
        z = rng.standard_normal((M, d), np.float32) if z is None else z
        x, z = (xp.cast(a + change.get("offset", 0.0), dtype) for a in (x, z))
        v, y = (xp.cast(rng.standard_normal((k, t), np.float32), dtype) for k in (M, n))
        scale = change.get("lengthscale", math.sqrt(d))
        name = change.get("kernel", "gaussian")
        return cls(x, z, v, y, kernels.make(name, lengthscale=scale), scale, normal)

    @property
    def pairs(self) -> float:
        return float(len(self.x)) * M


def exact(case: Case) -> Array:
    """Compute the product in float64 from differences, or from norms if there are many features."""
    out, z, v = [], xp.to_float64(case.z), xp.to_float64(case.v)
    for i in range(0, len(case.x), 2000):
        x = xp.to_float64(case.x[i : i + 2000])
        if x.shape[1] <= 100:
            squares = xp.cdist(x, z) ** 2
        else:
            squares = (x**2).sum(axis=1)[:, None] + (z**2).sum(axis=1) - 2 * (x @ z.T)
        K = xp.exp(-squares / case.lengthscale**2 / 2)
        u = K @ v
        out.append(K.T @ (u - xp.to_float64(case.y[i : i + 2000])) if case.normal else u)
    return sum(out[1:], out[0]) if case.normal else xp.concat(out)


def keops(case: Case) -> Array:
    """Return a product by KeOps, which compiles a program for each number of features."""
    import torch
    from pykeops.torch import LazyTensor

    x, z, v, y = (torch.as_tensor(points) for points in (case.x, case.z, case.v, case.y))
    x, z = x / case.lengthscale, z / case.lengthscale
    K = (-((LazyTensor(x[:, None]) - LazyTensor(z[None])) ** 2).sum(-1) / 2).exp()
    return K.T @ (K @ v - y) if case.normal else K @ v
