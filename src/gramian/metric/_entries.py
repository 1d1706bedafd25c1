"""Entries of a kernel matrix as a differentiable function of both of its sides."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import Kernel, L1Laplacian
from ..kernels.radial.base import SAME_POINT_RATIO, Radial
from ..kernels.radial.cancellation import product_error


def entries(
    kernel: Kernel, X: Float[Tensor, "n d"], Z: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """Return k(x, z) at lengthscale 1, as a function that torch can differentiate.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the Euclidean distance that has gradients, or the l1 Laplacian.
    X : Tensor of shape (n, d)
        Rows divided by their lengthscales.
    Z : Tensor of shape (m, d)

    Notes
    -----
    Cost: entries and slopes forward, two products backward; two matrices of n m numbers. At equal
    points, a kernel with a kink counts as flat, like the diagonal of K_mm.
    """
    is_l1 = isinstance(kernel, L1Laplacian)
    function, arguments = (_L1Entries, (X, Z)) if is_l1 else (_RadialEntries, (kernel, X, Z))
    K: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return K


def is_differentiable(kernel: Kernel) -> bool:
    """Return whether `entries` supports a kernel."""
    radial = isinstance(kernel, Radial) and kernel.differentiable
    return radial or isinstance(kernel, L1Laplacian)


class _RadialEntries(torch.autograd.Function):
    """Profile of s = scale |x - z|²."""

    @staticmethod
    def forward(ctx: Any, kernel: Radial, X: Tensor, Z: Tensor) -> Tensor:
        # |x|² - 2 x'z + |z|² may be slightly negative by cancellation, hence the clamp.
        s = X.square().sum(dim=1)[:, None] + Z.square().sum(dim=1)
        s.addmm_(X, Z.t(), alpha=-2.0).clamp_(min=0.0).mul_(kernel.scale)
        # Slopes of copies, because `derivative` and `profile` overwrite their argument.
        if not kernel.sharp:
            slope = kernel.derivative(s.clone()).mul_(2 * kernel.scale)
        else:
            # The norms and the product of equal points cancel up to rounding, which depends on the
            # processor. A kink would magnify it: an error of 1e-16 in s is one of 1e-8 in the
            # distance.
            norms = kernel.scale * X.square().sum(dim=1)[:, None]
            rounding = 4 * product_error(torch.finfo(s.dtype).eps, 1.0, X.shape[1])
            s.masked_fill_(s <= norms * rounding, 0.0)
            slope = kernel.derivative(s.clone()).mul_(2 * kernel.scale)
            slope.masked_fill_(s <= norms * max(rounding, SAME_POINT_RATIO), 0.0)
        ctx.save_for_backward(X, Z, slope)
        return kernel.profile(s)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        X, Z, slope = ctx.saved_tensors
        S = outer[0] * slope
        dX = S.sum(dim=1)[:, None] * X - S @ Z
        return None, dX, S.sum(dim=0)[:, None] * Z - S.t() @ X


class _L1Entries(torch.autograd.Function):
    """Entries exp(-|x - z|₁)."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, Z: Tensor) -> Tensor:
        K = torch.cdist(X, Z, p=1.0).neg_().exp_()
        ctx.save_for_backward(X, Z, K)
        return K

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        X, Z, K = ctx.saved_tensors
        S = outer[0] * K
        # One feature at a time: n m d signs would exceed the memory.
        dX, dZ, signs = torch.empty_like(X), torch.empty_like(Z), torch.empty_like(S)
        for k in range(X.shape[1]):
            torch.sub(Z[:, k], X[:, k, None], out=signs)
            signs.sign_().mul_(S)
            dX[:, k], dZ[:, k] = signs.sum(dim=1), -signs.sum(dim=0)
        return dX, dZ
