"""Compressed sparse rows of torch: operations that torch lacks, and products."""

from .kept import Kept
from .products import Columns, normal, product, times, transpose_sparse, transposed_times
from .rows import (
    WIDE_FEATURES,
    append_columns,
    are_equal,
    as_scipy,
    cast,
    dense,
    distances,
    is_sparse,
    is_wide,
    of_scipy,
    scale_columns,
    scale_rows,
    slice_rows,
    squared_norms,
    take_columns,
    take_rows,
)

__all__ = [
    "WIDE_FEATURES",
    "Columns",
    "Kept",
    "append_columns",
    "are_equal",
    "as_scipy",
    "cast",
    "dense",
    "distances",
    "is_sparse",
    "is_wide",
    "normal",
    "of_scipy",
    "product",
    "scale_columns",
    "scale_rows",
    "slice_rows",
    "squared_norms",
    "take_columns",
    "take_rows",
    "times",
    "transpose_sparse",
    "transposed_times",
]
