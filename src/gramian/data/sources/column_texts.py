"""Values of columns as the texts that a file of text would have for them."""

from __future__ import annotations

import warnings

import pyarrow as pa

from ..formats.csv.columns.conversion import without_missing
from ..formats.csv.columns.marks import Mark
from ..formats.csv.columns.readings import DIGIT_READINGS
from ..rows import arrow_compute as pc
from ..tables.base import Table
from ..tables.read_options import ReadOptions
from ..tables.target import is_number


def as_texts(batch: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """Return the values of columns as texts, with nulls for texts that stand for gaps."""
    columns = []
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        texts, digits = _bare_numbers(values).cast(pa.string()), _digits_of(name, options)
        padded = digits and is_number_type(values.type)
        columns.append(pc.utf8_lpad(texts, digits, "0") if padded else texts)
    texts = pa.record_batch(columns, names=batch.schema.names)
    return next(without_missing([texts], options.missing)) if options.missing else texts


def _bare_numbers(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return whole numbers as integers, as files of text have them; nulls for NaN."""
    if not pa.types.is_floating(values.type):
        return values
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    are_whole = pc.all(pc.equal(values, pc.floor(values))).as_py() is not False
    return values.cast(pa.int64(), safe=False) if are_whole else values


def _digits_of(name: str, options: ReadOptions) -> int:
    """Return how many digits a number has that was a date in training; 0 for other columns."""
    stored = options.columns.get(name)
    return 0 if stored is None else DIGIT_READINGS.get(stored.name, 0)


def dates_of_digits(frame: Table, options: ReadOptions) -> list[str]:
    """Return the columns of whole numbers that were dates or times in training."""
    numbers = [field.name for field in frame.schema if is_number_type(field.type)]
    dates = [name for name in numbers if _digits_of(name, options) and name not in options.types]
    return [name for name in dates if pa.types.is_integer(_bare_numbers(frame.column(name)).type)]


def gap_numbers(options: ReadOptions) -> list[float]:
    """Return the numbers that stand for gaps."""
    return [float(text) for text in options.missing if is_number(text)]


def warn_of_bare_numbers(frame: Table, options: ReadOptions) -> None:
    """Warn of numbers of columns that had a unit or percent in training: 0.45 may be 45%."""
    for name in frame.names:
        stored = options.columns.get(name)
        if stored is None or stored.mark is None or Mark(*stored.mark).is_currency:
            continue
        if is_number_type(frame.schema.field(name).type):
            warnings.warn(
                f"{frame.where}: column '{name}' was written as {stored.written_form} in training, "
                "and has numbers here: they are taken as they are, as if they had the same unit",
                stacklevel=2,
            )


def is_number_type(type_: pa.DataType) -> bool:
    """Return whether values are integers or floating-point numbers."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))
