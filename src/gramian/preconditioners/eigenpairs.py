"""Eigenpairs of a subsample: how many rows and pairs, how these are found and flattened."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import _linalg as la
from ..lowrank import block_columns, subspace_eigenpairs
from ._sample import Sample

MOST_EIGENPAIRS = 1000
"""Eigenpairs at most, if their number is automatic."""

SMALL_SAMPLE, LARGE_SAMPLE, MANY_ROWS = 2000, 5000, 100_000
"""Rows of an automatic subsample, and the number of rows from which it is the large one."""

LEAST_AIMED_BATCH, LARGEST_AIMED_BATCH = 512, 4096
"""The critical batch that an automatic rank aims at is a quarter of the rows, within these."""

SUBSPACE_ROWS = 500
"""Rows of the subsample beyond which few eigenvectors are found by subspace iteration."""

BYTES_PER_PAIR = 28
"""Memory of the eigensolver for each pair of rows of the subsample, with the matrix itself."""


def top_of(
    sample: Sample, ridge: float, k: int, rng: torch.Generator, *, coarsely: bool
) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues and their vectors of the kernel of a sample, float64.

    Coarsely: in float32, and few of them by subspace iteration.
    """
    K = sample.against(sample)
    H = sample.weighted_(K.dense() if coarsely else K.double().dense(), sample)
    la.prepare_(H)
    H.diagonal().add_(ridge)
    if coarsely and by_subspace(len(H), k):
        values, vectors = subspace_eigenpairs(H, k, rng)
    else:
        values, vectors = la.top_eigenpairs(la.by_columns(H), k)
    return values.double(), vectors.double()


def by_subspace(s: int, k: int) -> bool:
    """Return whether k of s eigenvectors in float32 are found by subspace iteration."""
    return s > SUBSPACE_ROWS and block_columns(k) <= s // 4


def automatic_subsample(n: int, memory_bytes: int) -> int:
    """Return s for n rows: 2,000, or 5,000 from 100,000 rows on, and what half the memory holds."""
    wanted = SMALL_SAMPLE if n < MANY_ROWS else LARGE_SAMPLE
    return min(n, wanted, max(10, math.isqrt(memory_bytes // (2 * BYTES_PER_PAIR))))


def most_eigenpairs(s: int, n: int, most: int = MOST_EIGENPAIRS) -> int:
    """Return the eigenpairs that a subsample of s of n rows gives at most."""
    return min(most, s if s == n else s // 10)


def aimed_batch(n: int) -> int:
    """Return the critical batch that an automatic rank aims at."""
    return min(max(n // 4, LEAST_AIMED_BATCH), LARGEST_AIMED_BATCH)


def automatic_rank(values: Tensor, most: int, beta: float, n: int) -> int:
    """Return how many of these eigenvalues the aimed batch asks for."""
    needed = int((values * aimed_batch(n) > beta).sum())
    nonzero = int((values > len(values) * la.EPS * values[0]).sum())
    return min(max(needed, 5), most, nonzero)


def flattening(values: Tensor, exponent: float) -> Tensor:
    """Return D_i = (1 - (t / l_i)^a) / l_i of q eigenvalues above t, which is the last value."""
    top, tail = values[:-1], values[-1]
    safe = torch.where(top > tail, top, 1.0)
    return torch.where(top > tail, (1 - (tail / safe) ** exponent) / safe, 0.0)
