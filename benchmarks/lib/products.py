"""A product with a kernel matrix that several programs compute, and its exact value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gramian import kernels
from gramian.kernels import Kernel

M = 5000
"""Columns of the kernel matrix."""

CHUNK = 10_000
"""Rows at a time of contenders that form entries."""


@dataclass
class Case:
    """One product to be computed by several contenders."""

    x: Tensor
    z: Tensor
    v: Tensor
    y: Tensor
    kernel: Kernel
    lengthscale: float
    normal: bool

    @classmethod
    def draw(cls, n: int, d: int, t: int, dtype: torch.dtype, normal: bool, **change: Any) -> Case:
        rng = torch.Generator().manual_seed(0)
        x = torch.randn(n, d, generator=rng)
        z = x[torch.randperm(n, generator=rng)[:M]] if change.get("near") else None
        z = torch.randn(M, d, generator=rng) if z is None else z
        x, z = ((a + change.get("offset", 0.0)).to(dtype) for a in (x, z))
        v, y = (torch.randn(k, t, generator=rng).to(dtype) for k in (M, n))
        scale = change.get("lengthscale", math.sqrt(d))
        name = change.get("kernel", "gaussian")
        return cls(x, z, v, y, kernels.make(name, lengthscale=scale), scale, normal)

    @property
    def pairs(self) -> float:
        return float(len(self.x)) * M


def exact(case: Case) -> Tensor:
    """Compute the product in float64 from differences, or from float64 norms in many dimensions."""
    mode = "donot_use_mm_for_euclid_dist" if case.x.shape[1] <= 100 else "use_mm_for_euclid_dist"
    out, z, v = [], case.z.double(), case.v.double()
    for i in range(0, len(case.x), 2000):
        s = torch.cdist(case.x[i : i + 2000].double(), z, compute_mode=mode) / case.lengthscale
        K = torch.exp(-(s**2) / 2)
        u = K @ v
        out.append(K.T @ (u - case.y[i : i + 2000].double()) if case.normal else u)
    return sum(out[1:], out[0]) if case.normal else torch.cat(out)


def keops(case: Case) -> Tensor:
    """Return a product by KeOps, which compiles a program for each number of features."""
    from pykeops.torch import LazyTensor

    x, z = (points / case.lengthscale for points in (case.x, case.z))
    K = (-((LazyTensor(x[:, None]) - LazyTensor(z[None])) ** 2).sum(-1) / 2).exp()
    return K.T @ (K @ case.v - case.y) if case.normal else K @ case.v
