"""Products of bfloat16 pieces on a matrix unit, used where they are precise enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import _arrays as xp
from ...kernels import Radial
from ...kernels.radial.base import NEAR_RATIO, product_error, remaining_error
from .._tiles.precision import BFLOAT16_BITS, FAST_LIMIT, ROUNDING_LIMIT, two_pieces_error

MOST_NEAR = 0.1
"""Pairs nearer than the root of this share of their norm may be computed twice, not more."""


@dataclass(frozen=True)
class Bfloat16Split:
    """Split of coordinates into sums of 2 or 3 bfloat16 numbers, with the limits of its precision.

    Pairs with ``s < near * scale * |x|²`` are recomputed from differences if the kernel is sharp.
    """

    pieces: int
    near: float


@dataclass(frozen=True)
class Choice:
    """A number of pieces, with its error limit, and the number of features that makes it faster."""

    pieces: int
    limit: float
    features: int


SPLIT_CHOICES = {
    "exact": (),
    "auto": (six := Choice(3, ROUNDING_LIMIT, 64),),
    "fast": (Choice(2, FAST_LIMIT, 9), six),
}
"""Ways to split numbers that each precision tries, in order.

Pairs per second of `normal` and t = 1 relative to float32 tiles, measured on one core with AMX: six
products (of three pieces) 0.8, 0.9, 1.2 and 1.2 times as many at d = 4, 18, 90 and 784; three
products 0.8, 1.2, 1.8, 2.6 times. A step of the unit takes 32 features, used or not.
"""


def piece_bytes(d: int) -> int:
    """Return the bytes of a row in three pieces, padded to multiples of 32 features."""
    return 6 * 32 * -(-d // 32)


def split_for(
    kernel: Radial, reach: float, fourth: Callable[[], float], d: int, precision: str
) -> Bfloat16Split | None:
    """Return the split of float32 rows into pieces; None if their products are not precise enough.

    - `reach`: largest squared norm of a centered column, in lengthscales.
    - `fourth`: returns the largest sum of the fourth powers of the coordinates of a column.
    - `d`: number of features.
    """
    for choice in SPLIT_CHOICES[precision]:
        # The negated comparison also rejects NaN, for which every other comparison is false.
        if d < choice.features or not reach < float("inf"):
            continue
        error = split_error(choice.pieces, reach, fourth, d)
        # The bound is relative to |x|², so that the tiles need one factor for all pairs.
        near = NEAR_RATIO * error / reach if reach > 0 else 0.0
        if _entry_error(kernel, error) <= choice.limit and not (kernel.sharp and near > MOST_NEAR):
            return Bfloat16Split(choice.pieces, near)
    return None


def split_error(pieces: int, reach: float, fourth: Callable[[], float], d: int) -> float:
    """Return the error of squared distances, in lengthscales, from products of `pieces`.

    Three pieces represent a float32 number exactly, so that only sums are rounded; two pieces lose
    digits. Measured on normal and heavy-tailed points, near-duplicates, and points with one feature
    far larger than the others, in 1 to 784 dimensions, the largest errors of entries are 0.1 to 1.4
    times this estimate where it is close to a limit.
    """
    error = product_error(xp.finfo(xp.float32).eps, reach, d)
    # Two pieces omit digits, and the fourth powers cost a pass over the columns: they are computed
    # only here.
    if pieces == 2:
        error += two_pieces_error(BFLOAT16_BITS, reach, fourth() ** 0.5)
    return error


def _entry_error(kernel: Radial, error: float) -> float:
    s_error = abs(kernel.scale) * error
    return remaining_error(s_error) if kernel.sharp else kernel.slope * s_error
