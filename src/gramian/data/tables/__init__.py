"""Tables: named columns of any Arrow type, from which rows of numbers are made.

A `Table` is a file, a frame or the result of a query. It has names, types and missing values,
and is read in batches, any number of times. `as_table` is the only entrance. An `Encoding`
turns its columns into features.
"""

from .base import Table
from .stored import MemoryTable, PiecesTable

__all__ = ["MemoryTable", "PiecesTable", "Table"]
