"""Compressed sparse rows: their operations and products."""

from .._arrays import is_sparse
from .products import Columns, normal, product, times, transpose_sparse, transposed_times
from .rows import (
    WIDE_FEATURES,
    Kept,
    append_columns,
    are_equal,
    as_scipy,
    cast,
    dense,
    distances,
    is_wide,
    of_scipy,
    scale_columns,
    scale_rows,
    slice_rows,
    sparse_rows,
    squared_norms,
    take_columns,
    take_rows,
)
