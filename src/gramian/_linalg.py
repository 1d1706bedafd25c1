"""Dense factorisations in float64, in place, through LAPACK routines that torch does not offer."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack
import torch
from jaxtyping import Float
from threadpoolctl import ThreadpoolController
from torch import Tensor

EPS = float(np.finfo(np.float64).eps)

SMALL = 2e10
"""Operations up to which LAPACK runs on one thread: about a third of a second.

Its threads meet at barriers, for a 20 x 3 solve already. On a busy machine each meeting takes as
long as the scheduler likes, and burns the time in waiting: with two threads on two cores with a
load of six, factorising 300 x 300 took 0.9 s, with one 15 ms; FALKON's factors of 2,000 landmarks
took between 0.7 and 11 seconds of CPU time, with one 0.3.
"""


@functools.cache
def _lapack() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """Keeps LAPACK at one thread while a caller is inside; callers may be in several threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with no caller inside, as in a forked child."""
        self._lock = threading.Lock()
        self._inside = 0
        self._limit = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self, operations: int | float) -> Iterator[None]:
        if operations > SMALL:
            yield
            return
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(_lapack().limit(limits=1))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.close()


_one_thread_if_small = _OneThread()
os.register_at_fork(after_in_child=_one_thread_if_small.forget)


class NotPositiveDefinite(ValueError):
    """A Cholesky factorisation met a pivot that is not positive."""


def require_finite(K: Float[Tensor, "n m"]) -> None:
    """Raise ValueError if a kernel matrix has an entry that is not finite."""
    low, high = torch.aminmax(K)  # which need no memory, unlike isfinite
    if not (low > -torch.inf and high < torch.inf):
        raise ValueError(
            "the kernel matrix has entries that are not finite: the features are so large that "
            "products or squares of them overflow; rescale them"
        )


def flush_tiny_(K: Float[Tensor, "n m"]) -> None:
    """Set entries below 1e-30 of the largest to zero, block by block.

    They are far below rounding, but their products fall below the normal numbers, with which
    LAPACK is 30 times slower: rows in clusters far apart, or a lengthscale that is too small.
    """
    low, high = torch.aminmax(K)
    least = 1e-30 * max(-float(low), float(high))
    step = max(1, (1 << 20) // max(K.shape[1], 1))
    for start in range(0, len(K), step):
        part = K[start : start + step]
        part.masked_fill_(part.abs() < least, 0.0)


def by_columns(A: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    """Return the memory of a symmetric matrix as LAPACK reads it: column after column."""
    return A.t()


def cholesky_(A: Float[Tensor, "m m"]) -> None:
    """Replace the upper triangle of A by its factor R, R'R = A; the strict lower one stays.

    Parameters
    ----------
    A : Tensor of shape (m, m)
        Float64, by columns. Cost: m³ / 3 operations, no copy.

    Raises
    ------
    NotPositiveDefinite
        The upper triangle is then spoilt.
    """
    if A.dtype != torch.float64:
        raise TypeError(f"LAPACK would factorise a copy of a {A.dtype} matrix, not the matrix")
    with _one_thread_if_small(len(A) ** 3 / 3):
        _, info = scipy.linalg.lapack.dpotrf(A.numpy(), lower=0, overwrite_a=1, clean=0)
    if info != 0:
        raise NotPositiveDefinite(f"pivot {info} of {len(A)} is not positive")


def times_transpose_(R: Float[Tensor, "m m"]) -> None:
    """Replace the upper triangular R in the upper triangle by that of R R'. m³ / 3 operations."""
    with _one_thread_if_small(len(R) ** 3 / 3):
        scipy.linalg.lapack.dlauum(R.numpy(), lower=0, overwrite_c=1)


def inverse_diagonal_(R: Float[Tensor, "m m"]) -> Float[Tensor, " m"]:
    """Return the diagonal of (R'R)⁻¹, with the upper triangle of R (by columns), which is spoilt.

    Cost: m³ / 3 operations, no copy.
    """
    with _one_thread_if_small(len(R) ** 3 / 3):
        scipy.linalg.lapack.dtrtri(R.numpy(), lower=0, overwrite_c=1)
    diagonal = torch.empty(len(R), dtype=R.dtype)
    for start in range(0, len(R), 512):  # rows of the inverse, whose strict lower triangle is junk
        part = R[start : start + 512, start:].triu()
        diagonal[start : start + 512] = part.square().sum(dim=1)
    return diagonal


