"""Gradients of a predictor from fused tiles: products of slopes with v and v times features."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ...kernels import Radial
from .products import TARGET_COLUMNS, Fused
from .profiles import SLOPE_OF_KERNEL


def gradients(kernel: Radial, x: Tensor, z: Tensor, v: Tensor, K: Fused) -> Tensor:
    """Return the gradients of K v at the rows of x, (b, t, d) in float64.

    Slopes replace entries, and products of v with each feature and with one replace v. Slopes are
    computed again for every `TARGET_COLUMNS` columns of these products.

    Parameters
    ----------
    kernel : Radial
        A kernel in `SLOPE_OF_KERNEL`.
    x : Tensor of shape (b, d)
    z : Tensor of shape (m, d)
    v : Tensor of shape (m, t)
    K : Fused
        Fused matrix of this kernel and these rows.
    """
    (b, d), t = x.shape, v.shape[1]
    # The same prepared rows serve: only the profile, which is a compile-time constant, changes.
    slopes = replace(K, constants={**K.constants, "PROFILE": SLOPE_OF_KERNEL[type(kernel)]})
    # The padding is cut off. The rows are centered and scaled already, so differences lose no
    # digits.
    left_rows, right = K.left.rows[:b, :d].double(), K.right.rows[: len(z), :d]
    out = x.new_empty(b, t, d, dtype=torch.float64)
    # The gradient is x sum(v s) - sum(v s z): the column of ones yields the first sum in one
    # product.
    ones = torch.cat([right, torch.ones_like(right[:, :1])], dim=1)
    # One target needs d + 1 columns, and a product evaluates slopes once for `TARGET_COLUMNS` of
    # them.
    group_targets = max(TARGET_COLUMNS // (d + 1), 1)
    for c in range(0, t, group_targets):
        target_columns = v[:, c : c + group_targets].to(right.dtype)
        sums = (slopes @ (target_columns[:, :, None] * ones[:, None]).flatten(1)).view(b, -1, d + 1)
        out[:, c : c + group_targets] = left_rows[:, None] * sums[..., d:] - sums[..., :d]
    # The chain rule: s is a function of rows in lengthscales, and the 2 comes from the square.
    factors = kernel.scaled(torch.full((1, d), 2 * kernel.scale).double())[0]
    return out.mul_(factors.to(out.device))
