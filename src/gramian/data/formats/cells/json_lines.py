"""Objects of JSON, one on each line, by Arrow's parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ..base import formats
from .base import CellsFormat


@formats.register("json_lines")
class JsonLines(CellsFormat):
    """A file with an object on each line; its keys are the columns."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")

    def cells(self, path: Path, part: str | None) -> Iterator[Sequence[Any]]:
        """Yield the values of the objects; see `CellsFormat.cells`."""
        from pyarrow import json

        # Dates stay texts: the reader of text files finds their type.
        try:
            table = json.read_json(str(path))
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(
                f"{path} cannot be read as lines of JSON ({str(error).splitlines()[0]}); expected "
                "one object on each line, with values of one type for each key"
            ) from error
        for field in table.schema:
            if pa.types.is_nested(field.type):
                raise TypeError(
                    f"{path}: column '{field.name}' holds {field.type}, and a table has one value "
                    "in each cell; write its parts as keys of their own"
                )
        yield table.column_names
        for batch in table.to_batches(max_chunksize=1 << 14):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
