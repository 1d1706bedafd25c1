"""Approximation error of features: norms of K - F F', which is never formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, RandomStream
from .._messages.checks import readable_bytes
from ..operators import KernelOperator
from .base import FeatureMap

Norm = Literal["spectral", "frobenius", "trace"]
Strips = Callable[[], Iterator[tuple[slice, Array]]]


def spectral_error(
    K: KernelOperator,
    features: FeatureMap,
    *,
    rng: RandomStream,
    tol: float = 1e-3,
    max_products: int = 100,
) -> float:
    r"""Return :math:`\|K - F F^\top\|_2`, by the Lanczos method with products only.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap
    rng : RandomStream
        Draws the first vector.
    tol : float
        Stop when the residual of the largest eigenvalue is below this share of it. The result is
        then an eigenvalue. It underestimates the norm by a larger share only if the first vector is
        almost orthogonal to the largest eigenvector.
    max_products : int
        Largest number of products, after which the value is a lower bound.

    Notes
    -----
    Cost: n² kernel evaluations and the features of all rows per product, the features only once if
    ``8 n s`` bytes are within half of the memory of K; n numbers per product. Typically 10 to 40
    products, in float64 for all dtypes.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 10.1, with full
       reorthogonalisation.
    """
    difference = _Difference.of(K, features)
    n = K.shape[0]
    q = rng.standard_normal(n, xp.float64)
    basis = [q / xp.norm(q)]
    diagonal: list[Array] = []
    off: list[Array] = []
    value = 0.0
    for _ in range(min(max_products, n)):
        r = difference.matvec(basis[-1])
        diagonal.append(basis[-1] @ r)
        # Two passes suffice to keep the basis orthogonal to rounding.
        for _ in range(2):
            for vector in basis:
                r -= vector * (vector @ r)
        norm = xp.norm(r)
        value, last = _largest(diagonal, off)
        # The residual of a Ritz pair is the norm of r times the last entry of its vector.
        if float(norm) * last <= tol * value:
            break
        off.append(norm)
        basis.append(r / norm)
    return value


def _largest(diagonal: list[Array], off: list[Array]) -> tuple[float, float]:
    """Return the largest |eigenvalue| of the tridiagonal matrix, and its vector's last entry."""
    T = xp.diag_embed(xp.stack(diagonal))
    if off:
        T += xp.diag_embed(xp.stack(off), 1) + xp.diag_embed(xp.stack(off), -1)
    values, vectors = xp.eigh(T)
    # The difference has negative eigenvalues, too, unless the features are a projection.
    at = int(xp.abs(values).argmax())
    return float(xp.abs(values[at])), float(xp.abs(vectors[-1, at]))


def frobenius_error(K: KernelOperator, features: FeatureMap) -> float:
    r"""Return :math:`\|K - F F^\top\|_F`, entry by entry.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap

    Notes
    -----
    Cost: n² kernel evaluations and 2 n² s operations; features once for each strip of K, or once
    if ``8 n s`` bytes are within half of the memory of K. Memory: the rows of K and one strip.
    The expansion :math:`\|K\|_F^2 - 2 \mathrm{tr} F^\top K F + \|F^\top F\|_F^2` would need no
    n² s operations, but loses all digits for errors below 1e-8 of K.
    """
    difference = _Difference.of(K, features)
    total = xp.zeros((), xp.float64)
    for rows, strip in difference.K.strips():
        residual = xp.to_host(strip)
        F_rows = difference.rows_of(rows)
        # Entry by entry: the expansion by products of F'F and F'K F loses all digits of small
        # errors.
        for columns, F_columns in difference.strips():
            xp.addmm_(residual[:, columns], F_rows, F_columns.T, alpha=-1.0)
        total += xp.square(residual).sum()
    return float(xp.sqrt(total))


