"""Cholesky factor of K_mm plus a jitter, for projections onto landmarks."""

from __future__ import annotations

import logging

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la

logger = logging.getLogger("gramian")

ROUNDING_UNITS = 100
"""Least jitter for float32 data, in units of eps32 times the mean of the diagonal."""


def least_jitter(P: Float[Tensor, "m m"], dtype: torch.dtype) -> float:
    """Return the diagonal shift that products in a dtype cannot resolve."""
    trace = float(P.diagonal().sum()) or 1.0  # zero if the kernel vanishes at all landmarks
    return max(la.FLOAT64_EPS * trace, ROUNDING_UNITS * torch.finfo(dtype).eps * trace / len(P))


def cholesky_with_jitter_(P: Float[Tensor, "m m"], dtype: torch.dtype) -> float:
    """Replace the upper triangle of K_mm by T, T'T = K_mm + jitter I, and return the jitter.

    Parameters
    ----------
    P : Tensor of shape (m, m)
        Float64, by columns, without subnormal entries.
    dtype : torch.dtype
        Dtype of products, whose rounding the inverse factor amplifies along directions of small
        eigenvalues.
    """
    jitter = least_jitter(P, dtype)
    diagonal = P.diagonal().clone()
    while True:
        # The diagonal is set from its copy, so that jitters of failed attempts do not add up.
        P.diagonal().copy_(diagonal + jitter)
        try:
            la.cholesky_(P)
        except la.NotPositiveDefinite:
            # The failed factorisation has overwritten the upper triangle.
            la.mirror_lower_(P)
            jitter *= 10
            logger.debug("K_mm is singular to rounding; jitter %.1e", jitter)
        else:
            return jitter
