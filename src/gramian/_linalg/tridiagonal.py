"""Reduction of a symmetric matrix to tridiagonal form, for systems with many shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg.lapack

from .._arrays import Array, Float
from .._parallel.workers import one_thread_if_small


@dataclass(frozen=True, eq=False)
class TridiagonalForm:
    """Reduction A = Q T Q' of a symmetric matrix on the host; (A + s I) x = b is then cheap.

    A has at least two rows, since LAPACK's interface refuses an empty off-diagonal.

    - `reflectors`, `scales`: Q as LAPACK stores it; Q leaves the first row as it is.
    - `diagonal`, `off_diagonal`: entries of T.
    """

    reflectors: Float[Array, "k k"]
    scales: Float[Array, " k"]
    diagonal: Float[Array, " n"]
    off_diagonal: Float[Array, " k"]

    @classmethod
    def build(cls, A: Float[Array, "n n"]) -> TridiagonalForm:
        """Reduce A, whose lower triangle by columns is read; A is overwritten.

        Cost: 4/3 n³ operations, half of them products with vectors; a copy of A.
        """
        with one_thread_if_small(4 * len(A) ** 3 / 3):
            work_size = int(scipy.linalg.lapack.dsytrd_lwork(len(A), lower=1)[0])
            reduced, diagonal, off_diagonal, scales, _ = scipy.linalg.lapack.dsytrd(
                A, lower=1, lwork=work_size, overwrite_a=1
            )
        # The reflectors begin below the diagonal. LAPACK's routine would copy them in each call.
        return cls(np.asfortranarray(reduced[1:, :-1]), scales, diagonal, off_diagonal)

    def solve(self, shifts: Sequence[float], b: Float[Array, "n t"]) -> list[Float[Array, "n t"]]:
        """Solve (A + s I) x = b for each shift s, in order.

        The list ends before the first shift at which the matrix is not positive definite to
        rounding. Cost: 2 n² t operations for each shift.
        """
        rotated, solutions = self._apply(b, transpose=True), []
        for shift in shifts:
            pivots, multipliers, info = scipy.linalg.lapack.dpttrf(
                self.diagonal + shift, self.off_diagonal
            )
            # LAPACK's test of the pivots passes NaN.
            if info != 0 or not bool((pivots > 0).all()):
                break
            solutions.append(scipy.linalg.lapack.dpttrs(pivots, multipliers, rotated)[0])
        if not solutions:
            return []
        # One product with Q serves all shifts.
        all_columns = self._apply(np.concatenate(solutions, axis=1), transpose=False)
        return [np.ascontiguousarray(x) for x in np.split(all_columns, len(solutions), axis=1)]

    def _apply(self, b: Float[Array, "n t"], *, transpose: bool) -> Float[Array, "n t"]:
        """Return Q b, or Q' b."""
        below, side = np.asfortranarray(b[1:]), "T" if transpose else "N"
        settings = ("L", side, self.reflectors, self.scales, below)
        with one_thread_if_small(2 * len(b) * b.size):
            work_size = int(scipy.linalg.lapack.dormqr(*settings, -1)[1][0])
            below, _, _ = scipy.linalg.lapack.dormqr(*settings, work_size)
        return np.concatenate([b[:1], below])
