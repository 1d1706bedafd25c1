"""`as_rows`: the only entrance for data of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from .array import ArrayRows
from .base import RowSource


def as_rows(x: Any) -> RowSource:
    """Make a row source of anything that holds a feature matrix."""
    if isinstance(x, RowSource):
        return x
    if isinstance(x, Tensor | np.ndarray):
        return ArrayRows(x)
    raise TypeError(f"Cannot read rows from an object of type {type(x).__name__}.")
