"""Choice of a precise way to compute distances in fused tiles, and limits of their memory."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from ...kernels import Kernel, L1Laplacian, Radial
from ...kernels.radial.base import product_error
from .._tiles.precision import (
    BFLOAT16_BITS,
    FAST_LIMIT,
    FEW_FEATURES,
    ROUNDING_LIMIT,
    two_pieces_error,
)

SPLIT_ROWS = 1 << 18
"""Rows of sums at most that are kept apart, for columns that several programs share."""

SCRATCH_BYTES = 1 << 27
"""Memory for entries that `normal` keeps, or for sums of columns that `symmetric` keeps apart."""


Product = Literal["3xbf16", "3xtf32", "ieee"]
"""Ways to multiply two float32 matrices, the cheapest first."""

Distance = Product | Literal["difference", "absolute"]
"""Ways to compute s of a tile: by such a product, or from differences."""

PRODUCT_PRECISIONS: tuple[Product, ...] = get_args(Product)

ERROR_LIMITS: dict[str, float] = {
    "ieee": ROUNDING_LIMIT,
    "3xtf32": ROUNDING_LIMIT,
    "3xbf16": FAST_LIMIT,
}
"""Largest error of a kernel entry, by estimate, that each way to multiply may cause."""

PIECE_BITS: dict[str, int] = {"3xtf32": 11, "3xbf16": BFLOAT16_BITS}
"""Significant bits of the two pieces of a number."""


def squared_error(way: str, reach: float, fourth: float, d: int) -> float:
    """Return the error of squared distances of near rows from norms and a product.

    Parameters as for `choose`.
    """
    error = product_error(torch.finfo(torch.float32).eps, reach, d)
    if way in PIECE_BITS:
        error += two_pieces_error(PIECE_BITS[way], reach, fourth)
    return error


def choose(kernel: Kernel, reach: float, fourth: float, d: int, precision: str) -> Distance | None:
    """Return the way to compute distances; None if no way in float32 is precise enough.

    Products are cheapest and lose digits by cancellation. With few features, and if the kernel
    turns a rounding error into its square root, differences are used instead: they lose only the
    rounding of the coordinates.

    - `kernel`: a radial kernel or the l1 Laplacian.
    - `reach`: largest squared norm of a centered column, in lengthscales; the largest l1 norm for
      the l1 Laplacian. It also bounds the rows that matter: only pairs of near points have large
      entries.
    - `fourth`: the largest root of the sum of the fourth powers of the coordinates of a column.
    - `d`: number of features.
    - `precision`: preferred product; if it is not precise enough, ``"ieee"`` is tried.
    """
    eps = torch.finfo(torch.float32).eps
    if not isinstance(kernel, Radial):
        close = isinstance(kernel, L1Laplacian) and eps * reach <= ROUNDING_LIMIT
        return "absolute" if close else None
    if d > FEW_FEATURES and not kernel.sharp:
        scale = abs(kernel.scale)
        for way in PRODUCT_PRECISIONS:
            error = scale * squared_error(way, reach, fourth, d)
            if way in (precision, "ieee") and error * kernel.slope <= ERROR_LIMITS[way]:
                return way
    return "difference" if eps * reach**0.5 <= ROUNDING_LIMIT else None
