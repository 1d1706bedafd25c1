"""`TypedTable`: columns of text of frames and files, read as the same text in a file of text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..._messages.checks import join_words
from ..encoding.kinds import is_text
from ..formats.csv.columns.conversion import TypedColumns, typed_columns
from ..formats.csv.columns.infer_types import Inference
from ..formats.csv.columns.parsers import TEXT_READING, Reading
from ..formats.csv.remarks import warn_of_mixed_texts
from ..rows import arrow_compute as pc
from ..rows.arrow import LastSchemas, check_columns
from ..tables.base import DerivedTable, Table
from ..tables.read_options import ReadOptions
from ..tables.stored import MemoryTable
from .column_texts import (
    as_texts,
    dates_of_digits,
    gap_numbers,
    is_number_type,
    warn_of_bare_numbers,
)

LOOKED_ROWS = 1 << 16
"""Rows of a batch while readings are inferred."""

PLAIN_NUMBERS = ("integer", "1.5")
"""Readings of texts that every library reads as numbers: as text they were meant to be text."""


class TypedTable(DerivedTable):
    """A table whose texts are values, with the column types and texts for gaps that users declare.

    - `columns`: readings of the columns that are converted by their texts.
    - `options`: its `types` and `missing` are used.
    """

    def __init__(self, table: Table, columns: TypedColumns, options: ReadOptions) -> None:
        self._read, self._options = columns, options
        types = dict(zip(columns.schema.names, columns.schema.types, strict=True))
        fields = [field for field in table.schema if options.types.get(field.name) != "ignore"]
        super().__init__(table, pa.schema([(f.name, types.get(f.name, f.type)) for f in fields]))
        self.column_readings = {**table.column_readings, **columns.column_readings()}
        self._gaps = gap_numbers(options)
        numbers = [field.name for field in fields if self._gaps and is_number_type(field.type)]
        self._converted = {*columns.names, *numbers}

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the columns that are texts in the file, and whose type nobody declared."""
        types = self._options.types
        return tuple(name for name in self._read.names if name not in types)

    def change(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert the values of a batch."""
        texts = [name for name in batch.schema.names if name in self._read.names]
        converted = self._read.convert(as_texts(batch.select(texts), self._options))
        arrays = []
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._read.names:
                values = converted.column(name)
            elif name in self._converted:
                is_gap = pc.is_in(values.cast(pa.float64()), pa.array(self._gaps))
                values = pc.if_else(is_gap, pa.scalar(None, values.type), values)
            arrays.append(values)
        return pa.record_batch(arrays, names=batch.schema.names)

    def in_memory(self, table: MemoryTable) -> MemoryTable:
        """Return this table with all values in memory.

        - `table`: its source.
        """
        names = [name for name in self.names if name in self._converted]
        converted, arrow = next(self.batches(names, len(self))), table.table.select(self.names)
        for name in names:
            arrow = arrow.set_column(self.names.index(name), name, converted.column(name))
        result = MemoryTable(arrow, self.where)
        result.column_readings = self.column_readings
        return result


def read_texts(
    table: Table, options: ReadOptions, *, in_file: bool, undeclared: bool = True
) -> Table:
    """Return a table whose texts are read as in a file of text, and whose types are as declared.

    - `in_file`: whether the table is read again in each pass, and never held.
    - `undeclared`: whether texts of columns without a declared type are read.

    Raise ValueError if a column cannot be read as in training, or has not its declared type.

    Warn if all texts of a column are plain numbers: no library reads these as text by default, so
    they stay text.

    Cost: a pass over the columns of text, which ends early if they are levels; two more if they
    have odd values or are plain numbers.
    """
    if not options.is_stored:
        check_columns(table.where, table.names, list(options.types))
    missing, types = bool(options.missing), tuple(options.types.items())
    names = list(_text_columns(table.schema, types, missing, undeclared))
    if undeclared and not in_file and options.columns:
        warn_of_bare_numbers(table, options)
        names += dates_of_digits(table, options)
    has_gaps = bool(gap_numbers(options)) and any(map(is_number_type, table.schema.types))
    if not names and not has_gaps and "ignore" not in options.types.values():
        return table
    texts = _Texts(table, options, LOOKED_ROWS if in_file else table.num_rows)
    try:
        columns = texts.infer_columns(names, undeclared=undeclared)
    except _UnreadableError:
        # A fit that leaves out such a column is not refused.
        names = [name for name in names if texts.is_readable(name)]
        columns = texts.infer_columns(names, undeclared=undeclared)
    typed = TypedTable(table, columns, options)
    result = typed.in_memory(table) if isinstance(table, MemoryTable) and not in_file else typed
    if options.labels is not None and undeclared and names:
        warn_of_mixed_texts(result, options)
    return result


@LastSchemas
def _text_columns(
    schema: pa.Schema, types: tuple[tuple[str, str], ...], missing: bool, undeclared: bool
) -> list[str]:
    """Return the columns that are converted by their texts."""
    kinds = dict(types)
    return [
        field.name
        for field in schema
        if (
            _differs(field.type, kinds[field.name], missing)
            if field.name in kinds
            else pa.types.is_string(field.type) and (undeclared or missing)
        )
    ]


def _differs(type_: pa.DataType, kind: str, missing: bool) -> bool:
    """Return whether a column is not of its declared type, or is text with texts for gaps."""
    if kind == "category":
        return not pa.types.is_dictionary(type_) and (missing or not is_text(type_))
    is_of_kind = {
        "number": is_number_type(type_) or pa.types.is_decimal(type_),
        "date": pa.types.is_temporal(type_),
        "boolean": pa.types.is_boolean(type_),
        "ignore": True,
    }
    return not is_of_kind[kind]


class _UnreadableError(ValueError):
    """Error for texts that cannot be read, such as very long ones."""


@dataclass(frozen=True)
class _Texts:
    """Texts of columns of a table.

    - `size`: rows of a batch.
    """

    table: Table
    options: ReadOptions
    size: int

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the texts of some columns."""
        try:
            for batch in self.table.batches(names, self.size) if names else ():
                yield as_texts(batch, self.options)
        except ValueError as error:
            raise _UnreadableError(str(error)) from error

    def is_readable(self, name: str) -> bool:
        """Return whether all texts of a column can be read."""
        try:
            for _ in self.batches([name]):
                pass
        except _UnreadableError:
            return False
        return True

    def infer_columns(self, names: Sequence[str], *, undeclared: bool) -> TypedColumns:
        """Return how columns are read, with their odd values."""
        # Texts of columns without a declared type stay as they are, unless these are read, too.
        texts = () if undeclared else [name for name in names if name not in self.options.types]
        inference = Inference(names, self.options, first_row=0, texts=texts)
        inference = inference.look_twice(lambda: self.batches(names))
        readings = inference.readings()
        has_odd = inference.has_odd(readings)
        if self.options.labels is not None:
            readings = self._keep_numbers_as_text(dict(zip(names, readings, strict=True)))
        columns = typed_columns(inference, readings, self.table.where)
        if has_odd:  # their rows and spellings
            for batch in self.batches(names):
                columns.read(batch)
        return columns

    def _keep_numbers_as_text(self, readings: Mapping[str, Reading]) -> list[Reading]:
        """Return the readings of a training table, in which texts of plain numbers stay text."""
        numbers = [
            name
            for name, reading in readings.items()
            if reading.name in PLAIN_NUMBERS and reading.mark is None
            if name not in self.options.types
        ]
        for batch in self.batches(numbers):
            numbers = [name for name in numbers if _are_plain(readings[name], batch.column(name))]
        if features := [name for name in numbers if name not in (self.options.labels or ())]:
            warnings.warn(
                f"{self.table.where}: columns of numbers that are text stay text: "
                f"{join_words(features)}; make them numbers (pandas.to_numeric) to use their size, "
                "or categories if they are codes",
                stacklevel=2,
            )
        return [TEXT_READING if name in numbers else reading for name, reading in readings.items()]


def _are_plain(reading: Reading, texts: pa.Array) -> bool:
    """Return whether all texts are numbers as they are, without spaces and written gaps."""
    has_spaces = pc.any(pc.not_equal(texts, pc.utf8_trim_whitespace(texts))).as_py()
    return not has_spaces and reading.holds(texts)
