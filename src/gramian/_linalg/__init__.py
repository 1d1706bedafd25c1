"""Dense linear algebra in float64: LAPACK in place on the host, blocks of products on a device."""

from __future__ import annotations

from .dense import (
    FLOAT64_EPS,
    NotPositiveDefinite,
    add_outer_,
    by_columns,
    cholesky_,
    eigenpairs,
    eigenvalues,
    flush_tiny_,
    inverse_diagonal_,
    invert_triangle_,
    is_on_device,
    mirror_lower_,
    mirror_upper_,
    pivoted_cholesky_,
    prepare_,
    require_finite,
    solve_cholesky,
    solve_triangular,
    solve_triangular_,
    stacked_triangle,
    times_transpose_,
    times_triangle_,
    times_triangular,
    top_eigenpairs,
)
from .jitter import ROUNDING_UNITS, cholesky_with_jitter_
from .refined import solve_refined
from .spectrum import extremes_of_lanczos
from .sums import multiply_in_blocks
from .tridiagonal import TridiagonalForm
