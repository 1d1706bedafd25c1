"""Samples of rows for EigenPro: eigenpairs of one, and the residual of these in another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, RandomStream
from ..data import RowSource, as_rows
from ..lowrank import block_columns, largest_eigenvalue, subspace_eigenpairs
from ..operators import KernelOperator, diagonal

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


BLOCK_ENTRIES = 1 << 22
"""Entries of rows against the sample, computed at once."""


@dataclass(frozen=True)
class Sample:
    """Sample of rows, with the square roots of their weights."""

    K: KernelOperator
    index: Array
    rows: RowSource
    root: Array
    weighs: bool

    @classmethod
    def take(
        cls,
        K: KernelOperator,
        index: Array,
        weights: Array | None,
        change: Callable[[Array], Array] | None,
    ) -> Sample:
        """Return rows `index` of an operator, transformed by `change`, with their weights."""
        points = K.rows.take(index)
        rows = as_rows(K.on_device(points if change is None else change(points)))
        row_weights = xp.ones(len(index), xp.float32) if weights is None else weights[index]
        root = xp.sqrt(xp.cast(xp.to_device(row_weights, K.device), xp.float64))
        return cls(K, index, rows, root, weights is not None)

    def against(self, other: Sample) -> KernelOperator:
        """Return the operator of these rows with another sample."""
        return replace(self.K, rows=self.rows, cols=other.rows)

    def weigh_(self, G: Array, other: Sample) -> Array:
        """Multiply entries against another sample by the roots of weights, in place."""
        if self.weighs:
            G *= xp.cast_like(self.root[:, None], G)
            G *= xp.cast_like(other.root, G)
        return G


@dataclass(frozen=True)
class ResidualMatrix:
    """Residual matrix G - B B' of h fresh rows, which the preconditioner does not flatten."""

    G: Array
    B: Array

    @classmethod
    def build(cls, fresh: Sample, sample: Sample, V: Array, ridge: float, n: int) -> ResidualMatrix:
        """Build the matrix of fresh rows from the sample, its unscaled eigenvectors V, and n."""
        G = fresh.weigh_(fresh.against(fresh).dense(), fresh)
        xp.add_(xp.diagonal(G), ridge)
        B = fresh.root[:, None] * (fresh.against(sample) @ (sample.root[:, None] * V))
        h, s = len(fresh.index), len(sample.index)
        # Rows in both samples; `EigenProFactor.build` takes them from the two ends of one order.
        shared = s if fresh is sample else h + s - n
        if shared > 0:
            # The ridge is part of the kernel k + ridge [x = x'], so it enters where a row meets
            # itself.
            B[:shared] += ridge * V[s - shared :]
        return cls(G, xp.cast(B, G.dtype))

    def scale(self, factors: Array) -> ResidualMatrix:
        """Return the residual matrix for eigenvectors multiplied by factors."""
        return ResidualMatrix(self.G, self.B * xp.cast_like(factors, self.B))

    def diagonal(self) -> float:
        """Return the largest diagonal entry of the residual matrix."""
        return float((xp.diagonal(self.G) - xp.square(self.B).sum(axis=1)).max())

    def largest(self, rng: RandomStream) -> float:
        """Return the largest eigenvalue of the residual matrix over its number of rows, or 0."""
        start = xp.cast_like(rng.standard_normal((len(self.G), 1), self.G.dtype), self.G)
        # The matrix is never formed: the product with its low-rank part is cheaper.
        value = largest_eigenvalue(lambda v: self.G @ v - self.B @ (self.B.T @ v), start)
        # Rounding may make a residual negative if the sample is the same rows.
        return max(value, 0.0) / len(self.G)


def largest_residual(
    K: KernelOperator,
    sample: Sample,
    E: Array,
    ridge: float,
    weights: Array | None,
    features_bytes: int = 0,
) -> tuple[float, Array | None]:
    """Return the largest residual diagonal entry of all rows, for scaled eigenvectors E.

    The second result is K(X, X_s) E, multiplied by the roots of the sample's weights; None if it
    takes more than `features_bytes`. Cost: n s kernel evaluations and 2 n s q operations, in one
    pass over the rows.
    """
    largest, s, shape = 0.0, len(sample.index), (K.shape[0], E.shape[1])
    features = None
    if shape[0] * shape[1] * K.dtype.itemsize <= features_bytes:
        features = xp.empty(shape, K.dtype, like=K)
    # The product runs in the dtype of the entries, because it is the cost of the pass.
    U = xp.cast(sample.root[:, None] * E, K.dtype)
    k = diagonal(K, K.rows)
    k = k if weights is None else k * xp.cast_like(weights, k)
    size = max(1, min(BLOCK_ENTRIES // s, K.memory_bytes // (4 * s * K.dtype.itemsize)))
    for rows, block in K.fed_rows().blocks(size):
        # `dense` evaluates by blocks of the sample, too, where memory is short.
        B = replace(K, rows=as_rows(block), cols=sample.rows).dense() @ U
        if features is not None:
            features[rows] = B
        B = xp.to_float64(B)
        if weights is not None:
            B *= xp.sqrt(xp.cast_like(weights[rows], B))[:, None]
        inside = (sample.index >= rows.start) & (sample.index < rows.stop)
        # Rows of the sample meet themselves, where the ridge is part of the kernel.
        B[sample.index[inside] - rows.start] += ridge * E[xp.to_device(inside, E.device)]
        largest = max(largest, float((k[rows] + ridge - xp.square(B).sum(axis=1)).max()))
    return largest, features
