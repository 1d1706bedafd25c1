"""Eigenpairs of a subsample: choice of its size and of their number, computation, flattening."""

from __future__ import annotations

import math

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, RandomStream
from ..lowrank import block_columns, subspace_eigenpairs
from ._sample import Sample

MOST_EIGENPAIRS = 1000
"""Largest automatic number of eigenpairs."""

SMALL_SAMPLE, LARGE_SAMPLE, MANY_ROWS = 2000, 5000, 100_000
"""Rows of an automatic subsample, and the number of rows from which it is large."""

LEAST_AIMED_BATCH, LARGEST_AIMED_BATCH = 512, 4096
"""Bounds of the critical batch for an automatic rank, which is a quarter of the rows."""

SUBSPACE_ROWS = 500
"""Rows of the subsample above which subspace iteration computes few eigenvectors."""

BYTES_PER_PAIR = 28
"""Memory of the eigensolver per pair of rows in the subsample, including the matrix."""


def compute_eigenpairs(
    sample: Sample, ridge: float, k: int, rng: RandomStream, *, coarse: bool
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues and eigenvectors of the kernel of a sample, in float64.

    With `coarse`, they are computed in float32, and if k is small by subspace iteration.
    """
    K = sample.against(sample)
    H = sample.weigh_(K.dense() if coarse else K.double().dense(), sample)
    la.prepare_(H)
    xp.add_(xp.diagonal(H), ridge)
    if coarse and uses_subspace(len(H), k):
        values, vectors = subspace_eigenpairs(H, k, rng)
    else:
        values, vectors = la.top_eigenpairs(la.by_columns(H), k)
    return xp.to_float64(values), xp.to_float64(vectors)


def uses_subspace(s: int, k: int) -> bool:
    """Return whether subspace iteration computes k of s eigenvectors in float32."""
    return s > SUBSPACE_ROWS and block_columns(k) <= s // 4


def automatic_subsample(n: int, memory_bytes: int) -> int:
    """Return the size s of the subsample of n rows.

    The size is 2,000, or 5,000 from 100,000 rows on, and takes at most half of the memory.
    """
    automatic = SMALL_SAMPLE if n < MANY_ROWS else LARGE_SAMPLE
    return min(n, automatic, max(10, math.isqrt(memory_bytes // (2 * BYTES_PER_PAIR))))


def most_eigenpairs(s: int, n: int, most: int = MOST_EIGENPAIRS) -> int:
    """Return the largest number of eigenpairs from a subsample of s of n rows."""
    return min(most, s if s == n else s // 10)


def target_batch(n: int) -> int:
    """Return the critical batch that determines an automatic rank."""
    return min(max(n // 4, LEAST_AIMED_BATCH), LARGEST_AIMED_BATCH)


def automatic_rank(values: Array, most: int, beta: float, n: int) -> int:
    """Return the number of eigenvalues to flatten for the target batch."""
    needed = int((values * target_batch(n) > beta).sum())
    # Eigenvalues at the level of rounding have arbitrary vectors, which must not be flattened.
    nonzero = int((values > len(values) * la.FLOAT64_EPS * values[0]).sum())
    return min(max(needed, 5), most, nonzero)


def flattening(values: Array, exponent: float) -> Array:
    """Return (1 - (t / l_i)^a) / l_i for all eigenvalues l_i except the last one, t."""
    top, tail = values[:-1], values[-1]
    # Both branches of `where` are computed, so a safe divisor avoids 0 / 0 in the unused one.
    safe = xp.where(top > tail, top, 1.0)
    return xp.where(top > tail, (1 - (tail / safe) ** exponent) / safe, 0.0)
