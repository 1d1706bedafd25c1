"""The format of comma-separated text: loaded as a whole for a fit, converted a little at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ..text import csv_batches, csv_schema, read_csv, widened
from .base import BatchWriter, WritableFormat, formats


@formats.register("csv")
class Csv(WritableFormat):
    """A ``.csv`` file with a header line, in UTF-8. Types are guessed from its beginning."""

    suffixes = (".csv",)
    text = True

    def schema(self, path: Path) -> pa.Schema:
        """Guess the types from the first 4 MB; see `TableFormat.schema`."""
        return csv_schema(path)

    def batches(self, path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """Parse 4 MB at a time, whatever `size`; see `TableFormat.batches`."""
        for batch in csv_batches(path, _types(schema)):
            yield batch if batch.schema.names == schema.names else batch.select(schema.names)

    def widened(self, path: Path, schema: pa.Schema) -> pa.Schema:
        """Look at every value, in one pass; see `TableFormat.widened`."""
        found = widened(path, _types(csv_schema(path)) | _types(schema))
        return pa.schema({name: found[name] for name in schema.names})

    def load(self, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
        """Parse with all threads; see `TableFormat.load`."""
        return read_csv(path, columns)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        """Return Arrow's writer; see `WritableFormat.writer`."""
        writer: BatchWriter = pyarrow.csv.CSVWriter(path, schema)
        return writer


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))
