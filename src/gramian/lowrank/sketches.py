"""Random matrices Omega of a sketch H Omega: normal, Hadamard and sparse sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream

SIGNS_PER_ROW = 8
"""Entries in a row of a sparse sign matrix, at most its number of columns."""


def normal_matrix(
    p: int, rank: int, dtype: xp.DType, rng: RandomStream
) -> Float[np.ndarray, "p r"]:
    """Return independent normal numbers."""
    return rng.standard_normal((p, rank), dtype)


def hadamard_matrix(
    p: int, rank: int, dtype: xp.DType, rng: RandomStream
) -> Float[np.ndarray, "p r"]:
    """Return random columns of a Hadamard matrix, with random signs of the rows.

    Rows beyond p of the Hadamard matrix, whose size is a power of two, are left out.
    """
    size = 1 << max(p - 1, 0).bit_length()
    columns = rng.sample(size, rank).astype(np.uint64)
    # Entry (i, j) of the Hadamard matrix is -1 to the number of bits that i and j share.
    parity = np.bitwise_count(np.arange(p, dtype=np.uint64)[:, None] & columns) % 2
    signs = 1 - 2 * rng.integers(2, (p, 1))
    return (signs * (1 - 2.0 * parity)).astype(xp.numpy_dtype(dtype))


def sparse_sign_matrix(
    p: int, rank: int, dtype: xp.DType, rng: RandomStream
) -> Float[np.ndarray, "p r"]:
    """Return rows with `SIGNS_PER_ROW` signs at random places, and zeros."""
    count = min(SIGNS_PER_ROW, rank)
    # The least of random keys are at random places, all different.
    places = np.argpartition(rng.random((p, rank)), count - 1, axis=1)[:, :count]
    omega = np.zeros((p, rank), xp.numpy_dtype(dtype))
    np.put_along_axis(omega, places, 1.0 - 2.0 * rng.integers(2, (p, count)), axis=1)
    return omega


TEST_MATRICES: dict[str, Callable[[int, int, xp.DType, RandomStream], Array]] = {
    "normal": normal_matrix,
    "hadamard": hadamard_matrix,
    "sparse_sign": sparse_sign_matrix,
}
"""Test matrices by name, each of a number of rows and columns."""
