"""The format of Parquet: a file, or a folder of files that follow each other, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base import RowSource
from ..columns import collected
from ..parquet import ParquetRows
from ..parquet_files import SUFFIXES, ParquetFile, belongs, opened, parquet_paths, row_groups
from .base import BatchWriter, WritableFormat, formats


@formats.register("parquet")
class Parquet(WritableFormat):
    """A ``.parquet`` or ``.pq`` file, or any folder, of which the files of these names are read."""

    suffixes = SUFFIXES
    folder = True

    def opens(self, path: Path) -> bool:
        """Return whether a path is a folder or has the name of such a file."""
        return path.is_dir() or self.has_suffix(path.name)

    def is_part(self, path: Path) -> bool:
        """Return whether `parquet_paths` would list a file of a folder."""
        return belongs(path)

    def schema(self, path: Path) -> pa.Schema:
        """Return that of the first file; see `TableFormat.schema`."""
        first = parquet_paths(path)[0]
        with opened(first) as file:
            schema = file.schema_arrow
        if len(schema) == 0:
            raise ValueError(f"{first} has 0 columns, but at least one is needed")
        return schema

    def batches(self, path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """Decode `size` rows at a time; see `TableFormat.batches`."""
        whole = self.schema(path)
        for part in parquet_paths(path):
            with opened(part) as file:
                found = ParquetFile(part, row_groups(file))
                _check_same(part, file.schema_arrow, whole)
            yield from found.batches(schema.names, size)

    def rows(self, path: Path, columns: Sequence[str] | None = None) -> RowSource:
        """Stream the files; see `TableFormat.rows`."""
        return ParquetRows(path, columns)

    def column(self, path: Path, name: str) -> np.ndarray:
        """Stream one column into an array; see `TableFormat.column`."""
        files = []
        for part in parquet_paths(path):
            with opened(part) as file:
                files.append(ParquetFile(part, row_groups(file)))
        batches = (batch for file in files for batch in file.batches([name], 1 << 16))
        rows = sum(file.rows for file in files)
        return collected((batch.column(0) for batch in batches), path, name, rows)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        """Return Arrow's writer, with which a batch becomes a row group and pages get checksums."""
        writer: BatchWriter = pq.ParquetWriter(path, schema, write_page_checksum=True)
        return writer


def _check_same(path: Path, found: pa.Schema, schema: pa.Schema) -> None:
    if not found.equals(schema):
        raise ValueError(
            f"{path} differs from the first file in columns or types: "
            f"{', '.join(found.names)} against {', '.join(schema.names)}"
        )
