"""Positive definite systems in float64 by a float32 Cholesky factor, at half the cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy.linalg.lapack

from .. import _arrays as xp
from .._arrays import Array, Float
from .._parallel.workers import one_thread_if_small
from . import pooled
from .dense import FLOAT64_EPS

HALF_EPS = float(xp.finfo(xp.float32).eps)

MOST_STEPS = 30
"""Most steps of refinement, as in LAPACK's `dsposv`."""

LEAST_GAIN = 0.5
"""Largest ratio of successive residuals; a larger ratio ends the refinement."""

ROUNDING_UNITS = 4
"""Residual of a solution in units of the rounding of its products."""

NEGLIGIBLE_ENTRY = 1e-15
"""Relative size below which entries of the factor are zero: products would be denormal."""


@dataclass(frozen=True)
class HalfFactor:
    """Cholesky factor R in float32 of A / unit: R'R = A / unit.

    - `R`: the upper triangle is the factor, stored by columns; the lower one is not used.
    - `unit`: the power of two just above the largest diagonal entry of A: dividing by it does not
      round.
    """

    R: Float[Array, "m m"]
    unit: float

    @classmethod
    def of(cls, A: Float[Array, "m m"], least: float) -> HalfFactor | None:
        """Factorise A; None if `least`, a lower bound of the eigenvalues, is lost in rounding.

        The limit is ten times the rounding error sqrt(m) eps, as in `FullProblem.needs_float64`.
        """
        largest = float(xp.diagonal(A).max())
        if not least > 10 * HALF_EPS * math.sqrt(len(A)) * largest:
            return None
        # A power of two, so that the division does not round.
        unit = 2.0 ** math.frexp(largest)[1]
        R = xp.empty(A.T.shape, xp.float32)
        # A is symmetric and stored by columns, so its transpose is read row by row.
        for start in range(0, len(A), 256):
            part = R[start : start + 256]
            xp.assign_(part, A.T[start : start + 256] / unit)
            xp.fill_where_(part, xp.abs(part) < NEGLIGIBLE_ENTRY, 0.0)
        R = R.T
        if pooled.pays(len(A) ** 3 / 3, len(A)):
            info = pooled.cholesky_(R)
        else:
            with one_thread_if_small(len(A) ** 3 / 3):
                _, info = scipy.linalg.lapack.spotrf(R, lower=0, overwrite_a=1, clean=0)
        return cls(R, unit) if info == 0 else None

    def solve(self, b: Float[Array, "m t"]) -> Float[Array, "m t"]:
        """Return A⁻¹ b in float64, to about float32 accuracy."""
        # Each side is scaled to 1, or small residuals would underflow in float32.
        size = xp.max(xp.abs(b), axis=0).clip(min=1e-300)
        with one_thread_if_small(2 * len(self.R) * xp.size(b)):
            x, _ = scipy.linalg.lapack.spotrs(self.R, xp.cast(b / size, xp.float32), lower=0)
        return xp.to_float64(x) * (size / self.unit)


def solve_refined(
    A: Float[Array, "m m"], b: Float[Array, "m t"], least: float
) -> Float[Array, "m t"] | None:
    r"""Solve A x = b as exactly as with a factor in float64; None if that fails.

    The factor in float32 gives a correction for the residual in float64, until
    :math:`\|b - A x\| \le 4 \varepsilon \|A\|_F \|x\|`: the algorithm of LAPACK's `dsposv` [1]_.

    - `A`: symmetric, both triangles, float64, by columns, on the host; unchanged.
    - `least`: lower bound of the eigenvalues, such as a ridge.

    Notes
    -----
    Cost: m³ / 3 operations in float32, 4 m² bytes; a step reads 16 m² bytes. Returns None before
    the factorisation if `least` is below 10 sqrt(m) eps32 of the largest entry.

    References
    ----------
    .. [1] Langou et al., *Exploiting the performance of 32 bit floating point arithmetic in
       obtaining 64 bit accuracy*, SC 2006.
    """
    factor = HalfFactor.of(A, least)
    if factor is None:
        return None
    size = ROUNDING_UNITS * FLOAT64_EPS * float(xp.norm(A))
    x = factor.solve(b)
    r = b - A @ x
    for _ in range(MOST_STEPS):
        before = xp.norm(r, axis=0)
        is_unfinished = before > size * xp.norm(x, axis=0)
        # One more correction is free of products with A.
        if not bool(is_unfinished.any()):
            return x + factor.solve(r)
        step = factor.solve(r)
        r = b - A @ (x + step)
        if bool((xp.norm(r, axis=0) > LEAST_GAIN * before)[is_unfinished].any()):
            return None
        x += step
    return None
