"""Cholesky factor of K_mm plus a jitter, for projections onto landmarks."""

from __future__ import annotations

import logging

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float

logger = logging.getLogger("gramian")

ROUNDING_UNITS = 100
"""Least jitter for float32 data, in units of eps32 times the mean of the diagonal."""


def least_jitter(P: Float[Array, "m m"], dtype: xp.DType) -> float:
    """Return the diagonal shift that products in a dtype cannot resolve."""
    trace = float(xp.diagonal(P).sum()) or 1.0  # zero if the kernel vanishes at all landmarks
    return max(la.FLOAT64_EPS * trace, ROUNDING_UNITS * xp.finfo(dtype).eps * trace / len(P))


def cholesky_with_jitter_(P: Float[Array, "m m"], dtype: xp.DType) -> float:
    """Replace the upper triangle of K_mm by T, T'T = K_mm + jitter I, and return the jitter.

    Parameters
    ----------
    P : Array of shape (m, m)
        Float64, by columns, without subnormal entries.
    dtype : dtype
        Dtype of products, whose rounding the inverse factor amplifies along directions of small
        eigenvalues.
    """
    jitter = least_jitter(P, dtype)
    diagonal = xp.copy(xp.diagonal(P))
    while True:
        # The diagonal is set from its copy, so that jitters of failed attempts do not add up.
        xp.assign_(xp.diagonal(P), diagonal + jitter)
        try:
            la.cholesky_(P)
        except la.NotPositiveDefinite:
            # The failed factorisation has overwritten the upper triangle.
            la.mirror_lower_(P)
            jitter *= 10
            logger.debug("K_mm is singular to rounding; jitter %.1e", jitter)
        else:
            return jitter
