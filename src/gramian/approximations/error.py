"""Approximation error of features: norms of K - F F', which is never formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from .._checks import readable_bytes
from ..operators import KernelOperator
from .base import FeatureMap

Norm = Literal["spectral", "frobenius", "trace"]
Strips = Callable[[], Iterator[tuple[slice, Tensor]]]


def spectral_error(
    K: KernelOperator,
    features: FeatureMap,
    *,
    rng: torch.Generator,
    tol: float = 1e-3,
    max_products: int = 100,
) -> float:
    r"""Return :math:`\|K - F F^\top\|_2`, by the Lanczos method on products alone.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap
    rng : torch.Generator
        For the first vector.
    tol : float
        It stops when the residual of the largest eigenvalue is below this share of it: the
        result is then an eigenvalue, and too small as the norm by more than that only if the
        first vector has almost no part in the largest eigenvector.
    max_products : int
        It stops then anyway; the value reached is a lower bound.

    Notes
    -----
    Cost: n² kernel evaluations and the features of all rows per product, these only once if
    ``8 n s`` bytes are within half of the memory of K; n numbers per product. Typically 10 to 40
    products. In float64 whatever the data.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 10.1, with full
       reorthogonalisation.
    """
    difference = _Difference.of(K, features)
    n = K.shape[0]
    q = torch.randn(n, generator=rng, dtype=torch.float64)
    basis = [q / q.norm()]
    diagonal: list[Tensor] = []
    off: list[Tensor] = []
    value = 0.0
    for _ in range(min(max_products, n)):
        r = difference.times(basis[-1])
        diagonal.append(basis[-1] @ r)
        for _ in range(2):  # twice is enough: the basis stays orthogonal to rounding
            for other in basis:
                r -= other * (other @ r)
        rest = r.norm()
        value, last = _largest(diagonal, off)
        if float(rest) * last <= tol * value:
            break
        off.append(rest)
        basis.append(r / rest)
    return value


def _largest(diagonal: list[Tensor], off: list[Tensor]) -> tuple[float, float]:
    """Return the largest |eigenvalue| of the tridiagonal matrix and its vector's last entry."""
    T = torch.diag(torch.stack(diagonal))
    if off:
        T += torch.diag(torch.stack(off), 1) + torch.diag(torch.stack(off), -1)
    values, vectors = torch.linalg.eigh(T)
    at = int(values.abs().argmax())
    return float(values[at].abs()), float(vectors[-1, at].abs())


def frobenius_error(K: KernelOperator, features: FeatureMap) -> float:
    r"""Return :math:`\|K - F F^\top\|_F`, entry by entry.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap

    Notes
    -----
    Cost: n² kernel evaluations and 2 n² s operations; features once for each strip of K, or once
    if ``8 n s`` bytes are within half of the memory of K. The rows of K and one strip are held.
    The expansion :math:`\|K\|_F^2 - 2 \mathrm{tr} F^\top K F + \|F^\top F\|_F^2` would need no
    n² s operations, but loses all digits once the error is below 1e-8 of K.
    """
    difference = _Difference.of(K, features)
    total = torch.zeros((), dtype=torch.float64)
    for rows, strip in difference.K.strips():
        residual = strip.cpu()
        left = difference.rows_of(rows)
        for columns, right in difference.strips():
            residual[:, columns].addmm_(left, right.t(), alpha=-1.0)
        total += residual.square().sum()
    return float(total.sqrt())


def trace_error(K: KernelOperator, features: FeatureMap) -> float:
    r"""Return the nuclear norm of K - F F' as its trace, exactly, in one pass over the rows.

    They are equal for Nystrom features, where the difference has no negative eigenvalue.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap

    Raises
    ------
    ValueError
        For features that are no projection, like random Fourier features.

    Notes
    -----
    Cost: the features of all rows, no n². Differences of a row below ``eps k(x, x)`` are rounding.
    """
    if not features.projects:
        raise ValueError(
            f"K - F F' has negative eigenvalues for a {type(features).__name__}, so its trace is "
            "not its trace norm: give a sample, whose eigenvalues can be computed"
        )
    K = K.double()
    total = 0.0
    for _, block, F in features.strips(K.rows, memory_bytes=K.memory_bytes):
        total += float((K.kernel.diag(block) - F.square().sum(dim=1)).sum())
    return total


def sampled_error(
    K: KernelOperator, features: FeatureMap, norm: Norm, size: int, *, rng: torch.Generator
) -> float:
    """Return the norm of K - F F' restricted to random rows and columns, formed.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    features : FeatureMap
    norm : "spectral", "frobenius" or "trace"
        The trace norm is the sum of the absolute eigenvalues, also called nuclear.
    size : int
        Number of rows, without repeats; all if there are no more. The norm is that of the size x
        size matrix: at most that of all rows, and not scaled up.
    rng : torch.Generator

    Raises
    ------
    ValueError
        If the dense matrix does not fit in the memory of K.

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
            f"but {readable_bytes(K.memory_bytes)} are allowed; take fewer rows, or sample=None, "
            "which forms no matrix"
        )
    index = torch.randperm(n, generator=rng)[:size].sort().values
    K = K.double()
    K = K[index, index]
    F = features.features(K.rows, memory_bytes=K.memory_bytes)
    difference = K.dense().cpu().addmm_(F, F.t(), alpha=-1.0)
    if norm == "frobenius":
        return float(difference.norm())
    values = la.eigenvalues(difference).abs()
    return float(values.max() if norm == "spectral" else values.sum())


@dataclass(frozen=True)
class _Difference:
    """K - F F' as a linear map, in float64, with the features in memory if they fit."""

    K: KernelOperator
    features: FeatureMap
    held: Tensor | None

    @classmethod
    def of(cls, K: KernelOperator, features: FeatureMap) -> _Difference:
        K = K.double()
        fits = 8 * K.shape[0] * features.width <= K.memory_bytes // 2
        held = features.features(K.rows, memory_bytes=K.memory_bytes // 2) if fits else None
        return cls(K, features, held)

    def strips(self) -> Iterator[tuple[slice, Tensor]]:
        """Walk over the features of all rows."""
        if self.held is not None:
            yield slice(0, len(self.held)), self.held
            return
        for rows, _, F in self.features.strips(self.K.rows, memory_bytes=self.K.memory_bytes // 4):
            yield rows, F

    def rows_of(self, rows: slice) -> Tensor:
        """Return the features of a few rows in sequence."""
        if self.held is not None:
            return self.held[rows]
        return self.features.apply(self.K.rows.take(torch.arange(rows.start, rows.stop)))

    def times(self, v: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Return (K - F F') v."""
        product: Tensor = (self.K @ v).cpu()
        inner = torch.zeros(self.features.width, dtype=v.dtype)
        for rows, F in self.strips():
            inner += F.t() @ v[rows]
        for rows, F in self.strips():
            product[rows] -= F @ inner
        return product
