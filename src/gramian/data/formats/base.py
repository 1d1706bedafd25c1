"""`TableFormat`: interface of a file format for fits and commands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from ..._registries.registry import Registry
from ..rows.arrow import TableRows, check_columns
from ..rows.base import RowSource
from ..tables.base import Table
from ..tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ..tables.stored import MemoryTable

Column: TypeAlias = np.ndarray | pa.Array | pa.ChunkedArray


class TableFormat(ABC):
    """A format of tables in files, recognised by the suffix of their names.

    A subclass sets `suffixes` and implements `load`, or `open` if it can map or stream instead.
    That is enough for fits, targets, landmarks, `convert` and `predict`. A writable format is a
    `WritableFormat`.

    Attributes
    ----------
    suffixes : tuple of str
        Ends of the names of such files, in lower case and with their dots; the usual one first.
    named : bool
        False if columns have numbers only, ``"0", "1", ...``, as in a matrix.
    text : bool
        True if the numbers are text, which is slow to parse in each pass: `as_rows` then requires a
        conversion first.
    folder : bool
        True if a folder of such files is one table.
    """

    suffixes: ClassVar[tuple[str, ...]]
    named: ClassVar[bool] = True
    text: ClassVar[bool] = False
    folder: ClassVar[bool] = False

    def opens(self, path: Path) -> bool:
        """Return whether a path, which need not exist, is a table of this format."""
        return self.has_suffix(path.name) and not path.is_dir()

    def has_suffix(self, name: str) -> bool:
        """Return whether the name of a file or a path has a suffix of this format."""
        last = Path(name).name.lower()
        # The name only, because `Path.suffix` has no double suffixes such as .csv.gz. A hidden file
        # named .csv has no name before its suffix.
        return last.endswith(self.suffixes) and last not in self.suffixes

    def is_part(self, path: Path) -> bool:
        """Return whether a file, named relative to the folder of a table, belongs to the table."""
        return False

    def load(self, path: Path) -> pa.Table:
        """Read all columns into memory.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, or it cannot be read.
        """
        raise NotImplementedError

    def table(
        self, path: Path, where: str | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> Table:
        """Open all columns as a table; errors as in `load`.

        Parameters
        ----------
        path : Path
        where : str, optional
            Subject of error messages; the path by default.
        options : ReadOptions
            Options of reading text, which formats of typed values ignore.
        """
        return self.open(path, str(path) if where is None else where, options)

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        """Open all columns; see `table`."""
        return MemoryTable(self.load(path), where)

    def schema(self, path: Path) -> pa.Schema:
        """Return names and Arrow types of the columns; errors as in `load`."""
        return self.table(path).schema

    def rows(self, path: Path, columns: Sequence[str] | None = None) -> RowSource:
        """Load columns of numbers as rows; all of them by default."""
        table = self.table(path)
        names = list(table.names if columns is None else columns)
        check_columns(path, table.names, names)
        schema = pa.schema([table.schema.field(name) for name in names])
        return TableRows(pa.Table.from_batches(table.batches(names, 1 << 16), schema), names)


@runtime_checkable
class BatchWriter(Protocol):
    """Writes a table batch by batch, as the writers of Arrow do."""

    def write(self, batch: pa.RecordBatch) -> Any:
        """Append the rows of a batch."""

    def close(self) -> Any:
        """Complete the file."""


class WritableFormat(TableFormat):
    """A `TableFormat` that can be written, by `convert` and with predictions."""

    @abstractmethod
    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        """Return a writer of record batches to a new file.

        Parameters
        ----------
        path : Path
            The new file; its name need not end with a suffix.
        schema : pyarrow.Schema
            Schema of the batches.
        dtype : numpy.dtype, optional
            Type of the numbers in a format with a single type; by default the narrowest type that
            holds all columns.
        """

    def write(self, path: Path, columns: Mapping[str, Column]) -> None:
        """Write columns of shape (n,) to a new file."""
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        with closing(self.writer(path, table.schema)) as writer:
            for batch in table.to_batches():
                writer.write(batch)


formats: Registry[TableFormat] = Registry("table format")


def format_of(path: str | Path, *, text: bool = True) -> TableFormat:
    """Return the format of a table; if several open it, the one with its suffix.

    - `text`: whether the error lists formats of text among the expected ones.

    Raise ValueError if no format opens such a path.
    """
    formats = [file_format for file_format in _all() if text or not file_format.text]
    folders = [
        f", or a folder of {file_format.suffixes[0]} files"
        for file_format in formats
        if file_format.folder
    ]
    return _opening(Path(path), _usual(formats) + "".join(folders))


def format_to_write(path: str | Path) -> WritableFormat:
    """Return the format for a new table.

    Raise ValueError if no format opens such a path, or its format cannot be written.
    """
    usual = _usual(file_format for file_format in _all() if isinstance(file_format, WritableFormat))
    chosen_format = _opening(Path(path), usual)
    if not isinstance(chosen_format, WritableFormat):
        raise ValueError(
            f"{path} cannot be written, because this format is read-only; give a name ending in "
            f"{usual}"
        )
    return chosen_format


def _opening(path: Path, expected: str) -> TableFormat:
    openers = [table_format for table_format in _all() if table_format.opens(path)]
    if not openers:
        raise ValueError(f"cannot tell the format of {path}: expected a name ending in {expected}")
    # Parquet opens any folder; a format with the suffix of the folder is the better choice.
    return max(openers, key=lambda table_format: table_format.has_suffix(path.name))


def _usual(known: Iterable[TableFormat]) -> str:
    """Return the usual suffixes of formats, as a list in words."""
    return ", ".join(file_format.suffixes[0] for file_format in known)


def is_table_name(name: str) -> bool:
    """Return whether a name has the suffix of a table."""
    return any(file_format.has_suffix(name) for file_format in _all())


def endings() -> tuple[str, ...]:
    """Return the suffixes of the names of tables in all formats."""
    return tuple(suffix for file_format in _all() for suffix in file_format.suffixes)


def _all() -> Iterator[TableFormat]:
    return (formats.make(name) for name in formats)
