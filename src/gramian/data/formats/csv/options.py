"""Options for reading a table of text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ...tables.column_reading import ColumnReading


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a table of text, or columns of text of a frame.

    Attributes
    ----------
    strict : bool, default=False
        Whether to refuse values that a column's type cannot hold, instead of reading them as
        missing.
    columns : mapping of str to ColumnReading
        How columns are read, by name; others are inferred. Names that the table does not have are
        ignored.
    labels : collection of str, optional
        Targets of a training table, whose booleans stay as they are written. None: the table is
        not for training.
    """

    strict: bool = False
    columns: Mapping[str, ColumnReading] = field(default_factory=dict)
    labels: Collection[str] | None = None


DEFAULT_OPTIONS = ReadOptions()
