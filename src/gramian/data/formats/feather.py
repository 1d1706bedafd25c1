"""The formats of Arrow's own files: Feather and IPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from ..tables.base import Table
from ..tables.sequential import PiecesTable
from .base import BatchWriter, WritableFormat, formats
from .ipc_file import IpcFile, IpcWriter


@formats.register("feather")
class Feather(WritableFormat):
    """A ``.feather`` or ``.arrow`` file, of Feather's version 2 or later."""

    suffixes = (".feather", ".arrow", ".ipc")

    def schema(self, path: Path) -> pa.Schema:
        """Return the schema of the file; see `TableFormat.schema`."""
        return IpcFile.open(path).schema

    def batches(self, path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """Read a record batch at a time; see `TableFormat.batches`."""
        yield from IpcFile.open(path).read(schema.names, size)

    def table(self, path: Path, where: str | None = None) -> Table:
        """Stream the file; see `TableFormat.table`."""
        return PiecesTable(IpcFile.open(path), str(path) if where is None else where)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        """Return an `IpcWriter`; see `WritableFormat.writer`."""
        return IpcWriter(path, schema)