def trace_error(K: KernelOperator, features: FeatureMap) -> float:
    r"""Return the nuclear norm of K - F F' as its trace, exactly, in one pass over the rows.

    Trace and nuclear norm are equal for Nystrom features, for which K - F F' has no negative
    eigenvalue.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap

    Raises
    ------
    ValueError
        For features that are not a projection, like random Fourier features.

    Notes
    -----
    Cost: the features of all rows, no n². Differences in a row below ``eps k(x, x)`` are rounding.
    """
    if not features.projects:
        raise ValueError(
            f"norm='trace' without a sample needs features that are a projection, not a "
            f"{type(features).__name__}: K - F F' has negative eigenvalues, so its trace is not "
            "its trace norm; set a sample, whose eigenvalues can be computed"
        )
    # The two terms nearly cancel for good features: in float32 the rest would be rounding.
    K = K.double()
    total = 0.0
    for _, block, F in features.strips(K.rows, memory_bytes=K.memory_bytes):
        total += float((K.kernel.diag(block) - xp.square(F).sum(axis=1)).sum())
    return total


def sampled_error(
    K: KernelOperator, features: FeatureMap, norm: Norm, size: int, *, rng: RandomStream
) -> float:
    """Return the norm of a random square part of K - F F', computed as a dense matrix.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap
    norm : "spectral", "frobenius" or "trace"
        The trace norm is the sum of the absolute eigenvalues, also called nuclear.
    size : int
        Number of distinct rows; all rows if there are no more. The result is the norm of the size x
        size matrix, without scaling: at most the norm for all rows.
    rng : RandomStream

    Raises
    ------
    ValueError
        If the dense matrix exceeds the memory of K.

    Notes
    -----
    Cost: size² kernel evaluations, and for "spectral" and "trace" about 4 size³ / 3 operations;
    16 size² bytes.
    """
    n = K.shape[0]
    size = min(size, n)
    if 16 * size**2 > K.memory_bytes:
        raise ValueError(
            f"the dense matrix of a sample of {size:,} rows needs {readable_bytes(16 * size**2)}, "
            f"but {readable_bytes(K.memory_bytes)} are allowed; use fewer rows, or sample=None, "
            "which forms no matrix"
        )
    # Increasing numbers, because files are read in their order.
    index = xp.sort(rng.sample(n, size))
    K = K.double()
    # Indexing by one array twice keeps the diagonal exact.
    K = K[index, index]
    F = features.features(K.rows, memory_bytes=K.memory_bytes)
    difference = xp.addmm_(xp.to_host(K.dense()), F, F.T, alpha=-1.0)
    if norm == "frobenius":
        return float(xp.norm(difference))
    values = xp.abs(la.eigenvalues(difference))
    return float(values.max() if norm == "spectral" else values.sum())


@dataclass(frozen=True)
class _Difference:
    """K - F F' as a linear map in float64, with the features in memory if they fit."""

    K: KernelOperator
    features: FeatureMap
    stored: Array | None

    @classmethod
    def of(cls, K: KernelOperator, features: FeatureMap) -> _Difference:
        K = K.double()
        # The other half of the memory is for blocks of K.
        fits = 8 * K.shape[0] * features.width <= K.memory_bytes // 2
        stored = features.features(K.rows, memory_bytes=K.memory_bytes // 2) if fits else None
        return cls(K, features, stored)

    def strips(self) -> Iterator[tuple[slice, Array]]:
        """Yield the features of all rows in blocks."""
        if self.stored is not None:
            yield slice(0, len(self.stored)), self.stored
            return
        for rows, _, F in self.features.strips(self.K.rows, memory_bytes=self.K.memory_bytes // 4):
            yield rows, F

    def rows_of(self, rows: slice) -> Array:
        """Return the features of consecutive rows."""
        if self.stored is not None:
            return self.stored[rows]
        return self.features.apply(self.K.rows.take(xp.arange(rows.start, rows.stop)))

    def matvec(self, v: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return (K - F F') v."""
        product: Array = xp.to_host(self.K @ v)
        # All rows contribute to F'v before the first row of F (F'v): two passes over the
        # features.
        inner = xp.zeros(self.features.width, v.dtype)
        for rows, F in self.strips():
            inner += F.T @ v[rows]
        for rows, F in self.strips():
            product[rows] -= F @ inner
        return product
