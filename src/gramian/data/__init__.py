"""Row sources: where the data live."""

from .array import ArrayRows
from .base import RowSource
from .check import check_finite
from .rows import as_rows
from .sparse import SparseRows
from .standardizer import Standardizer
from .transform import Cast, Standardized, Subset

__all__ = [
    "ArrayRows",
    "Cast",
    "RowSource",
    "SparseRows",
    "Standardized",
    "Standardizer",
    "Subset",
    "as_rows",
    "check_finite",
]
