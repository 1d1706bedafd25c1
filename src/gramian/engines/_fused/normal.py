"""Product K' W (K v - y), and gradients, by fused tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..._linalg import multiply_in_blocks
from ...kernels import Radial
from .._devices import torch_keeps_float32
from .distances import SCRATCH_BYTES
from .points import PADDED_ROWS
from .products import TARGET_COLUMNS, Fused
from .profiles import SLOPE_OF_KERNEL


def gradients(kernel: Radial, x: Tensor, z: Tensor, v: Tensor, K: Fused) -> Tensor:
    """Return the gradients of K v at the rows of x, (b, t, d) in float64.

    Slopes replace entries, and products of v with each feature and with one replace v. Slopes are
    computed again for every `TARGET_COLUMNS` columns of these products.

    - `kernel`: a kernel in `SLOPE_OF_KERNEL`.
    - `K`: fused matrix of this kernel and these rows.
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


H200_FLOPS: dict[str, float] = {"ieee": 67e12, "3xtf32": 133e12, "3xbf16": 261e12}
"""Operations that an H200 does in a second, of a product in each precision."""

H200_EXPONENTIALS = 3.9e12
"""Exponentials that an H200 computes in a second. Other cards have other figures: these decide only
whether entries are kept or computed twice, and no result."""

H200_BANDWIDTH = 4e12
"""Bytes of its memory that it reads or writes in a second."""

LEAST_ROWS = 1024
"""Rows of a piece that is kept at least: below, starting the products takes longer."""


@dataclass(frozen=True)
class Normal:
    """The product c K' W (c K v - y) in float64, where c is the factor of a kernel.

    - `weights`: the diagonal of W, ones if None.
    - `targets`: the targets y, zero if None.
    """

    K: Fused
    factor: float
    weights: Tensor | None
    targets: Tensor | None

    def __call__(self, v: Tensor | None, t: int) -> Tensor:
        """Return the product in the cheaper way; without `v`, -c K' W y with t columns."""
        K = self.K
        if v is None:
            # The residual starts from K v = 0, so that no entry is evaluated for the first product.
            none = K.left.rows.new_zeros(K.left.n, t, dtype=torch.float64)
            return self._multiply_back(self._residual(none, slice(None)))
        # Kept entries are multiplied by torch, which in TF32 would keep three digits of them.
        possible = _piece(K) >= LEAST_ROWS and torch_keeps_float32()
        if possible and keeping_is_cheaper(K.constants["DISTANCE"], K.precision, K.features, t):
            return self.multiply_storing(v)
        return self.multiply_recomputing(v)

    def multiply_recomputing(self, v: Tensor) -> Tensor:
        """Compute entries for K v, and again for the product with K'."""
        return self._multiply_back(self._residual(self.K @ v, slice(None)))

    def multiply_storing(self, v: Tensor) -> Tensor:
        """Compute entries once and store them, `SCRATCH_BYTES` at a time."""
        total = v.new_zeros(v.shape, dtype=torch.float64)
        step = _piece(self.K)
        for start in range(0, self.K.left.n, step):
            self._add(self.K.part(start, step).dense(), start, v, total)
        return total.mul_(self.factor)

    def _add(self, piece: Tensor, start: int, v: Tensor, total: Tensor) -> None:
        u = self._residual(multiply_in_blocks(piece, v), slice(start, start + len(piece)))
        total += multiply_in_blocks(piece.T, u)

    def _residual(self, Kv: Tensor, rows: slice) -> Tensor:
        u = Kv.mul_(self.factor)
        if self.targets is not None:
            u -= self.targets[rows]
        return u if self.weights is None else u.mul_(self.weights[rows, None])

    def _multiply_back(self, u: Tensor) -> Tensor:
        return (self.K.T @ u).mul_(self.factor)


def keeping_is_cheaper(distance: str, precision: str, d: int, t: int) -> bool:
    """Return whether recomputing an entry costs more than storing it, estimated for an H200.

    An evaluation costs 2 d operations of a product, or 4 d for differences in float32, and an
    exponential. Recomputing takes a second evaluation, and two more for every further
    `TARGET_COLUMNS` columns of v. A stored entry is written once and read twice, 12 bytes or 3 ps,
    and both products with vectors, 4 t operations, run in float32. With t = 1, entries from
    products are stored from 92 features on with ``"ieee"``, from 185 with ``"3xtf32"``, from 364
    with ``"3xbf16"``, and entries from differences from 47. This has not been measured on a GPU.
    """
    seconds_per_pair = (
        2 * d / H200_FLOPS[distance] if distance in H200_FLOPS else 4 * d / H200_FLOPS["ieee"]
    )
    # Both products evaluate entries once per group of targets, and keeping them saves all but one.
    repeats = 2 * -(-t // TARGET_COLUMNS) - 1
    compute = repeats * (seconds_per_pair + 1 / H200_EXPONENTIALS) + 4 * t / H200_FLOPS[precision]
    return 12 / H200_BANDWIDTH + 4 * t / H200_FLOPS["ieee"] < compute


def _piece(K: Fused) -> int:
    """Return the number of rows whose entries are stored at once, a multiple of `ROWS`, or 0."""
    return SCRATCH_BYTES // (4 * K.right.n * PADDED_ROWS) * PADDED_ROWS
