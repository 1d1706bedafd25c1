"""`text_table`: a file of text as a table, in memory or in a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path

import pyarrow as pa

from ...rows import arrow_compute as pc
from ...rows.file_stamp import FileStamp
from ...rows.prefetch import prefetch
from ...rows.temporary import remove_with
from ...tables.base import Table
from ...tables.column_reading import ColumnReading, OddValues
from ...tables.in_memory import MemoryTable
from ...tables.sequential import PiecesTable
from ..ipc_file import IpcFile, IpcWriter
from .columns.infer_types import Inference
from .columns.odd_values import read_values
from .columns.parsers import NOTHING_READING, Reading
from .dialect import Dialect, sniff
from .options import DEFAULT_OPTIONS, ReadOptions
from .reader import NotOfThisDialectError, strings

HELD_BYTES = 1 << 26
"""Text up to which a table is held in memory."""

# Text from which the types of a longer one are guessed.
_GUESS_BYTES = 1 << 23

SPELLED_BOOLEANS = ("yes/no", "t/f", "y/n")
"""Readings of booleans that stay as they are written where they are labels; true and false are
booleans for every library."""


def text_table(
    path: Path, where: str | None = None, options: ReadOptions = DEFAULT_OPTIONS
) -> Table:
    """Read a table of text, with types that every value has.

    Parameters
    ----------
    path : Path
    where : str, optional
        Subject of error messages; the path by default.
    options : ReadOptions

    Returns
    -------
    Table
        In memory; of a file with more than `HELD_BYTES` of text, in a temporary file in
        ``tempfile.gettempdir()``, that is removed with the table.

    Raises
    ------
    FileNotFoundError, ValueError
        If it is no table of text with a header line and rows that all have its fields, or a column
        cannot be read as in training.

    Notes
    -----
    Cost: one pass over a file that is held. A longer one is read with the types of its beginning;
    if a later value has another type, one pass infers the types of all values, and one reads them
    again. Memory: about four times `HELD_BYTES`.
    """
    dialect = sniff(path)
    with FileStamp.of(path).require_unchanged(path):
        while True:
            try:
                return _Text(path, dialect, str(path) if where is None else where, options).table()
            # Each retry has another encoding or larger blocks, of which there are few: the loop
            # ends.
            except NotOfThisDialectError as error:
                dialect = error.dialect


@dataclass(frozen=True)
class _Text:
    """A file of text whose dialect is known."""

    path: Path
    dialect: Dialect
    where: str
    options: ReadOptions

    def table(self) -> Table:
        """Read it into memory, or into a temporary file if there is much of it."""
        held_batches: list[pa.RecordBatch] = []
        bytes_held = 0
        # A file of this size is not held in any case, so that its beginning suffices for a guess;
        # a compressed one is longer still.
        long = self.path.stat().st_size > HELD_BYTES
        for batch in strings(self.path, self.dialect):
            held_batches.append(batch)
            bytes_held += batch.nbytes
            if bytes_held > HELD_BYTES or (long and bytes_held > _GUESS_BYTES):
                break
        else:
            return self._held_table(held_batches)
        return self._stored_table(held_batches)

    def _held_table(self, batches: list[pa.RecordBatch]) -> Table:
        # A wide table has few rows in a batch, and reading a column has a fixed cost per batch.
        if batches:
            batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
        inference = self._inference(batches)
        if sum(batch.num_rows for batch in batches) == 0:
            raise ValueError(f"{self.where} has 0 rows: add rows below its header line")
        columns = self._columns(inference)
        # Each batch of texts is released once its values are read: both tables together would take
        # twice the memory.
        typed = [columns.read(batches.pop(0)) for _ in range(len(batches))]
        table = MemoryTable(pa.Table.from_batches(typed, columns.schema), self.where)
        table.column_readings = columns.column_readings()
        return table

    def _inference(self, batches: Iterable[pa.RecordBatch]) -> Inference:
        names, stored = self.dialect.names, self.options.columns
        trained = {j: stored[name] for j, name in enumerate(names) if name in stored}
        inference = Inference(len(names), self.dialect.separator, trained)
        return _look(inference, batches)

    def _stored_table(self, held: list[pa.RecordBatch]) -> Table:
        """Rewrite the file, with the types of the held batches unless later values differ."""
        guess = self._inference(held)
        # The rewrite needs the memory of the held batches, which Arrow's pool would keep.
        held.clear()
        pa.default_memory_pool().release_unused()
        if guess.is_settled():
            try:
                return self._rewrite_file(self._columns(guess, odd_limit=0))
            # A later value has another type: all values are inferred in a pass of their own.
            except _LateError:
                pass
        full_inference = self._inference(prefetch(strings(self.path, self.dialect)))
        if (second_inference := full_inference.second_look()) is not None:
            full_inference = _look(second_inference, prefetch(strings(self.path, self.dialect)))
        return self._rewrite_file(self._columns(full_inference))

    def _rewrite_file(self, columns: TypedColumns) -> Table:
        handle, name = tempfile.mkstemp(prefix="gramian-", suffix=".arrow")
        # `mkstemp` makes the name safely; the writer opens the file by itself.
        os.close(handle)
        temporary = Path(name)
        try:
            with closing(IpcWriter(temporary, columns.schema)) as writer:
                for batch in prefetch(strings(self.path, self.dialect)):
                    writer.write(columns.read(batch))
            table = PiecesTable(IpcFile.open(temporary), self.where)
        # Also after Ctrl-C: a file that nobody would find is removed.
        except BaseException as error:
            temporary.unlink()
            if isinstance(error, OSError):
                raise OSError(
                    error.errno,
                    f"could not rewrite {self.where} to {tempfile.gettempdir()}: "
                    f"{error.strerror or error}; set TMPDIR to a folder with free space, or "
                    "convert it to Parquet once: gramian convert",
                ) from error
            raise
        finally:
            pa.default_memory_pool().release_unused()
        remove_with(table, temporary)
        table.column_readings = columns.column_readings()
        return table

    def _columns(self, inference: Inference, odd_limit: int | None = None) -> TypedColumns:
        """Return how columns are read, without columns that have no name."""
        names, readings = self.dialect.names, inference.readings()
        nameless = [j for j, name in enumerate(names) if not name]
        # pandas and R write their index as a first column without a name: it is left out.
        index = [0] if names[0] == "" else []
        # A nameless column without values is a separator at the ends of lines.
        bad = [j for j in nameless if j not in index and readings[j] is not NOTHING_READING]
        if bad:
            raise ValueError(
                f"{self.where}: column {bad[0] + 1} has no name; give it one in the header line"
            )
        return typed_columns(inference, readings, names, self.where, self.options, odd_limit)


def typed_columns(
    inference: Inference,
    readings: Sequence[Reading],
    names: Sequence[str],
    where: str,
    options: ReadOptions,
    odd_limit: int | None = None,
    first_row: int = 2,
) -> TypedColumns:
    """Return how the columns that have names are read.

    Parameters
    ----------
    inference : Inference
    readings : sequence of Reading
        Of all columns.
    names : sequence of str
        Empty for columns without a name.
    where : str
        Subject of the error.
    options : ReadOptions
    odd_limit : int, optional
        Odd values of a batch; any number by default.
    first_row : int, default=2
        Number of the first row: the header line of a file is row 1.

    Raises
    ------
    ValueError
        If a column cannot be read as in training.
    """
    for j, (row, text) in inference.contradictions().items():
        form = options.columns[names[j]].written_form
        header = " (the header line is row 1)" if first_row else ""
        raise ValueError(
            f"{where}: column '{names[j]}' was written as {form} in training, but row {row:,}"
            f"{header} holds {text!r:.60}; write it as in training, or leave it empty"
        )
    columns = [
        TypedColumn(
            j,
            name,
            readings[j],
            options.columns[name].gaps if name in options.columns else (),
            name in (options.labels or ()) and readings[j].name in SPELLED_BOOLEANS,
        )
        for j, name in enumerate(names)
        if name
    ]
    return TypedColumns(columns, odd_limit, first_row)


def _look(inference: Inference, batches: Iterable[pa.RecordBatch]) -> Inference:
    for batch in batches:
        inference.add(batch.columns)
    return inference


class _LateError(Exception):
    """Raised if a value does not have the type of those at the beginning."""


@dataclass(frozen=True)
class TypedColumn:
    """Reading of a column of text, and the odd values that it has come across."""

    number: int
    name: str
    reading: Reading
    gaps: tuple[str, ...]
    is_label: bool = False
    odd: OddValues = field(default_factory=OddValues)

    @property
    def type(self) -> pa.DataType:
        """Type of the values: labels stay as they are written."""
        return pa.string() if self.is_label else self.reading.type

    def read(self, texts: pa.Array, row: int, limit: int) -> pa.Array:
        """Return the values of texts whose first one is in the given row, and note odd values."""
        values, places, odd_texts = read_values(self.reading, texts, self.gaps, limit)
        self.odd.add([row + place for place in places], odd_texts)
        if self.is_label:
            null = pa.scalar(None, pa.string())
            return pc.if_else(values.is_valid(), pc.utf8_trim_whitespace(texts), null)
        return values

    def column_reading(self) -> ColumnReading:
        """Return how the column was read, for new files."""
        mark = None if self.reading.mark is None else astuple(self.reading.mark)
        gaps = dict.fromkeys((*self.gaps, *self.odd.spellings))
        return ColumnReading(self.reading.name, mark, tuple(gaps), self.odd)


class TypedColumns:
    """Readings that make values of columns of text.

    Parameters
    ----------
    columns : sequence of TypedColumn
    odd_limit : int, optional
        Odd values of a batch; any number by default.
    """

    def __init__(
        self, columns: Sequence[TypedColumn], odd_limit: int | None, first_row: int = 2
    ) -> None:
        self._columns, self._odd_limit = columns, odd_limit
        self._rows = first_row
        self.schema = pa.schema([(column.name, column.type) for column in columns])

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of the next rows."""
        limit = batch.num_rows if self._odd_limit is None else self._odd_limit
        try:
            values = [
                column.read(batch.column(column.number), self._rows, limit)
                for column in self._columns
            ]
        except pa.ArrowInvalid as error:
            # The types were guessed from the beginning, and this value contradicts them.
            raise _LateError from error
        self._rows += batch.num_rows
        return pa.record_batch(values, schema=self.schema)

    def column_readings(self) -> dict[str, ColumnReading]:
        """Return the readings of columns, by name."""
        return {column.name: column.column_reading() for column in self._columns}
