"""Low-rank factorisations of kernel operators, for landmarks and for preconditioners."""

from __future__ import annotations

from .pivoted_cholesky import ROUNDING, PartialCholesky, pivoted_cholesky
from .power import SAFETY, largest_eigenvalue
from .randomized import RandomizedNystrom, randomized_nystrom

__all__ = [
    "ROUNDING",
    "SAFETY",
    "PartialCholesky",
    "RandomizedNystrom",
    "largest_eigenvalue",
    "pivoted_cholesky",
    "randomized_nystrom",
]
