"""Gradients of predictors by torch's autograd, through kernels as papers write them.

All s x m x d differences are there at once, which the library avoids. Where x = z, and where
coordinates are equal under the l1 distance, the slope of a kink is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _distance(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return squared distances and distances, whose slope at zero is zero."""
    s = (x[:, None] - z).square().sum(dim=2)
    same = s == 0
    return s, s.masked_fill(same, 1.0).sqrt().masked_fill(same, 0.0)


def _of_distance(profile: Callable[[Any, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda k, x, z: profile(k, *_distance(x, z))


KERNELS: dict[str, Callable[[Any, Tensor, Tensor], Tensor]] = {  # of rows in lengthscales
    "gaussian": _of_distance(lambda k, s, r: (-s / 2).exp()),
    "laplacian": _of_distance(lambda k, s, r: (-r).exp()),
    "matern12": _of_distance(lambda k, s, r: (-r).exp()),
    "matern32": _of_distance(lambda k, s, r: (1 + 3**0.5 * r) * (-(3**0.5) * r).exp()),
    "matern52": _of_distance(lambda k, s, r: (1 + 5**0.5 * r + 5 / 3 * s) * (-(5**0.5) * r).exp()),
    "rational_quadratic": _of_distance(lambda k, s, r: (1 + s / (2 * k.alpha)) ** -k.alpha),
    "l1_laplacian": lambda k, x, z: (-(x[:, None] - z).abs().sum(dim=2)).exp(),
    "linear": lambda k, x, z: x @ z.T,
    "polynomial": lambda k, x, z: (x @ z.T + k.coef0) ** k.degree,
    "cosine": lambda k, x, z: (x / x.norm(dim=1)[:, None]) @ (z / z.norm(dim=1)[:, None]).T,
    "chi_squared": lambda k, x, z: (
        -((x[:, None] - z).square() / (x[:, None] + z)).sum(dim=2)
    ).exp(),
    "tanimoto": lambda k, x, z: (
        x @ z.T / (x.square().sum(dim=1)[:, None] + z.square().sum(dim=1) - x @ z.T)
    ),
}


def entries(kernel: Any, x: Tensor, z: Tensor) -> Tensor:
    """Return the kernel matrix, through which autograd finds its way."""
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
    scale = torch.tensor(kernel.lengthscale, dtype=x.dtype)
    if name == "periodic":
        period = torch.tensor(kernel.period, dtype=x.dtype)
        sines = (torch.pi * (x[:, None] - z) / period).sin()
        return (-2 * (sines / scale).square().sum(dim=2)).exp()
    return KERNELS[name](kernel, x / scale, z / scale)


def gradients(kernel: Any, x: Tensor, z: Tensor, v: Tensor) -> Tensor:
    """Return the gradients at the rows of x of the predictors k(., z) v, (b, t, d)."""
    x = x.detach().clone().requires_grad_()
    f = entries(kernel, x, z) @ v
    columns = [
        torch.autograd.grad(f[:, c].sum(), x, retain_graph=True)[0] for c in range(f.shape[1])
    ]
    return torch.stack(columns, dim=1)


def steepest(kernel: Any) -> float:
    """Return one over the shortest lengthscale in a kernel."""
    named = kernel.get_params().items()
    scales = [torch.tensor(value).min() for name, value in named if name.endswith("lengthscale")]
    return float(1 / min(scales))


def sizes(kernel: Any, x: Tensor, z: Tensor, v: Tensor) -> Tensor:
    """Return what errors of gradients are relative to, (b, t, 1): the sum of what terms may be."""
    x, z, v = x.double(), z.double(), v.double()
    left, right = (kernel.diag(side).clamp(min=1.0) for side in (x, z))
    most = left.outer(right).sqrt() * (1 + steepest(kernel))
    return (most @ v.abs())[:, :, None]
