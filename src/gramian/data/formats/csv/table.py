"""`text_table`: a file of text as a table, in memory or in a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ...rows.file_stamp import FileStamp
from ...rows.prefetch import prefetch
from ...rows.temporary import remove_with
from ...tables.base import Table
from ...tables.in_memory import MemoryTable
from ...tables.sequential import PiecesTable
from ..ipc_file import IpcFile, IpcWriter
from .dialect import Dialect, sniff
from .infer_types import Inference
from .parsers import NOTHING_READING, Reading
from .reader import NotOfThisDialectError, strings

HELD_BYTES = 1 << 26
"""Text up to which a table is held in memory."""

# Text from which the types of a longer one are guessed.
_GUESS_BYTES = 1 << 23


def text_table(path: Path, where: str | None = None, texts: Collection[str] = ()) -> Table:
    """Read a table of text, with types that every value has.

    Parameters
    ----------
    path : Path
    where : str, optional
        Subject of error messages; the path by default.
    texts : collection of str
        Names of columns that are read as text, whatever they look like.

    Returns
    -------
    Table
        In memory; of a file with more than `HELD_BYTES` of text, in a temporary file in
        ``tempfile.gettempdir()``, that is removed with the table.

    Raises
    ------
    FileNotFoundError, ValueError
        If it is no table of text with a header line and rows that all have its fields.

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
                return _Text(path, dialect, str(path) if where is None else where, texts).table()
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
    texts: Collection[str]

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
        columns = self._columns(inference.readings())
        schema = columns.schema
        # Each batch of texts is released once its values are read: both tables together would take
        # twice the memory.
        typed = [columns.read(batches.pop(0)) for _ in range(len(batches))]
        return MemoryTable(pa.Table.from_batches(typed, schema), self.where)

    def _inference(self, batches: Iterable[pa.RecordBatch]) -> Inference:
        names = self.dialect.names
        texts = [j for j, name in enumerate(names) if name in self.texts]
        inference = Inference(len(names), self.dialect.separator, texts)
        for batch in batches:
            inference.add(batch.columns)
        return inference

    def _stored_table(self, held: list[pa.RecordBatch]) -> Table:
        """Rewrite the file, with the types of the held batches unless later values differ."""
        guess = self._inference(held)
        # The rewrite needs the memory of the held batches, which Arrow's pool would keep.
        held.clear()
        pa.default_memory_pool().release_unused()
        if guess.is_settled():
            try:
                return self._rewrite_file(self._columns(guess.readings()))
            # A later value has another type: all values are inferred in a pass of their own.
            except _LateError:
                pass
        full_inference = self._inference(prefetch(strings(self.path, self.dialect)))
        return self._rewrite_file(self._columns(full_inference.readings()))

    def _rewrite_file(self, columns: _Columns) -> Table:
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
        return table

    def _columns(self, readings: Sequence[Reading]) -> _Columns:
        """Return how columns are read, without those that have no name."""
        names = self.dialect.names
        nameless = [j for j, name in enumerate(names) if not name]
        # pandas and R write their index as a first column without a name: it is left out.
        index = [0] if names[0] == "" else []
        # A nameless column without values is a separator at the ends of lines.
        bad = [j for j in nameless if j not in index and readings[j] is not NOTHING_READING]
        if bad:
            raise ValueError(
                f"{self.where}: column {bad[0] + 1} has no name; give it one in the header line"
            )
        kept_columns = [j for j, name in enumerate(names) if name]
        return _Columns(
            tuple(kept_columns),
            tuple(names[j] for j in kept_columns),
            tuple(readings[j] for j in kept_columns),
        )


class _LateError(Exception):
    """Raised if a value does not have the type of those at the beginning."""


@dataclass(frozen=True)
class _Columns:
    """Readings that make values of columns of text."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def schema(self) -> pa.Schema:
        pairs = zip(self.names, self.readings, strict=True)
        return pa.schema([(name, reading.type) for name, reading in pairs])

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        pairs = zip(self.numbers, self.readings, strict=True)
        try:
            values = [reading.read(batch.column(j)) for j, reading in pairs]
        except pa.ArrowInvalid as error:
            # The types were guessed from the beginning, and this value contradicts them.
            raise _LateError from error
        return pa.record_batch(values, schema=self.schema)
