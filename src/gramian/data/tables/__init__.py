"""Tables: named columns of any Arrow type, from which rows of numbers are made.

A `Table` is what people have: a file, a frame, the result of a query. It has names, types and
missing values, and is read a little at a time, as often as one likes. `as_table` is the only
entrance. What becomes of its columns, an `Encoding` says.
"""

from .base import Table
from .in_memory import MemoryTable
from .sequential import PiecesTable

__all__ = ["MemoryTable", "PiecesTable", "Table"]
