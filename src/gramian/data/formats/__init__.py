"""Formats of tables: one module for recognising, reading and writing the files of a format.

`format_of` and `format_to_write` find the format of a path. Fits, targets, landmarks, `convert` and
the command line call these and never compare suffixes, so that a new format is one file
and one import line here: CONTRIBUTING.md has one from beginning to end. Columns travel as Arrow
batches, with their types.

>>> format_of("train.parquet").suffixes
('.parquet', '.pq')
>>> is_table_name("table.csv"), is_table_name("uniform")
(True, False)
"""

from .base import (
    BatchWriter,
    Column,
    TableFormat,
    WritableFormat,
    endings,
    format_of,
    format_to_write,
    formats,
    is_table_name,
)
from .csv.format import Csv
from .feather import Feather
from .npy import Npy
from .parquet import Parquet

# isort: split
# After the usual formats: errors list them in the order of their registration.
from .cells.duckdb import DuckDB
from .cells.excel import Excel
from .cells.json_lines import JsonLines
from .cells.sqlite import SQLite

__all__ = [
    "BatchWriter",
    "Column",
    "Csv",
    "DuckDB",
    "Excel",
    "Feather",
    "JsonLines",
    "Npy",
    "Parquet",
    "SQLite",
    "TableFormat",
    "WritableFormat",
    "endings",
    "format_of",
    "format_to_write",
    "formats",
    "is_table_name",
]
