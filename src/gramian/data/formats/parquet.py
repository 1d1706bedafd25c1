"""Rows of a Parquet file, or of a directory of them, read from front to back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..rows.array import check_matrix
from ..rows.arrow import choose_columns, fill
from ..rows.base import RowSource, check_index, check_size
from ..rows.file_stamp import RemotePath
from ..rows.prefetch import fill_blocks, prefetch
from ..tables.base import Table
from ..tables.read_options import ReadOptions
from ..tables.stored import PiecesTable, batch_rows, take_pieces
from .base import BatchWriter, WritableFormat, formats
from .parquet_file import PARQUET_SUFFIXES, belongs
from .parquet_folder import ParquetPieces
from .partitions import keys_of


class ParquetRows(RowSource):
    """Rows of a Parquet file or directory, never loaded as a whole.

    Parameters
    ----------
    path : str or Path
        A file, or a directory: the ``*.parquet`` and ``*.pq`` files in it and in its subfolders
        follow each other, by name. Subfolders ``key=value`` make a column.
    columns : sequence of str, optional
        The columns to use, in this order; all of them by default.
    read_ahead : bool
        Decode the next block in another thread while the present one is used.

    Notes
    -----
    Blocks have exactly the requested size (except the last), whatever the row groups are, so that
    sums do not depend on how the file was written. Missing values become NaN.

    Memory: two blocks (one without ``read_ahead``), and what decoding needs: some pages per
    column, about 3 MB each where pages have Arrow's usual 1 MB. 20 million rows of 20 float32
    columns in row groups of a million took 95 MB with blocks of 65,536 rows, 5 s per pass.
    `take` is a pass over the row groups that hold wanted rows.
    """

    random_access = False

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        *,
        read_ahead: bool = True,
    ) -> None:
        self.path = Path(path)
        self._pieces = ParquetPieces.at(path)
        files = zip(self._pieces.files, self._pieces.schemas, strict=True)
        columns_of_files = [
            choose_columns(schema, columns, str(file.path)) for file, schema in files
        ]
        chosen = columns_of_files[0]
        # Only the columns that are used must agree: files may differ in others.
        self._pieces.check_alike(chosen.names)
        n = sum(self._pieces.counts)
        if n == 0:
            raise ValueError(f"{path} has 0 rows, but at least one is needed")
        self.shape = check_matrix((n, len(chosen.names)))
        self.dtype = chosen.dtype
        self.feature_names: tuple[str, ...] | None = chosen.names
        self.read_ahead = read_ahead
        self._names = chosen.names

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        check_size(size)
        blocks = self._assemble(size)
        # A single block has no next one to read ahead.
        return prefetch(blocks) if self.read_ahead and size < self.shape[0] else blocks

    def _assemble(self, size: int) -> Iterator[tuple[slice, Array]]:
        batches = self._pieces.read(self._names, min(size, batch_rows(self._names)))
        try:
            yield from fill_blocks(batches, self._fill, self.shape, self.dtype, size)
        finally:
            # Arrow's pool would keep about 50 MB for later use.
            pa.default_memory_pool().release_unused()

    def _fill(self, out: Array, batch: pa.RecordBatch, _row: int) -> None:
        fill(out, batch, self._names)

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Gather rows in one pass; see `RowSource.take`."""
        check_index(index, self.shape[0])
        # The pass needs increasing, distinct numbers; order and repeats are restored at the end.
        distinct_index, inverse = np.unique(xp.to_host(index), return_inverse=True)
        out = np.empty((len(distinct_index), self.shape[1]), self.dtype)
        for part, batch in take_pieces(self._pieces, self._names, distinct_index):
            fill(out[part], batch, self._names)
        return out[inverse]


@formats.register("parquet")
class Parquet(WritableFormat):
    """A ``.parquet`` or ``.pq`` file, or any folder, whose files of these names are read."""

    suffixes = PARQUET_SUFFIXES
    folder = True

    def opens(self, path: Path) -> bool:
        """Return whether a path is a folder or has the name of such a file."""
        return path.is_dir() or self.has_suffix(path.name)

    def is_part(self, path: Path) -> bool:
        """Return whether `parquet_paths` would list a file, named relative to the folder."""
        return belongs(path)

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        """Stream the files; see `TableFormat.open`."""
        return _table(ParquetPieces.at(path), where)

    def remote(self, start: RemotePath, files: Sequence[RemotePath], where: str) -> Table:
        """Return a table that streams files of an object store.

        - `start`: the file, or the folder that is the table.
        - `files`: the files found.
        - `where`: subject of error messages.
        """
        inside = [PurePosixPath(file.place).relative_to(start.place) for file in files]
        # A single file counts whatever its name; in a folder only the names of Parquet files do.
        alone = list(files) == [start]
        pairs = [
            (name, file) for name, file in zip(inside, files, strict=True) if alone or belongs(name)
        ]
        if not pairs:
            raise ValueError(
                f"the folder {start} contains no "
                f"{' or '.join(f'*{end}' for end in PARQUET_SUFFIXES)} files"
            )
        # By the parts of the path, as local folders are sorted: by text, a-b/x would come before
        # a/x.
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
    if len(pieces.schema) == 0:
        raise ValueError(f"{pieces.files[0].path} has 0 columns, but at least one is needed")
    pieces.check_alike()
    return PiecesTable(pieces, where)
