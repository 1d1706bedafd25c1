"""Low-rank factorisations of kernel operators, for landmarks and for preconditioners."""

from __future__ import annotations

from .pivoted_cholesky import ROUNDING, PartialCholesky, pivoted_cholesky
from .randomized import RandomizedNystrom, randomized_nystrom

__all__ = [
    "ROUNDING",
    "PartialCholesky",
    "RandomizedNystrom",
    "pivoted_cholesky",
    "randomized_nystrom",
]
