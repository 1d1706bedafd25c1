"""Cholesky factors of matrices that are singular to rounding, with the least jitter that serves."""

from __future__ import annotations

import logging

from .. import _arrays as xp
from .._arrays import Array, Float
from .dense import FLOAT64_EPS, NotPositiveDefinite, cholesky_, mirror_lower_

logger = logging.getLogger("gramian")

ROUNDING_UNITS = 100
"""Least jitter, and least pivot, for float32 data, in units of eps32 times the mean diagonal."""


def cholesky_with_jitter_(A: Float[Array, "m m"], dtype: xp.DType, *, exact: bool = False) -> float:
    """Replace the upper triangle of A by R, R'R = A + jitter I, and return the jitter.

    - `A`: float64, by columns, without subnormal entries.
    - `dtype`: dtype of products, whose rounding the inverse factor amplifies along directions of
      small eigenvalues. They cannot resolve the least jitter.
    - `exact`: whether the first attempt has no jitter, so that a definite matrix gets none.
    """
    trace = float(xp.diagonal(A).sum()) or 1.0  # zero if the kernel vanishes at all rows
    least_jitter = max(FLOAT64_EPS * trace, ROUNDING_UNITS * xp.finfo(dtype).eps * trace / len(A))
    jitter, diagonal = 0.0 if exact else least_jitter, xp.copy(xp.diagonal(A))
    while True:
        # The diagonal is set from its copy, so that jitters of failed attempts do not add up.
        xp.assign_(xp.diagonal(A), diagonal + jitter)
        try:
            cholesky_(A)
        except NotPositiveDefinite:
            # The failed factorisation has overwritten the upper triangle.
            mirror_lower_(A)
            jitter = 10 * jitter or least_jitter
            logger.debug("a kernel matrix is singular to rounding; jitter %.1e", jitter)
        else:
            return jitter
