"""The format of Arrow's own files, Feather and IPC: record batches, read and written one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from ..rows import arrow_compute as pc
from ..rows.file_stamp import FileStamp
from ..tables.base import Table
from ..tables.read_options import ReadOptions
from ..tables.stored import Pieces, PiecesTable
from .base import BatchWriter, WritableFormat, formats


@dataclass(frozen=True)
class IpcFile(Pieces):
    """A file of record batches.

    - `counts`: rows of each batch.
    - `stamp`: stamp of the file when these were read.
    """

    path: Path
    schema: pa.Schema
    counts: tuple[int, ...]
    stamp: FileStamp

    @classmethod
    def open(cls, path: Path) -> IpcFile:
        """Read the schema and the length of each batch; this decodes one column."""
        # The stamp is read while the file is open and before its batches: a later version is a
        # change.
        with _reader(path) as opened_file:
            stamp, schema = FileStamp.of(path), opened_file.schema
        # The format has no lengths of batches in its footer: each batch must be decoded, here one
        # column of it.
        with _reader(path, [0]) as file:
            counts = [_batch(file, i).num_rows for i in range(file.num_record_batches)]
        return cls(path, schema, tuple(counts), stamp)

    def read(
        self, columns: Sequence[str], size: int, pieces: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Decode a batch at a time; see `Pieces.read`."""
        # Only these columns are decoded; buffers of the others are skipped.
        fields = [self.schema.names.index(name) for name in columns]
        with self.stamp.require_unchanged(self.path), _reader(self.path, fields) as file:
            for i in range(len(self.counts)) if pieces is None else pieces:
                batch = _batch(file, i)
                for start in range(0, batch.num_rows, size):
                    # Included fields come in the order of the file, and are put in the order asked
                    # for.
                    yield batch.slice(start, size).select(list(columns))


@contextmanager
def _reader(path: Path, fields: Sequence[int] | None = None) -> Iterator[Any]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    # One thread decodes, so that the others are free to compute.
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    try:
        # Not mapped: pages of the file would count as memory of this process.
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source, options=options) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as an Arrow (Feather) file: it is cut off, damaged or of "
            f"another format; write it again (Arrow reports: {str(error).splitlines()[0]})"
        ) from error


def _batch(file: Any, number: int) -> pa.RecordBatch:
    """Decode a batch and check its buffers: Arrow does not check the offsets in a file.

    Costs 0.2 seconds per GB of texts, nothing for numbers.
    """
    batch = file.get_batch(number)
    batch.validate(full=True)
    return batch


class IpcWriter:
    """Writer of compressed record batches.

    Such a file has one list of categories for each column, which may only grow: the categories of
    a batch are appended.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._known: dict[str, pa.Array] = {}
        # Deltas, because the categories of later batches are appended to the ones written before; a
        # replaced list of categories is not allowed in a file.
        options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
        self._file = pa.ipc.new_file(str(path), schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        pairs = zip(self._schema, batch.columns, strict=True)
        columns = [
            self._grow_categories(field.name, column)
            if pa.types.is_dictionary(field.type)
            else column
            for field, column in pairs
        ]
        self._file.write_batch(pa.record_batch(columns, schema=self._schema))

    def _grow_categories(self, name: str, column: pa.Array) -> pa.Array:
        known_categories = self._known.get(name, column.dictionary)
        # 1. Categories that no earlier batch had are appended; older ones keep their codes.
        new = column.dictionary.filter(
            pc.invert(pc.is_in(column.dictionary, value_set=known_categories))
        )
        known_categories = self._known[name] = pa.concat_arrays([known_categories, new])
        # 2. Each category of this batch by its place in the longer list.
        places = pc.index_in(column.dictionary, value_set=known_categories)
        kind = self._schema.field(name).type
        # 3. Codes of this batch translated into these places; nulls stay null.
        indices = places.take(column.indices).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, known_categories, ordered=kind.ordered)

    def close(self) -> None:
        """Complete the file."""
        self._file.close()


@formats.register("feather")
class Feather(WritableFormat):
    """A ``.feather`` or ``.arrow`` file, of Feather's version 2 or later."""

    suffixes = (".feather", ".arrow", ".ipc")

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        """Stream the file; see `TableFormat.open`."""
        return PiecesTable(IpcFile.open(path), where)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        return IpcWriter(path, schema)
