"""Low-rank factorisations of kernel operators, for landmarks and for preconditioners."""

from __future__ import annotations

from .columns import columns_factor
from .pivoted_cholesky import ZERO_RESIDUAL_SHARE, PartialCholesky, pivoted_cholesky
from .power import POWER_SAFETY, largest_eigenvalue
from .randomized import RandomizedNystrom, randomized_nystrom
from .sketches import TEST_MATRICES
from .subspace import block_columns, subspace_eigenpairs

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
