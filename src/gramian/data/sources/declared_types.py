"""`DeclaredTable`: a table with the column types and the texts for gaps that a user declares."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from ..._messages.errors import TextError
from ..encoding.kinds import is_text
from ..formats.csv.columns.infer_types import Inference
from ..formats.csv.columns.odd_values import read_values
from ..formats.csv.columns.parsers import Reading
from ..formats.csv.columns.readings import DeclaredColumn
from ..rows import arrow_compute as pc
from ..tables.base import DerivedTable, Table, check_columns
from ..tables.column_reading import ColumnReading, OddValues
from ..tables.read_options import ReadOptions
from ..tables.target import is_number

LOOKED_ROWS = 1 << 16
"""Rows of a batch while the reading of declared columns is inferred."""


class DeclaredTable(DerivedTable):
    """A table whose columns have the types that options declare.

    - `options`: its `types` and `missing` are used.
    - `columns`: conversions of the columns that differ.
    """

    def __init__(
        self, table: Table, options: ReadOptions, columns: dict[str, DeclaredValues]
    ) -> None:
        self._columns = columns
        ignored = {name for name, kind in options.types.items() if kind == "ignore"}
        fields = [field for field in table.schema if field.name not in ignored]
        types = {name: column.type for name, column in columns.items()}
        super().__init__(table, pa.schema([(f.name, types.get(f.name, f.type)) for f in fields]))
        read = {name: column for name, column in columns.items() if column.reading is not None}
        readings = {name: column.column_reading for name, column in read.items()}
        self.column_readings = {**table.column_readings, **readings}
        self.reading = options.for_model

    @classmethod
    def of(cls, table: Table, options: ReadOptions) -> DeclaredTable:
        """Return a table with declared columns; ValueError if their values have another type.

        Cost: one pass over columns of text, or of another type than declared.
        """
        kinds = options.types
        if not options.is_stored:
            check_columns(table.where, table.names, list(kinds))
        columns: dict[str, DeclaredValues] = {}
        for entry in table.schema:
            kind = kinds.get(entry.name)
            if kind == "ignore" or not _differs(entry.type, kind, options):
                continue
            values = DeclaredValues(entry.type, kind, options.missing)
            if kind not in (None, "category"):
                values = values.infer_reading(table, entry.name, options)
            columns[entry.name] = values
        return cls(table, options, columns)

    def change(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert the values of declared columns."""
        names = batch.schema.names
        arrays = [
            self._columns[name].convert(array) if name in self._columns else array
            for name, array in zip(names, batch.columns, strict=True)
        ]
        return pa.record_batch(arrays, schema=pa.schema([self.schema.field(n) for n in names]))


def _differs(type_: pa.DataType, kind: str | None, options: ReadOptions) -> bool:
    """Return whether a column is not of the declared type, or may have texts for gaps."""
    is_dictionary = pa.types.is_dictionary(type_)
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    has_gaps = bool(options.missing) and (is_text(type_) or is_number)
    is_of_kind = {
        None: True,
        "number": is_number or pa.types.is_decimal(type_),
        "category": is_dictionary or is_text(type_),
        "date": pa.types.is_temporal(type_),
        "boolean": pa.types.is_boolean(type_),
    }[kind]
    return has_gaps or not is_of_kind


@dataclass(frozen=True)
class DeclaredValues:
    """Conversion of the values of a column to the type that was declared.

    - `kind`: type of `ReadOptions.types`; None for a column that keeps its type.
    - `reading`: of texts.
    """

    source: pa.DataType
    kind: str | None
    missing: tuple[str, ...]
    reading: Reading | None = None
    odd: OddValues = field(default_factory=OddValues)

    @property
    def type(self) -> pa.DataType:
        """Type of the values."""
        if self.reading is not None:
            return self.reading.type
        return pa.string() if self.kind == "category" else self.source

    @property
    def column_reading(self) -> ColumnReading:
        """Reading of a column of texts."""
        assert self.reading is not None
        return ColumnReading(self.reading.name, odd=self.odd)

    def texts(self, array: pa.Array) -> pa.Array:
        """Return values as texts; whole numbers without decimals, as files of text have them."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_floating(array.type):
            is_whole = pc.equal(array, pc.floor(array))
            if pc.all(is_whole).as_py() is not False:
                array = array.cast(pa.int64(), safe=False)
        texts = array.cast(pa.string())
        gaps = pc.is_in(
            pc.utf8_trim_whitespace(texts), value_set=pa.array(self.missing, pa.string())
        )
        return pc.if_else(gaps, pa.scalar(None, pa.string()), texts)

    def convert(self, array: pa.Array) -> pa.Array:
        """Return the values of an array."""
        if self.reading is not None:
            values, _, _ = read_values(self.reading, self.texts(array), (), len(array))
            return values
        if self.kind == "category" or is_text(self.source):
            return self.texts(array).cast(self.type)
        numbers = [float(text) for text in self.missing if is_number(text)]
        gaps = pc.is_in(array.cast(pa.float64()), value_set=pa.array(numbers, pa.float64()))
        return pc.if_else(gaps, pa.scalar(None, array.type), array)

    def infer_reading(self, table: Table, name: str, options: ReadOptions) -> DeclaredValues:
        """Return the conversion with the reading of the declared type for all values."""
        if not _differs(self.source, self.kind, replace(options, missing=())):
            return self
        declared = DeclaredColumn(self.kind, options.date_format)
        inference = Inference(1, ",", None, [declared], options.decimal, first_row=0)
        for batch in table.batches([name], LOOKED_ROWS):
            inference.add([self.texts(batch.column(0))])
        # The first pass finds a value of another type; the second one, below, collects the odd
        # values that the reading leaves as gaps.
        for row, text in inference.contradictions().values():
            raise TextError(
                "{}: column '{}' has the type {} by {types=}, but row {:,} holds {!r}; give "
                "another type, or leave the value empty",
                table.where, name, self.kind, {name: "category"}, row, text,
            )  # fmt: skip
        values = replace(self, reading=inference.readings()[0])
        assert values.reading is not None
        start = 0
        for batch in table.batches([name], LOOKED_ROWS):
            texts = self.texts(batch.column(0))
            _, places, odd = read_values(values.reading, texts, (), len(texts))
            values.odd.add([start + place for place in places], odd)
            start += len(texts)
        return values
