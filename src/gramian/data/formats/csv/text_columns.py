"""Columns of text of frames and Parquet, read as the same text in a file would be."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from ...._messages.checks import join_words
from ...rows import arrow_compute as pc
from ...rows.arrow import LastSchemas
from ...tables.base import DerivedTable, Table
from ...tables.read_options import ReadOptions
from ...tables.stored import MemoryTable
from .columns.conversion import TypedColumns, typed_columns, without_missing
from .columns.infer_types import Inference
from .columns.marks import Mark
from .columns.parsers import TEXT_READING, Reading
from .columns.readings import DIGIT_READINGS, DeclaredColumn
from .remarks import warn_of_mixed_texts

LOOKED_ROWS = 1 << 16
"""Rows of a batch while readings are inferred."""

PLAIN_NUMBERS = ("integer", "1.5")
"""Readings of texts that every library reads as numbers: as text they were meant to be text."""


def read_text_columns(table: pa.Table, where: str, options: ReadOptions) -> Table:
    """Return the table of a frame, whose texts are read as in a file.

    - `where`: subject of error messages.

    Raise ValueError if a column cannot be read as in training.

    Warn if all texts are plain numbers: no library reads these as text by default, so they stay
    text.
    """
    frame = MemoryTable(table, where)
    _warn_of_bare_numbers(frame, options)
    # Columns of a declared type are read by `DeclaredTable`.
    texts_of_columns = {
        field.name: texts
        for field in _text_fields(frame.schema, tuple(options.columns), tuple(options.types))
        if (texts := _texts_of(frame, field, options)) is not None
    }
    names = list(texts_of_columns)
    if not names:
        return frame
    texts = pa.record_batch([texts_of_columns[name] for name in names], names=names)
    if options.missing:
        (texts,) = without_missing([texts], options.missing)
    columns, _ = _infer_columns(lambda _: iter([texts]), names, where, options)
    typed, replaced = columns.read(texts), frame.table
    for name in typed.schema.names:
        replaced = replaced.set_column(frame.names.index(name), name, typed.column(name))
    typed_table = MemoryTable(replaced, where)
    typed_table.column_readings = columns.column_readings()
    if options.labels is not None:
        warn_of_mixed_texts(typed_table, options)
    return typed_table


def _warn_of_bare_numbers(frame: Table, options: ReadOptions) -> None:
    """Warn of numbers of columns that had a unit or percent in training: 0.45 may be 45%."""
    for name in frame.names:
        stored, type_ = options.columns.get(name), frame.schema.field(name).type
        if stored is None or stored.mark is None or Mark(*stored.mark).is_currency:
            continue
        if pa.types.is_integer(type_) or pa.types.is_floating(type_):
            warnings.warn(
                f"{frame.where}: column '{name}' was written as {stored.written_form} in training, "
                "and has numbers here: they are taken as they are, as if they had the same unit",
                stacklevel=2,
            )


def stream_text_columns(table: Table, options: ReadOptions) -> Table:
    """Return a table of a file, such as Parquet, whose texts are read as in a file of text.

    Errors and warnings are as in `read_text_columns`.

    Cost: a pass over the columns of text, which ends early if they are levels; two more if they
    have odd values or are plain numbers.
    """
    names = [
        field.name
        for field in table.schema
        if pa.types.is_string(field.type) and field.name not in options.types
    ]
    if not names:
        return table

    def batches(chosen: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read_batches = table.batches(chosen, LOOKED_ROWS)
        try:
            yield from (
                without_missing(read_batches, options.missing) if options.missing else read_batches
            )
        except ValueError as error:
            raise _UnreadableError(str(error)) from error

    try:
        columns, has_odd = _infer_columns(batches, names, table.where, options)
    except _UnreadableError:
        names = [name for name in names if _is_readable(batches, name)]
        columns, has_odd = _infer_columns(batches, names, table.where, options)
    if has_odd:  # their rows and spellings
        for batch in batches(names):
            columns.read(batch)
    typed_table = TextColumnsTable(table, columns, options)
    if options.labels is not None:
        warn_of_mixed_texts(typed_table, options)
    return typed_table


class _UnreadableError(ValueError):
    """Error for texts that cannot be read, such as very long ones."""


def _is_readable(batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]], name: str) -> bool:
    """Return whether a column can be read; a fit that leaves it out is not refused."""
    try:
        for _ in batches([name]):
            pass
    except _UnreadableError:
        return False
    return True


def _infer_columns(
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]],
    names: Sequence[str],
    where: str,
    options: ReadOptions,
) -> tuple[TypedColumns, bool]:
    """Return how columns of text are read, and whether one has odd values."""
    stored = {j: options.columns[name] for j, name in enumerate(names) if name in options.columns}
    declared = [DeclaredColumn(None, options.date_format, options.is_stored)] * len(names)
    inference = Inference(len(names), ",", stored, declared, options.decimal, first_row=0)
    for batch in batches(names) if names else ():
        inference.add(batch.columns)
        if inference.is_text:
            break
    if (second_inference := inference.second_look()) is not None:
        inference = second_inference
        for batch in batches(names):
            inference.add(batch.columns)
    readings = inference.readings()
    has_odd = inference.has_odd(readings)
    if options.labels is not None:
        readings = _keep_numbers_as_text(readings, batches, names, where, options.labels)
    return typed_columns(inference, readings, names, where, options, first_row=0), has_odd


class TextColumnsTable(DerivedTable):
    """A table of a file whose columns of text are read as in a file of text.

    - `columns`: of its columns of text.
    """

    def __init__(self, table: Table, columns: TypedColumns, options: ReadOptions) -> None:
        self._columns, self._missing = columns, options.missing
        types = dict(zip(columns.schema.names, columns.schema.types, strict=True))
        schema = pa.schema([(f.name, types.get(f.name, f.type)) for f in table.schema])
        super().__init__(table, schema)
        self.column_readings = columns.column_readings()

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the columns that are texts in the file."""
        return tuple(self._columns.schema.names)

    def change(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert the texts of a batch."""
        if self._missing:
            texts = [name for name in batch.schema.names if name in self.texts]
            if texts:
                (cleaned,) = without_missing([batch.select(texts)], self._missing)
                for name in texts:
                    place = batch.schema.get_field_index(name)
                    batch = batch.set_column(place, name, cleaned.column(name))
        return self._columns.convert(batch)


@LastSchemas
def _text_fields(
    schema: pa.Schema, stored: tuple[str, ...], declared: tuple[str, ...]
) -> list[pa.Field]:
    """Return the columns that are texts, or may have been texts in training."""
    return [
        field
        for field in schema
        if (field.name in stored or pa.types.is_string(field.type)) and field.name not in declared
    ]


def _texts_of(frame: MemoryTable, field: pa.Field, options: ReadOptions) -> pa.Array | None:
    """Return a column of texts, or of numbers that were texts in training; None for others."""
    stored = options.columns.get(field.name)
    digits = 0 if stored is None else DIGIT_READINGS.get(stored.name, 0)
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    if not (pa.types.is_string(field.type) or (digits and is_number)):
        return None
    column = frame.table.column(field.name).combine_chunks()
    values = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if not is_number:
        return values
    try:
        numbers = values.cast(pa.float64(), safe=False)
        gaps = pc.is_nan(numbers)
        days = pc.if_else(gaps, pa.scalar(None, pa.float64()), numbers).cast(pa.int64())
    except pa.ArrowInvalid:  # with decimals: no days
        return None
    return pc.utf8_lpad(days.cast(pa.string()), digits, "0")


def _keep_numbers_as_text(
    readings: Sequence[Reading],
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]],
    names: Sequence[str],
    where: str,
    labels: Collection[str],
) -> list[Reading]:
    """Return the readings of a training table, in which texts of plain numbers stay text."""
    numbers = {
        name: reading
        for name, reading in zip(names, readings, strict=True)
        if reading.name in PLAIN_NUMBERS and reading.mark is None
    }
    for batch in batches(list(numbers)) if numbers else ():
        numbers = {
            name: reading
            for name, reading in numbers.items()
            if _are_plain(reading, batch.column(name))
        }
    if features := [name for name in numbers if name not in labels]:
        warnings.warn(
            f"{where}: columns of numbers that are text stay text: {join_words(features)}; make "
            "them numbers (pandas.to_numeric) to use their size, or categories if they are codes",
            stacklevel=2,
        )
    return [
        TEXT_READING if name in numbers else reading
        for name, reading in zip(names, readings, strict=True)
    ]


def _are_plain(reading: Reading, texts: pa.Array) -> bool:
    """Return whether all texts are numbers as they are, without spaces and written gaps."""
    has_spaces = pc.any(pc.not_equal(texts, pc.utf8_trim_whitespace(texts))).as_py()
    return not has_spaces and reading.holds(texts)
