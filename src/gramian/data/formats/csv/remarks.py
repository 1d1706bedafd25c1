"""Warnings of columns of text that may be meant in another way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...._messages.checks import join_words
from ...._messages.errors import Text, write_argument
from ...rows import arrow_compute as pc
from ...tables.base import Table
from ...tables.read_options import ReadOptions
from .columns.parsers import CODE_PATTERN, are_digits, clean_texts
from .columns.readings import DIGIT_READINGS

LOOKED_ROWS = 1000
"""First rows of a column of text that tell its kind."""

MIXED_SHARE = 0.75
"""Share of numbers, or days, from which on a column of text is reported."""

FEW_LEVELS = 20
"""Different texts up to which a column is a category, although most of them are numbers."""

_KIND_PATTERNS = {
    "number": r"^[+-]?\d[\d.,]*([eE][+-]?\d+)?$",
    "date": r"^\d{1,4}[-/]\d{1,2}[-/]\d{1,4}([ T].*)?$",
}


class ReadWarning(UserWarning):
    """Warning of a guess about a file of text, or of lines that were skipped."""

    def __str__(self) -> str:
        text = self.args[0]
        return text.write(write_argument) if isinstance(text, Text) else str(text)


def warn_of_digits(table: Table, options: ReadOptions) -> None:
    """Warn of columns of digits that are no numbers here, but are for other libraries."""
    untold = [name for name in table.names if name not in options.types]
    dates = [name for name in untold if table.column_readings[name].name in DIGIT_READINGS]
    texts = _texts(table, options)
    codes = [name for name, values in texts.items() if are_digits(values)]
    for names, what in ((dates, "dates or times"), (codes, "codes")):
        if names:
            _warn(
                "{}: digits are read as {} in {}; frames of other libraries have numbers: "
                "state the type, as {types=}",
                table.where, what, join_words(names),
                {names[0]: "number" if names is dates else "category"},
            )  # fmt: skip


def warn_of_marks(where: str, guesses: Sequence[tuple[str, str]]) -> None:
    """Warn of columns of numbers whose marks may separate decimals or thousands.

    - `guesses`: names of columns and of their readings.
    """
    if not guesses:
        return
    name = guesses[0][1]
    written = "1.234" if name == "1.000,5" else "1,234"
    _warn(
        "{}: numbers such as {} are read as {} in {}; other libraries may read them otherwise: "
        "state the mark for decimals, as {decimal=}",
        where, written, "1.234" if name == "1,5" else "1234",
        join_words([column for column, _ in guesses]), name[-2],
    )  # fmt: skip


def warn_of_mixed_texts(table: Table, options: ReadOptions) -> None:
    """Warn of columns that are text although most of their values are numbers or days."""
    for name, values in _texts(table, options).items():
        texts = clean_texts(values)
        rows = len(texts) - texts.null_count
        if rows == 0 or pc.count_distinct(texts).as_py() <= FEW_LEVELS:
            continue
        if pc.any(pc.match_substring_regex(texts, CODE_PATTERN)).as_py():
            continue
        for kind, form in _KIND_PATTERNS.items():
            is_such = pc.match_substring_regex(texts, form)
            other_count = rows - pc.sum(is_such).as_py()
            if other_count > (1 - MIXED_SHARE) * rows or (other_count == 0 and kind == "number"):
                continue
            place = pc.index(is_such, other_count == 0).as_py()
            text, row = texts[place].as_py(), table.first_row + place
            if other_count:
                _warn(
                    "{}: column '{}' is text, because {:,} of its first {:,} values are no {}s, "
                    "such as {} in row {:,} ({}); to read these as missing, state {types=}",
                    table.where, name, other_count, rows, kind, f"{text!r:.60}", row,
                    table.row_numbers, {name: kind},
                )  # fmt: skip
            else:
                _warn(
                    "{}: column '{}' is text, because days such as {} in row {:,} ({}) may have "
                    "several orders; state {date_format=} or 'mdy', or {types=}",
                    table.where, name, f"{text!r:.60}", row, table.row_numbers, "dmy",
                    {name: "category"},
                )  # fmt: skip
            break


def _texts(table: Table, options: ReadOptions) -> dict[str, pa.Array]:
    """Return the first values of columns of text, without targets and columns of given types."""
    names = [
        name
        for name in table.names
        if table.schema.field(name).type == pa.string()
        and name not in options.types
        and name not in (options.labels or ())
    ]
    batch = next(iter(table.batches(names, LOOKED_ROWS)), None) if names else None
    return {} if batch is None else dict(zip(names, batch.columns, strict=True))


def _warn(template: str, *arguments: Any) -> None:
    warnings.warn(ReadWarning(Text(template, *arguments)), stacklevel=3)
