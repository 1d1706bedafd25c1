"""Columns of text of a frame, read as the same text in a file would be."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence

import pyarrow as pa

from ...._messages.checks import join_words
from ...rows import arrow_compute as pc
from ...tables.base import Table
from ...tables.in_memory import MemoryTable
from ...tables.read_options import ReadOptions
from .columns.conversion import TypedColumns, typed_columns, without_missing
from .columns.dates import COMPACT_DAYS
from .columns.declared import DeclaredColumn
from .columns.infer_types import Inference
from .columns.parsers import TEXT_READING, Reading

DIGITS_OF_READINGS = {COMPACT_DAYS: 8, "%H%M": 4}
"""Readings of dates and times whose texts other libraries read as numbers, and their digits."""

PLAIN_NUMBERS = ("integer", "1.5")
"""Readings of texts that every library reads as numbers: as text they were meant to be text."""


def read_text_columns(table: pa.Table, where: str, options: ReadOptions) -> Table:
    """Return the table of a frame, whose texts are read as in a file.

    Parameters
    ----------
    table : pyarrow.Table
    where : str
        Subject of error messages.
    options : ReadOptions

    Raises
    ------
    ValueError
        If a column cannot be read as in training.

    Warns
    -----
    UserWarning
        If all texts are plain numbers: no library reads these as text by default, so they stay
        text.
    """
    frame = MemoryTable(table, where)
    # Columns of a declared type are read by `DeclaredTable`.
    texts_of_columns = {
        field.name: _texts_of(frame, field, options)
        for field in frame.schema
        if field.name not in options.types
    }
    names = [name for name, texts in texts_of_columns.items() if texts is not None]
    if not names:
        return frame
    texts = pa.record_batch([texts_of_columns[name] for name in names], names=names)
    if options.missing:
        (texts,) = without_missing([texts], options.missing)
    stored = {j: options.columns[name] for j, name in enumerate(names) if name in options.columns}
    declared = [DeclaredColumn(None, options.date_format)] * len(names)
    inference = Inference(len(names), ",", stored, declared, options.decimal, first_row=0)
    inference.add(texts.columns)
    readings = inference.readings()
    if options.labels is not None:
        readings = _keep_numbers_as_text(readings, texts, where, options.labels)
    columns = typed_columns(inference, readings, names, where, options, first_row=0)
    return _replace_columns(frame, columns, texts)


def _texts_of(frame: MemoryTable, field: pa.Field, options: ReadOptions) -> pa.Array | None:
    """Return a column of texts, or of numbers that were texts in training; None for others."""
    stored = options.columns.get(field.name)
    digits = 0 if stored is None else DIGITS_OF_READINGS.get(stored.name, 0)
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    if not (pa.types.is_string(field.type) or (digits and is_number)):
        return None
    column = frame.column(field.name).combine_chunks()
    whole = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if not is_number:
        return whole
    try:
        numbers = whole.cast(pa.float64(), safe=False)
        gaps = pc.is_nan(numbers)
        days = pc.if_else(gaps, pa.scalar(None, pa.float64()), numbers).cast(pa.int64())
    except pa.ArrowInvalid:  # with decimals: no days
        return None
    return pc.utf8_lpad(days.cast(pa.string()), digits, "0")


def _keep_numbers_as_text(
    readings: Sequence[Reading], texts: pa.RecordBatch, where: str, labels: Collection[str]
) -> list[Reading]:
    """Return the readings of a training table, in which texts of plain numbers stay text."""
    pairs = zip(texts.schema.names, readings, texts.columns, strict=True)
    numbers = [name for name, reading, column in pairs if _are_plain(reading, column)]
    if features := [name for name in numbers if name not in labels]:
        warnings.warn(
            f"{where}: columns of numbers that are text stay text: {join_words(features)}; make "
            "them numbers (pandas.to_numeric) to use their size, or categories if they are codes",
            stacklevel=2,
        )
    names = texts.schema.names
    return [
        TEXT_READING if name in numbers else reading
        for name, reading in zip(names, readings, strict=True)
    ]


def _are_plain(reading: Reading, texts: pa.Array) -> bool:
    """Return whether all texts are numbers as they are, without spaces and written gaps."""
    if reading.name not in PLAIN_NUMBERS or reading.mark is not None:
        return False
    has_spaces = pc.any(pc.not_equal(texts, pc.utf8_trim_whitespace(texts))).as_py()
    return not has_spaces and reading.holds(texts)


def _replace_columns(frame: MemoryTable, columns: TypedColumns, texts: pa.RecordBatch) -> Table:
    typed = columns.read(texts)
    arrays = [
        typed.column(name) if name in typed.schema.names else frame.column(name)
        for name in frame.names
    ]
    table = MemoryTable(pa.table(arrays, names=list(frame.names)), frame.where)
    table.column_readings = columns.column_readings()
    return table
