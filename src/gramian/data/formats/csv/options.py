"""Options for reading a table of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...tables.column_reading import ColumnReading


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a table of text; other tables are read as they are.

    Attributes
    ----------
    strict : bool, default=False
        Whether to refuse values that a column's type cannot hold, instead of reading them as
        missing.
    columns : mapping of str to ColumnReading
        How columns are read, by name; others are inferred. Names that the table does not have are
        ignored.
    """

    strict: bool = False
    columns: Mapping[str, ColumnReading] = field(default_factory=dict)


DEFAULT_OPTIONS = ReadOptions()
