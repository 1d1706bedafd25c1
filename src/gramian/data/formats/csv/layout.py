"""Layout of a text table: lines above the header line, separator, names, and rows below it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from ...._messages.errors import TextError
from ...tables.read_options import WHITESPACE_SEPARATOR, ReadOptions
from .columns.parsers import MISSING_TEXTS
from .line_filter import split_lines, unify_spaces

FIELD_SEPARATORS = ("\t", ";", "|", ",")
"""Of several that divide all rows alike, the first: commas are found in numbers and sentences."""

COMMENT_SIGNS = ("#", "%", "//")
"""Beginnings of lines above the header line that are comments."""

MOST_TITLE_LINES = 12
"""Lines above the header line that may be a title."""

ALIKE_SHARE = 0.9
"""Share of rows that must have the fields of the header below a title, or between spaces."""

SAMPLE_ROWS = 100

NAME_YEARS = range(1500, 2200)
"""Numbers that are often names of columns."""

NEAR_YEARS = 60
"""Distance of years below a year up to which it is no name of a column."""

NUMBER_PATTERN = re.compile(r"[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?")
RULE_PATTERN = re.compile(":?[-=]+:?")
"""Field of a line between names and values, as Markdown and databases write it."""

_MISSING_KEYS = {text.lower() for text in MISSING_TEXTS}


@dataclass(frozen=True)
class Layout:
    """Layout of a text table.

    - `rows`: the first rows of the table, of which the first one may have the names.
    - `skipped_lines`: lines above these rows.
    - `share`: share of the rows that have as many fields as the first one.
    - `comment_names`: names in a line of comment above the rows.
    - `skipped_text`: title above the rows.
    """

    separator: str
    rows: list[list[str]]
    skipped_lines: int = 0
    share: float = 1.0
    comment_names: list[str] | None = None
    skipped_text: str = ""

    @property
    def width(self) -> int:
        """Number of fields of the first row."""
        return len(self.rows[0]) if self.rows else 0

    @property
    def is_table(self) -> bool:
        """Whether several fields have names above columns of which one is numbers."""
        rows = self.rows
        if self.width < 2 or len(rows) < 2 or self.share < ALIKE_SHARE:
            return False
        header, below = [name.strip() for name in rows[0]], self._below()
        is_named = sum(not name for name in header) <= 1
        return is_named and any(
            not is_number(header[j]) and is_number_column(below, j) for j in range(self.width)
        )

    @property
    def is_nameless(self) -> bool:
        """Whether the first row has values instead of names.

        It has if all columns of numbers have a number there, and these are no names such as years
        or counts, or a text is also below.
        """
        rows, below = self.rows, self._below()
        if self.width < 2 or len(rows) < 2 or self.share < 1:
            return False
        numeric = [j for j in range(self.width) if is_number_column(below, j)]
        first = [text.strip() for text in rows[0]]
        if not numeric or not all(is_number(first[j]) for j in numeric):
            return False
        is_value = not _are_names([first[j] for j in numeric]) or (
            len(numeric) == 1 and _are_near(first[numeric[0]], [row[numeric[0]] for row in below])
        )
        is_repeated = any(
            first[j] and any(row[j].strip() == first[j] for row in below)
            for j in range(self.width)
            if j not in numeric
        )
        return is_value or is_repeated or len({first[j] for j in numeric}) < len(numeric)

    @property
    def has_row_names(self) -> bool:
        """Whether rows have one more field than the header: the names of rows that R writes."""
        below = self.rows[1:]
        if self.width < 2 or len(below) < 2 or any(len(row) != self.width + 1 for row in below):
            return False
        # Other numbers in front may be values: a decimal comma without quotes also gives a field
        # more to each row.
        row_names = [row[0] for row in below]
        are_counts = row_names == [str(i) for i in range(1, len(below) + 1)]
        are_texts = len(set(row_names)) == len(below) and not any(map(is_number, row_names))
        return (are_counts or are_texts) and any(row[-1].strip() for row in below)

    @property
    def has_units(self) -> bool:
        """Whether the row below the header has texts above columns of numbers alone: units."""
        if len(self.rows) < 4 or self.share < 1:
            return False
        units, below = self.rows[1], self.rows[2:]
        texts = [text.strip() for text in units]
        numeric = [j for j in range(self.width) if is_number_column(below, j)]
        return (
            2 * len(numeric) >= self.width
            and not any(any(letter.isdigit() for letter in text[:1]) for text in texts)
            and all(not is_number(text) for text in texts)
            and any(texts[j] and texts[j].lower() not in _MISSING_KEYS for j in numeric)
            and not any(texts[j].lower() in _MISSING_KEYS - {"", "-", "--"} for j in numeric)
        )

    @property
    def has_rule(self) -> bool:
        """Whether the row below the header is a line of dashes."""
        texts = [text.strip() for text in self.rows[1]] if len(self.rows) > 2 else []
        rules = [text for text in texts if text]
        return bool(rules) and all(map(RULE_PATTERN.fullmatch, rules)) and "--" in "".join(rules)

    def _below(self) -> list[list[str]]:
        return [row for row in self.rows[1:] if len(row) == self.width]


def _are_names(texts: Sequence[str]) -> bool:
    """Return whether numbers may be names: years, or counts with equal steps."""
    if not all(text.isdigit() for text in texts):
        return False
    numbers = [int(text) for text in texts]
    steps = {after - before for before, after in pairwise(numbers)}
    is_count = min(steps) > 0 and len(steps) == 1 if steps else numbers[0] in (0, 1)
    return is_count or all(number in NAME_YEARS for number in numbers)


def _are_near(name: str, texts: Sequence[str]) -> bool:
    """Return whether all values below a year are years near it."""
    values = [text.strip() for text in texts if text.strip()]
    return name.isdigit() and all(
        value.isdigit() and abs(int(value) - int(name)) <= NEAR_YEARS for value in values
    )


def is_number(text: str) -> bool:
    """Return whether a field is a plain number."""
    return NUMBER_PATTERN.fullmatch(text.strip()) is not None


def is_number_column(rows: Sequence[Sequence[str]], j: int) -> bool:
    """Return whether a column has numbers alone, and at least one."""
    texts = [text for row in rows if (text := row[j].strip()).lower() not in _MISSING_KEYS]
    return bool(texts) and all(map(is_number, texts))


def find_layout(text: str, options: ReadOptions, *, whole: bool) -> Layout:
    """Find the layout of a text, from its beginning.

    - `text`: without the lines that are skipped on request.
    - `whole`: whether this is all of the text.

    Raise TextError if rows are aligned by spaces and have different numbers of fields.
    """
    lines = split_lines(text)
    if options.comment is None:
        above = _comment_lines(lines)
        if any(line.strip() for line in lines[:above]):
            return _below_comments(lines, above, options, whole)
    above = next((i for i, line in enumerate(lines) if line.strip()), 0)
    plain = _divide("".join(lines[above:]), options, whole)
    if plain.width > 1 and plain.share >= ALIKE_SHARE and not _is_title(plain.rows[0]):
        return replace(plain, skipped_lines=above)
    if options.header in (None, True):
        titled = _below_title(lines, above, options, whole)
        if titled is not None:
            return titled
    if plain.width == 1 and options.separator is None:
        _check_alignment(plain.rows)
    return replace(plain, skipped_lines=above)


def _comment_lines(lines: Sequence[str]) -> int:
    """Return how many lines of comment, or blank ones, a text begins with."""
    for i, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith(COMMENT_SIGNS):
            return i
    return 0


def _below_comments(lines: list[str], above: int, options: ReadOptions, whole: bool) -> Layout:
    """Return the layout of a table below comments, the last of which may have its names."""
    table = _divide("".join(lines[above:]), options, whole)
    comments = [i for i in range(above) if lines[i].strip()]
    is_plain = len(comments) == 1 and table.separator != WHITESPACE_SEPARATOR
    names = None
    for i in reversed(comments):
        line = lines[i].strip()
        sign = next(sign for sign in COMMENT_SIGNS if line.startswith(sign))
        fields = _fields(line.lstrip(sign[0]), table.separator)
        if len(fields) != table.width or len(fields) < 2 or all(map(is_number, fields)):
            break
        names = fields
    has_header = any(is_number(field) for field in table.rows[0]) if table.rows else False
    if names is None or not has_header or isinstance(options.header, tuple):
        return replace(table, skipped_lines=above)
    if is_plain:  # a header line whose first name begins with such a sign
        rows = [_fields(lines[comments[0]], table.separator), *table.rows]
        return Layout(table.separator, rows, comments[0], table.share)
    return Layout(table.separator, table.rows, above, table.share, names)


def _fields(line: str, separator: str) -> list[str]:
    rows = _parse_rows(line, separator, whole=True)
    return rows[0] if rows else []


def _is_title(row: Sequence[str]) -> bool:
    """Return whether at most the first of several fields is not empty."""
    return len(row) > 1 and not any(text.strip() for text in row[1:])


def _below_title(lines: list[str], above: int, options: ReadOptions, whole: bool) -> Layout | None:
    """Return the layout of a table below lines of one field, or None."""
    for start in range(above + 1, min(above + MOST_TITLE_LINES, len(lines))):
        if not lines[start].strip():
            continue
        table = _divide("".join(lines[start:]), options, whole)
        titles = [_fields(line, table.separator) for line in lines[above:start] if line.strip()]
        is_spaced = table.separator == WHITESPACE_SEPARATOR
        if not is_spaced and not all(len(row) == 1 or _is_title(row) for row in titles):
            return None
        if table.is_table and not _is_title(table.rows[0]):
            text = lines[above].strip().strip(table.separator)
            return Layout(table.separator, table.rows, start, table.share, None, text)
    return None


def _divide(text: str, options: ReadOptions, whole: bool) -> Layout:
    """Return the layout by the separator that divides most rows as it divides the first one."""
    separators: tuple[str, ...] = FIELD_SEPARATORS
    if options.separator is not None:
        separators = (options.separator,)
        if options.is_stored:
            separators += tuple(mark for mark in FIELD_SEPARATORS if mark != options.separator)
    best = Layout(separators[0] if len(separators) == 1 else ",", [], share=-1.0)
    for separator in separators:
        layout = _layout_by(text, separator, whole)
        only = len(separators) == 1
        # A separator that does not occur in the header does not count; the comma stands for tables
        # of one column.
        if not layout.rows or (layout.width == 1 and separator != "," and not only):
            continue
        # Any text has rows of one column: that counts only if nothing else divides the header.
        score = layout.share - 2 * (layout.width == 1)
        if score > best.share or not best.rows:
            best = Layout(separator, layout.rows, share=score)
    is_divided = best.share >= ALIKE_SHARE or len(separators) == 1
    return best if is_divided else _divide_by_spaces(text, best, whole)


def _divide_by_spaces(text: str, best: Layout, whole: bool) -> Layout:
    """Return the layout by spaces if it has a table, else the best one by another separator."""
    spaced = _layout_by(text, WHITESPACE_SEPARATOR, whole)
    # Spaces behind separators, in rows of unlike lengths, divide nothing.
    ends = {name[-1:] for name in spaced.rows[0][:-1]} if spaced.rows else set()
    if len(ends) == 1 and ends & set(FIELD_SEPARATORS):
        return best
    has_table = spaced.is_table or (spaced.has_row_names and best.width == 1)
    return spaced if has_table or (best.width == 1 and spaced.is_nameless) else best


def _layout_by(text: str, separator: str, whole: bool) -> Layout:
    rows = _parse_rows(text, separator, whole=whole)
    if not rows:
        return Layout(separator, rows)
    alike = sum(len(row) == len(rows[0]) for row in rows)
    return Layout(separator, rows, share=alike / len(rows))


def _parse_rows(text: str, separator: str, *, whole: bool) -> list[list[str]]:
    if separator == WHITESPACE_SEPARATOR:
        text, separator = unify_spaces(text), "\t"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in islice(reader, SAMPLE_ROWS) if row)
    except csv.Error:
        # A field beyond the limit of the parser: the rows before it are whole.
        return rows
    # The sample ends in the midst of a row, which has too few fields.
    is_cut = not whole and len(rows) > 1 and len(rows) < SAMPLE_ROWS
    return rows[:-1] if is_cut else rows


def _check_alignment(rows: Sequence[Sequence[str]]) -> None:
    """Refuse rows of numbers between spaces, of which some have fewer: fields are empty."""
    words = [row[0].split() for row in rows if row]
    counts = sorted(map(len, words[1:]))
    numbers = sum(is_number(word) for row in words[1:] for word in row)
    if len(words) < 3 or len(words[0]) < 2 or counts[len(counts) // 2] < 2:
        return
    if 2 * numbers >= sum(counts):
        raise TextError(
            "its fields are aligned by spaces, but its header line has {} of them, and rows have "
            "{} to {}: write a mark for missing values, or separators between the fields; or give "
            "{skip=LINES} if lines above the table are no rows",
            len(words[0]),
            counts[0],
            counts[-1],
        )
