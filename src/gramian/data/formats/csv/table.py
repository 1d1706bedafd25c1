"""`text_table`: a file of text as a table, in memory or in a temporary file."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from ...._files.atomic import remove_with
from ...._messages.checks import join_words
from ...._messages.errors import Text, TextError
from ...rows.arrow import check_columns
from ...rows.dtypes import warn_of_rounded_column
from ...rows.file_stamp import FileStamp
from ...rows.prefetch import prefetch
from ...tables.base import Table
from ...tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ...tables.stored import MemoryTable, PiecesTable
from ..feather import IpcFile, IpcWriter
from .columns.conversion import LateError, TypedColumns, typed_columns, without_missing
from .columns.infer_types import Inference
from .columns.parsers import NOTHING_READING
from .dialect import Dialect, sniff
from .extra_rows import checked_rows, refuse_total
from .reader import NotOfThisDialectError, strings
from .remarks import ReadWarning, warn_of_digits, warn_of_marks, warn_of_mixed_texts

HELD_BYTES = 1 << 26
"""Text up to which a table is held in memory."""

# Text from which the types of a longer one are guessed.
_GUESS_BYTES = 1 << 23


def text_table(
    path: Path,
    where: str | None = None,
    options: ReadOptions = DEFAULT_OPTIONS,
    more: Sequence[Path] = (),
) -> Table:
    """Read a table of text, with types that every value has.

    - `where`: subject of error messages; the path by default.
    - `more`: files with more rows of the same columns, in any order.

    The table is in memory; of a file with more than `HELD_BYTES` of text, in a temporary file in
    ``tempfile.gettempdir()``, that is removed with the table.

    Raise FileNotFoundError or ValueError if it is no table of text with a header line and rows that
    all have its fields, or a column cannot be read as in training.

    Cost: one pass over a file that is held. A longer one is read with the types of its beginning;
    if a later value has another type, one pass infers the types of all values, and one reads them
    again. Memory: about four times `HELD_BYTES`.
    """
    where = str(path) if where is None else where
    dialects = {file: sniff(file, options) for file in (path, *more)}
    if not options.is_stored:
        check_columns(where, dialects[path].names, list(options.types))
    first_names = dialects[path].names
    for file in more:
        names = dialects[file].names
        if sorted(names) != sorted(first_names):
            other_names = sorted(set(names) ^ set(first_names)) or sorted(names)
            raise ValueError(
                f"{file} has other columns than {path}: {join_words(other_names[:5])}; all files "
                "of a table have the same columns"
            )
    with ExitStack() as stack:
        for file in dialects:
            stack.enter_context(FileStamp.of(file).require_unchanged(file))
        while True:
            try:
                return _Text(dialects, where, options).table()
            # Each retry has another encoding or larger blocks, of which there are few: the loop
            # ends.
            except NotOfThisDialectError as error:
                dialects[error.path] = error.dialect


@dataclass(frozen=True)
class _Text:
    """Files of text, with the rows of one table, whose dialects are known."""

    dialects: Mapping[Path, Dialect]
    where: str
    options: ReadOptions

    @property
    def dialect(self) -> Dialect:
        """Dialect of the first file."""
        return next(iter(self.dialects.values()))

    def table(self) -> Table:
        """Read it into memory, or into a temporary file if there is much of it."""
        held_batches: list[pa.RecordBatch] = []
        bytes_held = 0
        # A file of this size is not held in any case, so that its beginning suffices for a guess;
        # a compressed one is longer still.
        long = sum(path.stat().st_size for path in self.dialects) > HELD_BYTES
        for batch in self._strings():
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
        inference = self._inference().look(batches)
        if sum(batch.num_rows for batch in batches) == 0:
            raise ValueError(f"{self.where} has 0 rows: add rows below its header line")
        columns = self._columns(inference)
        last_texts = [column[-1].as_py() for column in batches[-1].columns]
        # Each batch of texts is released once its values are read: both tables together would take
        # twice the memory.
        typed = [columns.read(batches.pop(0)) for _ in range(len(batches))]
        table = MemoryTable(pa.Table.from_batches(typed, columns.schema), self.where)
        refuse_total(table, last_texts, self.dialect.first_row)
        return self._with_readings(table, columns)

    def _inference(self) -> Inference:
        dialect = self.dialect
        return Inference(dialect.names, self.options, dialect.delimiter, dialect.first_row)

    def _stored_table(self, held: list[pa.RecordBatch]) -> Table:
        """Rewrite the file, with the types of the held batches unless later values differ."""
        guess = self._inference().look(held)
        # The rewrite needs the memory of the held batches, which Arrow's pool would keep.
        held.clear()
        pa.default_memory_pool().release_unused()
        if guess.is_settled():
            try:
                return self._rewrite_file(self._columns(guess, odd_limit=0))
            # A later value has another type: all values are inferred in a pass of their own.
            except LateError:
                pass
        inference = self._inference().look_twice(lambda: prefetch(self._strings()))
        return self._rewrite_file(self._columns(inference))

    def _rewrite_file(self, columns: TypedColumns) -> Table:
        handle, name = tempfile.mkstemp(prefix="gramian-", suffix=".arrow")
        # `mkstemp` makes the name safely; the writer opens the file by itself.
        os.close(handle)
        temporary = Path(name)
        try:
            with closing(IpcWriter(temporary, columns.schema)) as writer:
                for batch in prefetch(self._strings()):
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
        return self._with_readings(table, columns)

    def _with_readings(self, table: Table, columns: TypedColumns) -> Table:
        """Attach the readings to a table, and warn of guesses."""
        table.column_readings = columns.column_readings()
        table.reading, table.first_row = self._reading(columns), self.dialect.first_row
        dialects = {} if self.options.is_stored else self.dialects
        if self.options.labels is not None:
            warn_of_digits(table, self.options)
            warn_of_mixed_texts(table, self.options)
            warn_of_marks(self.where, columns.guesses)
            for name in columns.long_integers:
                warn_of_rounded_column(name)
        for path, dialect in dialects.items():
            for remark in dialect.remarks:
                where = self.where if len(self.dialects) == 1 else path
                warnings.warn(ReadWarning(Text("{}: {}", where, remark)), stacklevel=2)
        return table

    def _reading(self, columns: TypedColumns) -> ReadOptions:
        """Return the options for new files, without the usual ones."""
        encoding, separator = self.dialect.encoding, self.dialect.separator
        return replace(
            self.options.for_model,
            separator=None if separator == "," else separator,
            encoding=None if encoding == "utf-8" else encoding,
            decimal=self.options.decimal or columns.decimal,
        )

    def _strings(self) -> Iterator[pa.RecordBatch]:
        batches = chain.from_iterable(map(self._strings_of, self.dialects))
        return without_missing(batches, self.options.missing) if self.options.missing else batches

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
        columns = typed_columns(inference, readings, self.where, odd_limit)
        other_columns = [] if self.options.is_stored else inference.other_decimals()
        if other_columns:
            raise TextError(
                "{}: {decimal=} is given, but numbers of column '{}' have another mark for "
                "decimals; leave it out, or give {types=} if the values are no numbers",
                self.where, self.options.decimal, names[other_columns[0]],
                {names[other_columns[0]]: "category"},
            )  # fmt: skip
        return columns

    def _strings_of(self, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield the texts of a file, in the order of the columns of the first one."""
        dialect, names = self.dialects[path], self.dialect.names
        if dialect.names == names:
            yield from checked_rows(strings(path, dialect), path, dialect)
            return
        places = [str(dialect.names.index(name)) for name in names]
        for batch in checked_rows(strings(path, dialect), path, dialect):
            columns = batch.select(places).columns
            yield pa.record_batch(columns, names=[str(j) for j in range(len(names))])
