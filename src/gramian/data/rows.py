"""`as_rows`: the only entrance for data of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from torch import Tensor

from .array import ArrayRows
from .base import RowSource
from .sparse import SparseRows


def as_rows(x: Any) -> RowSource:
    """Make a row source of anything that holds a feature matrix."""
    if isinstance(x, RowSource):
        return x
    if isinstance(x, Tensor | np.ndarray):
        return ArrayRows(x)
    if scipy.sparse.issparse(x):
        return SparseRows(x)
    raise TypeError(f"Cannot read rows from an object of type {type(x).__name__}.")
