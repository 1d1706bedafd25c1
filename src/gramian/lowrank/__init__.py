"""Low-rank factorisations of kernel operators, for landmarks and for preconditioners."""

from __future__ import annotations

from .eigenvalues import POWER_SAFETY, block_columns, largest_eigenvalue, subspace_eigenpairs
from .pivoted_cholesky import ZERO_RESIDUAL_SHARE, PartialCholesky, pivoted_cholesky
from .randomized import TEST_MATRICES, RandomizedNystrom, columns_factor, randomized_nystrom

__all__ = [
    "POWER_SAFETY",
    "TEST_MATRICES",
    "ZERO_RESIDUAL_SHARE",
    "PartialCholesky",
    "RandomizedNystrom",
    "block_columns",
    "columns_factor",
    "largest_eigenvalue",
    "pivoted_cholesky",
    "randomized_nystrom",
    "subspace_eigenpairs",
]
