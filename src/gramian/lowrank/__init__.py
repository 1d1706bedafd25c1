"""Low-rank factorisations of kernel operators, for landmarks and for preconditioners."""

from __future__ import annotations

from .pivoted_cholesky import ROUNDING, PartialCholesky, pivoted_cholesky

__all__ = ["ROUNDING", "PartialCholesky", "pivoted_cholesky"]
