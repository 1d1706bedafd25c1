"""DaskColumn: numbers that lie with the rows of the same files; and what is brought here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .workers import connected

if TYPE_CHECKING:
    from .rows import DaskRows


class DaskColumn:
    """A column of the files that rows are of, such as the target; read once, and brought here."""

    def __init__(self, rows: DaskRows) -> None:
        self.rows = rows
        self.shape, self.dtype = (rows.shape[0],), rows.dtype

    def __len__(self) -> int:
        """Give the number of rows."""
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Bring all numbers here, 8 n bytes: targets are numbers, and not rows."""
        found = self.rows.map(_first_column, size=1 << 20).numpy()
        return found if dtype is None else found.astype(dtype)


def collected(collection: Any) -> np.ndarray:
    """Return the numbers of a dask array, series or column, here."""
    if isinstance(collection, DaskColumn):
        return np.asarray(collection)
    found: np.ndarray = np.asarray(connected().compute(collection).result())
    return found


def _first_column(block: Tensor) -> Tensor:
    return block[:, 0].clone()
