"""`TypedColumns`: values of columns of text, by the reading of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np
import pyarrow as pa

from ....._messages.errors import Text, TextError
from ....rows import arrow_compute as pc
from ....rows.dtypes import EXACT_INTEGER
from ....tables.column_reading import ColumnReading, OddValues
from .infer_types import Inference
from .marks import Mark
from .odd_values import read_values
from .parsers import SPELLED_BOOLEANS, Reading
from .readings import ALL_READINGS, marked_numbers, order_letters


class LateError(Exception):
    """Raised if a value does not have the type of those at the beginning."""


@dataclass(frozen=True)
class TypedColumn:
    """Reading of a column of text, and the odd values that it has come across."""

    number: int
    name: str
    reading: Reading
    gaps: tuple[str, ...]
    is_label: bool = False
    odd: OddValues = field(default_factory=OddValues)

    @property
    def type(self) -> pa.DataType:
        """Type of the values: labels stay as they are written."""
        return pa.string() if self.is_label else self.reading.type

    def read(self, texts: pa.Array, row: int, limit: int) -> pa.Array:
        """Return the values of texts, the first of which is in a row of the file."""
        values, places, odd_texts = read_values(self.reading, texts, self.gaps, limit)
        self.odd.add([row + place for place in places], odd_texts)
        if self.odd.written_gap is None and values.null_count > texts.null_count + len(places):
            self.odd.written_gap = _find_written_gap(texts, values, row, places)
        if self.is_label:
            null = pa.scalar(None, pa.string())
            return pc.if_else(values.is_valid(), pc.utf8_trim_whitespace(texts), null)
        return values

    def column_reading(self) -> ColumnReading:
        """Return how the column was read, with its odd values."""
        mark = None if self.reading.mark is None else astuple(self.reading.mark)
        gaps = dict.fromkeys((*self.gaps, *self.odd.spellings))
        return ColumnReading(self.reading.name, mark, tuple(gaps), self.odd)


def _has_long_integer(values: pa.Array, texts: pa.Array) -> bool:
    """Return whether a number has too many digits for an integer of 64 bits, and loses some."""
    if not pa.types.is_floating(values.type) or values.null_count == len(values):
        return False
    ends = pc.min_max(values).as_py()
    if max(abs(ends["min"]), abs(ends["max"])) <= EXACT_INTEGER:
        return False
    return bool(pc.any(pc.match_substring_regex(texts, r"^\s*[+-]?\d{17,}\s*$")).as_py())


def _find_written_gap(
    texts: pa.Array, values: pa.Array, row: int, odd: Sequence[int]
) -> tuple[int, str] | None:
    """Return the row and the text of the first value that is missing but has letters or signs."""
    is_written = pc.and_(values.is_null(), pc.not_equal(pc.utf8_trim_whitespace(texts), ""))
    written = np.flatnonzero(is_written.fill_null(False).to_numpy(zero_copy_only=False))
    place = next((place for place in written.tolist() if place not in odd), None)
    return None if place is None else (row + place, texts[place].as_py().strip())


class TypedColumns:
    """Readings that make values of columns of text.

    - `odd_limit`: odd values of a batch; any number by default.
    - `first_row`: number of the first row in the file.
    - `guesses`: columns of numbers whose mark for decimals was guessed, and their readings.

    Attributes
    ----------
    long_integers : dict of str to None
        Columns with whole numbers that lost digits.
    names : frozenset of str
        Names of the columns.
    """

    def __init__(
        self,
        columns: Sequence[TypedColumn],
        odd_limit: int | None,
        first_row: int,
        guesses: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.guesses, self.long_integers = guesses, dict[str, None]()
        self._columns, self._odd_limit, self._rows = columns, odd_limit, first_row
        self.schema = pa.schema([(column.name, column.type) for column in columns])
        self.names = frozenset(self.schema.names)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of the next rows."""
        limit = batch.num_rows if self._odd_limit is None else self._odd_limit
        try:
            values = [
                column.read(batch.column(column.number), self._rows, limit)
                for column in self._columns
            ]
        except pa.ArrowInvalid as error:
            # The types were guessed from the beginning, and this value contradicts them.
            raise LateError from error
        self._rows += batch.num_rows
        for column, array in zip(self._columns, values, strict=True):
            if _has_long_integer(array, batch.column(column.number)):
                self.long_integers[column.name] = None
        return pa.record_batch(values, schema=self.schema)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of the texts of some of these columns, whose odd values are known."""
        columns = {column.name: column for column in self._columns}
        arrays = [
            replace(columns[name], odd=OddValues()).read(texts, 0, len(texts))
            for name, texts in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.record_batch(arrays, names=batch.schema.names)

    def column_readings(self) -> dict[str, ColumnReading]:
        """Return the readings of columns, by name."""
        return {column.name: column.column_reading() for column in self._columns}

    @property
    def decimal(self) -> str | None:
        """Mark for decimals of all columns of numbers; None without a mark, or with two."""
        marks = {column.reading.decimal for column in self._columns} - {None, ""}
        return marks.pop() if len(marks) == 1 else None


def typed_columns(
    inference: Inference, readings: Sequence[Reading], where: str, odd_limit: int | None = None
) -> TypedColumns:
    """Return how the columns that have names are read.

    - `readings`: of all columns.
    - `where`: subject of the error.
    - `odd_limit`: odd values of a batch; any number by default.

    Raise ValueError if a column cannot be read as in training, or has not the type that options
    give it.
    """
    names, options, first_row = inference.names, inference.options, inference.first_row
    header = " (the header line is row 1)" if first_row else ""
    for j, (row, text) in inference.contradictions().items():
        if names[j] not in options.columns:
            raise TextError(
                "{}: column '{}' has the type {} by {types=}, but row {:,}{} holds {!r}; give "
                "another type, or leave the value empty",
                where, names[j], options.types[names[j]], {names[j]: "category"}, row, header, text,
            )  # fmt: skip
        stored = options.columns[names[j]]
        written, remedy = _other_form(stored, text)
        raise TextError(
            "{}: column '{}' was written as {} in training, but row {:,}{} holds {}{}; write it "
            "as in training or leave it empty{}",
            where, names[j], stored.written_form, row, header, f"{text!r:.60}", written, remedy,
        )  # fmt: skip
    columns = [
        TypedColumn(
            j,
            name,
            readings[j],
            options.columns[name].gaps if name in options.columns else (),
            name in (options.labels or ()) and readings[j].name in SPELLED_BOOLEANS,
        )
        for j, name in enumerate(names)
        if name and options.types.get(name) != "ignore"
    ]
    guesses = [
        (names[j], name) for j, name in inference.guessed_marks() if names[j] not in options.types
    ]
    return TypedColumns(columns, odd_limit, first_row, guesses)


def _other_form(stored: ColumnReading, text: str) -> tuple[str, str | Text]:
    """Return the form of a text that is not written as in training, and an option that reads it."""
    texts = pa.array([text])
    mark = () if stored.mark is None else marked_numbers(Mark(*stored.mark))
    reading = next(
        (r for r in (*mark, *ALL_READINGS) if r.shape.fullmatch(text) and r.holds(texts)), None
    )
    if reading is None:
        return "", ""
    mark_texts = None if reading.mark is None else astuple(reading.mark)
    form = f", which is written as {ColumnReading(reading.name, mark_texts).written_form}"
    if reading.decimal and reading.decimal != stored.name[-2]:
        return form, Text(", or give {decimal=} for this file", reading.decimal)
    order = order_letters(reading.order)
    if reading.group and len(order) == 3:
        return form, Text(", or give {date_format=} for this file", order)
    return form if reading.name != "integer" else "", ""


def without_missing(
    batches: Iterable[pa.RecordBatch], missing: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches with nulls for texts that stand for missing values in any column."""
    texts = [re.escape(text) for text in missing]
    # -999 is also written as -999.0.
    texts += [rf"{text}\.0*" for text in texts if re.fullmatch(r"(\\-)?\d+", text)]
    pattern = rf"^\s*(?:{'|'.join(texts)})\s*$"
    nothing = pa.scalar(None, pa.string())
    for batch in batches:
        columns = [
            pc.if_else(pc.match_substring_regex(column, pattern), nothing, column)
            for column in batch.columns
        ]
        yield pa.record_batch(columns, names=batch.schema.names)