def solve_triangular(
    R: Float[Tensor, "m m"],
    b: Float[Tensor, "m t"],
    *,
    lower: bool,
    transpose: bool,
    unit: bool = False,
) -> Float[Tensor, "m t"]:
    """Return the solution of R x = b, or of R' x = b, with one triangle of R (by columns)."""
    with _one_thread_if_small(len(R) * b.numel()):
        x, _ = scipy.linalg.lapack.dtrtrs(
            R.numpy(), b.numpy(), lower=int(lower), trans=int(transpose), unitdiag=int(unit)
        )
    return torch.from_numpy(np.ascontiguousarray(x))


def times_triangular(
    R: Float[Tensor, "m m"],
    b: Float[Tensor, "m t"],
    *,
    lower: bool,
    transpose: bool,
    unit: bool = False,
) -> Float[Tensor, "m t"]:
    """Return R b, or R' b, with one triangle of R (by columns)."""
    with _one_thread_if_small(len(R) * b.numel()):
        x = scipy.linalg.blas.dtrmm(
            1.0, R.numpy(), b.numpy(), lower=int(lower), trans_a=int(transpose), diag=int(unit)
        )
    return torch.from_numpy(np.ascontiguousarray(x))


def solve_cholesky(R: Float[Tensor, "m m"], b: Float[Tensor, "m t"]) -> Float[Tensor, "m t"]:
    """Return the solution of R'R x = b, with the upper triangle of R (by columns)."""
    with _one_thread_if_small(2 * len(R) * b.numel()):
        x, _ = scipy.linalg.lapack.dpotrs(R.numpy(), b.numpy(), lower=0)
    return torch.from_numpy(np.ascontiguousarray(x))


def mirror_upper_(A: Float[Tensor, "m m"]) -> None:
    """Copy the strict upper triangle of A, transposed, onto the strict lower one."""
    _copy_lower_triangle(A, A.t())


def mirror_lower_(A: Float[Tensor, "m m"]) -> None:
    """Copy the strict lower triangle of A, transposed, onto the strict upper one."""
    _copy_lower_triangle(A.t(), A)


def _copy_lower_triangle(target: Tensor, source: Tensor, step: int = 1024) -> None:
    """Copy the strict lower triangle by blocks; both may be views of one memory."""
    m = len(target)
    for start in range(0, m, step):
        end = min(start + step, m)
        target[end:, start:end] = source[end:, start:end]
        i, j = torch.tril_indices(end - start, end - start, -1)
        target[start:end, start:end][i, j] = source[start:end, start:end][i, j]


def top_eigenpairs(A: Float[Tensor, "m m"], k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues, (k,), and their vectors, (m, k), the largest first.

    Parameters
    ----------
    A : Tensor of shape (m, m)
        Symmetric, float64; it is spoilt. Cost: 4/3 m³ + 2 m² k operations, LAPACK's `syevr`.
    k : int
    """
    m = len(A)
    with _one_thread_if_small(4 * m**3 / 3):
        values, vectors = scipy.linalg.eigh(
            A.numpy(),
            lower=False,
            overwrite_a=True,
            check_finite=False,
            subset_by_index=[m - k, m - 1],
        )
    return (
        torch.from_numpy(values[::-1].copy()),
        torch.from_numpy(vectors[:, ::-1].copy()),
    )


def stacked_triangle(blocks: list[Float[Tensor, "_ m"]]) -> Float[Tensor, "k m"]:
    """Return the R of a QR factorisation of the blocks stacked on each other."""
    R: Tensor = torch.linalg.qr(torch.cat(blocks), mode="r").R
    return R


def condition_of_lanczos(alpha: Float[Tensor, " k"], beta: Float[Tensor, " k"]) -> float:
    """Return the condition number of the tridiagonal matrix behind k steps of CG.

    Parameters
    ----------
    alpha, beta : Tensor of shape (k,)
        Step lengths, and ratios of successive residuals. The estimate grows with k towards the
        condition number of the (preconditioned) matrix, or 1 / eps if that is larger.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 11.3.5.
    """
    if len(alpha) == 0:
        return 1.0
    diagonal = 1 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    off = beta[:-1].sqrt() / alpha[:-1]
    if not bool(diagonal.isfinite().all() and off.isfinite().all()):
        return 1 / EPS  # a ratio below zero or without bound: rounding has taken over
    # k² operations on one thread: this runs in every iteration
    values = scipy.linalg.eigvalsh_tridiagonal(
        diagonal.numpy(), off.numpy(), lapack_driver="sterf", check_finite=False
    )
    return float(values[-1] / max(values[0], EPS * values[-1]))
