"""Formats of text with separators, and sources of text besides one file."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ...._files.atomic import remove_with
from ...rows import arrow_compute as pc
from ...tables.base import Table
from ...tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ..base import BatchWriter, WritableFormat, formats


@formats.register("csv")
class Csv(WritableFormat):
    """A file of text with a header line; see `gramian.data.formats.csv`.

    Attributes
    ----------
    separator : str
        Between the fields of a file that is written; of one that is read it is found out.
    compression : str or None
        Of a file that is written, in Arrow's words.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".txt")
    text = True
    separator: ClassVar[str] = ","
    compression: ClassVar[str | None] = None

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        """Read the file once, a long one into a temporary file; see `text_table`."""
        # The reader of text takes as long to import as all other formats.
        from .table import text_table

        return text_table(path, where, options)

    def writer(
        self, path: Path, schema: pa.Schema, dtype: np.dtype[Any] | None = None
    ) -> BatchWriter:
        return TextWriter(path, schema, self.separator, self.compression)


def _register(
    name: str, suffixes: tuple[str, ...], separator: str = ",", compression: str | None = None
) -> None:
    """Register a format of text with another separator, or compressed."""
    values = {"suffixes": suffixes, "separator": separator, "compression": compression}
    formats.register(name)(type(f"Csv_{name}", (Csv,), {**values, "__module__": __name__}))


_register("tsv", (".tsv", ".tab"), "\t")
_register("csv.gz", (".csv.gz", ".txt.gz"), compression="gzip")
_register("tsv.gz", (".tsv.gz", ".tab.gz"), "\t", "gzip")
_register("csv.bz2", (".csv.bz2",), compression="bz2")
_register("csv.zst", (".csv.zst",), compression="zstd")


FORMULA_START = r"^[=+\-@\t\r]"
"""Start of a text that spreadsheets compute, or run, when they open a file."""

TEXT_NUMBER = r"^[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?$"


def without_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return texts and names of columns with an apostrophe before each that would be a formula.

    Numbers stay as they are, also those that are texts, such as the label ``-1``. Categories become
    texts.
    """
    names = [_escape_texts(pa.array([name])).to_pylist()[0] for name in batch.schema.names]
    return pa.record_batch([_escape_texts(column) for column in batch.columns], names=names)


def _escape_texts(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    # Negative numbers begin with a minus, as a formula may, but are harmless.
    number = pc.match_substring_regex(column, TEXT_NUMBER)
    formula = pc.and_(pc.match_substring_regex(column, FORMULA_START), pc.invert(number))
    quote = pa.scalar("'", column.type)
    empty = pa.scalar("", column.type)
    return pc.if_else(formula, pc.binary_join_element_wise(quote, column, empty), column)


class TextWriter:
    """Writer of record batches as text; categories become their values."""

    def __init__(
        self, path: Path, schema: pa.Schema, separator: str, compression: str | None
    ) -> None:
        self._schema = pa.schema([(field.name, _written_type(field)) for field in schema])
        self._stream = pa.output_stream(str(path), compression=compression)
        options = pyarrow.csv.WriteOptions(delimiter=separator)
        self._file = pyarrow.csv.CSVWriter(self._stream, self._schema, write_options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        pairs = zip(batch.columns, self._schema.types, strict=True)
        columns = [array if array.type.equals(kind) else array.cast(kind) for array, kind in pairs]
        self._file.write(pa.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """Complete the file."""
        # The writer first: it flushes into the stream, which then ends its compression.
        self._file.close()
        self._stream.close()


def _written_type(field: pa.Field) -> pa.DataType:
    """Return the type of the written values of a column."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_nested(kind):
        raise TypeError(
            f"column '{field.name}' holds {kind}, which cannot be written as text; leave it out, "
            "or write to a .parquet or .feather file"
        )
    return kind


STANDARD_INPUT = "-"
"""Path of a table that is read from standard input."""

TEXT_SUFFIXES = (
    ".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.bz2", ".csv.zst",
)  # fmt: skip


def text_files(path: Path) -> list[Path] | None:
    """Return the files of text of a pattern such as ``days/*.csv``, or of a folder; else None.

    - `path`: a folder with other files, such as Parquet, is a table of another format.

    Raise FileNotFoundError if no file matches a pattern.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
        return files if files and all(map(_is_text, files)) else None
    if path.exists() or not glob.has_magic(str(path)):
        return None
    files = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not files:
        raise FileNotFoundError(f"there is no file {path}")
    return files if all(map(_is_text, files)) else None


def _is_text(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(TEXT_SUFFIXES)


def standard_input(options: ReadOptions = DEFAULT_OPTIONS) -> Table:
    """Read a table of text from standard input, which can be read only once.

    Its text is in a temporary file until the table is read.
    """
    handle, name = tempfile.mkstemp(prefix="gramian-", suffix=".csv")
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    from .table import text_table  # long to import

    try:
        table = text_table(Path(name), "standard input", options)
    except BaseException:
        Path(name).unlink()
        raise
    remove_with(table, Path(name))
    return table
