"""The precision that engines promise of entries, and constants of what keeps that promise."""

from __future__ import annotations

ROUNDING_LIMIT = 6e-6
"""Largest error of a kernel entry that float32 distances may cause before float64 is used."""

FAST_LIMIT = 6e-5
"""Largest error of an entry from two bfloat16 pieces, by estimate; what is promised is 1e-4."""

FEW_FEATURES = 8
"""Up to so many, differences cost little more than a product of rows."""

BFLOAT16_BITS = 8
"""Significant bits of a bfloat16 number."""


def two_pieces_error(bits: int, reach: float, fourth: float) -> float:
    """Return the error of squared distances from two pieces of so many significant bits.

    Up to 2^-2bits / 4 of each coordinate is left out, and of each product of features as much: with
    signs like those of a random walk, but for the mean of the squares of the second pieces, which
    pairs near each other share. `fourth` is the root of the sum of the fourth powers.
    """
    return 2.0 ** (-1 - 2 * bits) * (0.25 * reach + 3.0 * fourth)
