"""The format of Parquet: a file, or a folder of files that follow each other, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base import RowSource
from ..parquet import ParquetRows
from ..parquet_files import SUFFIXES, belongs
from ..parquet_pieces import ParquetPieces
from ..partitions import keys_of
from ..tables.base import Table
from ..tables.pieces import PiecesTable
from .base import BatchWriter, WritableFormat, formats

if TYPE_CHECKING:
    from ..remote import RemotePath


@formats.register("parquet")
class Parquet(WritableFormat):
    """A ``.parquet`` or ``.pq`` file, or any folder, of which files of these names are read."""

    suffixes = SUFFIXES
    folder = True

    def opens(self, path: Path) -> bool:
        """Return whether a path is a folder or has the name of such a file."""
        return path.is_dir() or self.has_suffix(path.name)

    def is_part(self, path: Path) -> bool:
        """Return whether `parquet_paths` would list a file, named from the folder."""
        return belongs(path)

    def schema(self, path: Path) -> pa.Schema:
        """Return that of the first file; see `TableFormat.schema`."""
        return _some_columns(ParquetPieces.at(path)).schema

    def batches(self, path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """Decode `size` rows at a time; see `TableFormat.batches`."""
        pieces = ParquetPieces.at(path)
        pieces.check_alike()
        yield from pieces.read(schema.names, size)

    def table(self, path: Path, where: str | None = None) -> Table:
        """Stream the files; see `TableFormat.table`."""
        return _table(ParquetPieces.at(path), str(path) if where is None else where)

    def remote(self, start: RemotePath, files: Sequence[RemotePath], where: str) -> Table:
        """Stream files of an object store.

        Parameters
        ----------
        start : RemotePath
            The file, or the folder that is the table.
        files : sequence of RemotePath
            What is there.
        where : str
            Subject of error messages.
        """
        inside = [PurePosixPath(file.place).relative_to(start.place) for file in files]
        alone = list(files) == [start]
        pairs = [
            (name, file) for name, file in zip(inside, files, strict=True) if alone or belongs(name)
        ]
        if not pairs:
            raise ValueError(
                f"the folder {start} holds no {' or '.join(f'*{end}' for end in SUFFIXES)} files"
            )
        pairs.sort(key=lambda pair: pair[0].parts)
        keys = keys_of([name for name, _ in pairs], where)
        return _table(ParquetPieces.of([file for _, file in pairs], keys), where)

    def rows(self, path: Path, columns: Sequence[str] | None = None) -> RowSource:
        """Stream the files; see `TableFormat.rows`."""
        return ParquetRows(path, columns)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        """Return Arrow's writer, with which a batch becomes a row group and pages get checksums."""
        writer: BatchWriter = pq.ParquetWriter(path, schema, write_page_checksum=True)
        return writer


def _table(pieces: ParquetPieces, where: str) -> Table:
    _some_columns(pieces).check_alike()
    return PiecesTable(pieces, where)


def _some_columns(pieces: ParquetPieces) -> ParquetPieces:
    if len(pieces.schema) == 0:
        raise ValueError(f"{pieces.files[0].path} has 0 columns, but at least one is needed")
    return pieces
