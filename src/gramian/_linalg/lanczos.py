"""Extreme eigenvalues of a matrix from the steps of conjugate gradient, by the Lanczos method."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .. import _arrays as xp
from .._arrays import Array, Float
from .dense import FLOAT64_EPS


def condition_of_lanczos(alpha: Float[Array, " k"], beta: Float[Array, " k"]) -> float:
    """Return the condition number of the tridiagonal matrix behind k steps of CG.

    Parameters
    ----------
    alpha, beta : Array of shape (k,)
        Step lengths, and ratios of successive residuals. The estimate grows with k towards the
        condition number of the (preconditioned) matrix, or 1 / eps if that is larger.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 11.3.5.
    """
    smallest, largest = extremes_of_lanczos(alpha, beta)
    return largest / smallest


def extremes_of_lanczos(alpha: Float[Array, " k"], beta: Float[Array, " k"]) -> tuple[float, float]:
    """Return the extreme eigenvalues of the tridiagonal matrix behind k steps of CG.

    The smaller one is at least eps times the larger one. Without steps: (1, 1). With ratios that
    are invalid by rounding: (eps, 1).
    """
    if len(alpha) == 0:
        return 1.0, 1.0
    with np.errstate(all="ignore"):
        diagonal = 1 / alpha
        diagonal[1:] += beta[:-1] / alpha[:-1]
        off = xp.sqrt(beta[:-1]) / alpha[:-1]
    if not bool(xp.isfinite(diagonal).all() and xp.isfinite(off).all()):
        # A ratio below zero or without bound: rounding dominates.
        return FLOAT64_EPS, 1.0
    # `sterf` takes k² operations on one thread, which matters because each iteration calls this.
    values = scipy.linalg.eigvalsh_tridiagonal(
        xp.to_host(diagonal),
        xp.to_host(off),
        lapack_driver="sterf",
        check_finite=False,
    )
    return float(max(values[0], FLOAT64_EPS * values[-1])), float(values[-1])
