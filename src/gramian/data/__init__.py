"""Row sources: where the data live."""

from .array import ArrayRows
from .base import RowSource
from .rows import as_rows

__all__ = ["ArrayRows", "RowSource", "as_rows"]
