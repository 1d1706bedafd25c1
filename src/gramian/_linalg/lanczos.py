"""Extreme eigenvalues of a matrix from the steps of conjugate gradient, by the Lanczos method."""

from __future__ import annotations

import numpy as np
import scipy.linalg.lapack

from .. import _arrays as xp
from .._arrays import Array, Float
from .dense import FLOAT64_EPS


def extremes_of_lanczos(alpha: Float[Array, " k"], beta: Float[Array, " k"]) -> tuple[float, float]:
    """Return the extreme eigenvalues of the tridiagonal matrix behind k steps of CG.

    The smaller one is at least eps times the larger one. Without steps: (1, 1). With ratios that
    are invalid by rounding: (eps, 1).

    Parameters
    ----------
    alpha, beta : Array of shape (k,)
        Step lengths, and ratios of successive residuals. The quotient of the eigenvalues grows with
        k towards the condition number of the (preconditioned) matrix, or 1 / eps if that is larger.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 11.3.5.
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
    values = xp.to_host(diagonal)
    if len(values) > 1:
        # `sterf` takes k² operations on one thread, and SciPy's function around it as long again:
        # each iteration calls this.
        values, info = scipy.linalg.lapack.dsterf(values, xp.to_host(off))
        if info != 0:
            raise np.linalg.LinAlgError(f"{info} eigenvalues did not converge")
    return float(max(values[0], FLOAT64_EPS * values[-1])), float(values[-1])
