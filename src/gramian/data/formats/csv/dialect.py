"""`sniff`: the dialect of a text table, from its beginning."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...._messages.checks import join_words
from ...._messages.errors import Text, TextError
from ...tables.read_options import DEFAULT_OPTIONS, WHITESPACE_SEPARATOR, ReadOptions
from .encodings import compression_of, decode_bytes, encoding_of, first_bytes
from .layout import Layout, find_layout, is_number
from .line_filter import drop_comments, split_lines

LONGEST_LINE_BYTES = 1 << 24
"""Length of the header line, or of a row, beyond which a file is refused: it needs ten times that
to be read, and a compressed file of some kilobytes can hold it."""

_SAMPLE_BYTES = 1 << 18

_SINGLE_QUOTED = re.compile(r"(?:^|[,;\t|]) ?'(?:[^']|'')*'(?=$|[,;\t|])")


_OTHER_FORMATS = (
    (
        "a web page or XML",
        r"(?i)<(?:!doctype|html|head|\?xml|table)\b",
        "download the file itself, or give the frame of pandas.read_html or pandas.read_xml",
    ),
    (
        "JSON",
        r'(?:\[\s*)?\{\s*"[^"\n]*"\s*:',
        "rename it to .jsonl if each line is an object, or give the frame of pandas.read_json",
    ),
    (
        "a file of LIBSVM",
        r"\S+(?: \d+:[^\s:]+)+ *(?:#.*)?\r?\n\S+(?: \d+:[^\s:]+)+ *(?:#.*)?(?:\r?\n|$)",
        "give the rows of sklearn.datasets.load_svmlight_file",
    ),
    (
        "a file of Weka",
        r"(?i)(?:%[^\n]*\n|\s)*@relation\b",
        "give the frame of sklearn.datasets.fetch_openml or scipy.io.arff.loadarff",
    ),
)
"""Formats that are no text tables, patterns of their beginnings, and what to do."""


@dataclass(frozen=True)
class Dialect:
    """Marks and encoding of a text table.

    - `compression`: in Arrow's words.
    - `separator`: a space for any number of spaces and tabs.
    - `names`: fields of the header line, without space around them; some may be empty.
    - `header_bytes`: length of the header line.
    - `skipped_lines`: lines before it, or before the first row if no line has the names.
    - `header_rows`: rows from there on that hold no values: the names, and perhaps units.
    - `comment`: beginning of lines that are skipped anywhere.
    - `long_rows`: whether rows are longer than the usual block of the parser.
    - `quote`: mark around texts.
    - `remarks`: guesses and skipped lines, for warnings.
    """

    encoding: str
    compression: str | None
    separator: str
    names: tuple[str, ...]
    header_bytes: int
    skipped_lines: int = 0
    header_rows: int = 1
    comment: str | None = None
    long_rows: bool = False
    quote: str = '"'
    remarks: tuple[str | Text, ...] = ()

    @property
    def is_rewritten(self) -> bool:
        """Whether lines are rewritten before they are parsed; see `LineFilter`."""
        return self.comment is not None or self.separator == WHITESPACE_SEPARATOR

    @property
    def delimiter(self) -> str:
        """Separator of the text that is parsed."""
        return "\t" if self.separator == WHITESPACE_SEPARATOR else self.separator

    @property
    def parsed_encoding(self) -> str:
        """Encoding of the text that is parsed."""
        return "utf-8" if self.is_rewritten else self.encoding

    @property
    def first_row(self) -> int:
        """Number of the first row of values, if the header line is row 1."""
        return max(2, 1 + self.header_rows)


def sniff(path: Path, options: ReadOptions = DEFAULT_OPTIONS) -> Dialect:
    """Find out how a text table is written.

    - `options`: given options are not detected.

    Raise FileNotFoundError or ValueError if there is no such file, it is empty or no text, or has
    no header line.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    compression = compression_of(path)
    sample, is_whole = _read_sample(path, compression)
    encoding, remark = encoding_of(sample, path, options)
    lines = split_lines(decode_bytes(sample, encoding))
    text = "".join(lines[options.skip :])
    if options.comment is not None:
        text = drop_comments(text, options.comment)
    _refuse_other_formats(path, text)
    quote = _quote_of(text)
    if quote != '"':
        text = text.replace(quote, '"')
    try:
        layout = find_layout(text, options, whole=is_whole)
    except TextError as error:
        raise TextError("{}: {}", path, error.args[0]) from error
    _check_rows(path, text, layout)
    names, header_rows, above = _header(path, layout, options)
    # Without a line end, Arrow takes the only line for a part of a long one.
    below = "".join(split_lines(text)[layout.skipped_lines + 1 :])
    if is_whole and len(layout.rows) == 1 and (header_rows or above) and not below.strip():
        raise ValueError(f"{path} has 0 rows: add rows below its header line")
    remarks = (*((remark,) if remark else ()), *_remarks(layout, header_rows, quote))
    return Dialect(
        encoding,
        compression,
        layout.separator,
        names,
        sum(map(len, names)) + len(names),
        options.skip + (0 if options.comment is not None else layout.skipped_lines) + above,
        header_rows,
        options.comment,
        quote=quote,
        remarks=remarks,
    )


def _remarks(layout: Layout, header_rows: int, quote: str) -> Iterator[str]:
    """Yield remarks about skipped lines and unusual quotes, for warnings."""
    if quote != '"':
        yield f"texts are quoted with {quote}, which frames of other libraries keep as letters"
    if layout.skipped_text:
        yield f"the lines above the header line are skipped: {layout.skipped_text!r:.60}"
    if header_rows == 2 and not layout.has_rule:
        units = " ".join(text for text in layout.rows[1] if text.strip())
        yield f"the row below the header line is skipped, as units: {units!r:.60}"


def _refuse_other_formats(path: Path, text: str) -> None:
    """Raise ValueError if a text is a web page, JSON or sparse rows of LIBSVM."""
    start = text.lstrip()[:1000]
    for name, pattern, remedy in _OTHER_FORMATS:
        if re.match(pattern, start):
            raise ValueError(f"{path} is {name}, not a text table; {remedy}")


def _quote_of(text: str) -> str:
    """Return the mark around texts: a single stroke if each row has it around a field."""
    lines = [line.rstrip("\r\n") for line in split_lines(text) if line.strip()][1:]
    is_single = '"' not in text and lines and all(map(_SINGLE_QUOTED.search, lines))
    return "'" if is_single else '"'


def _read_sample(path: Path, compression: str | None) -> tuple[bytes, bool]:
    """Return the beginning of a file, with three lines at least, and whether it is all."""
    size, sample = _SAMPLE_BYTES, first_bytes(path, compression, _SAMPLE_BYTES)
    # A table of thousands of columns has few lines in the first sample: it needs a longer one to
    # tell the separator.
    while len(sample) == size and sample.count(b"\n") < 3:
        if size >= LONGEST_LINE_BYTES:
            break
        size *= 4
        sample = first_bytes(path, compression, size)
    # Refused by its bytes, before a parser holds such a line several times.
    if len(sample) == size >= LONGEST_LINE_BYTES and not {*b"\r\n"} & {*sample}:
        raise ValueError(
            f"{path} has no end of line in its first {size >> 20} MB, but a text table begins with "
            "a line of column names; check that it is a text table"
        )
    return sample, len(sample) < size


def _check_rows(path: Path, text: str, layout: Layout) -> None:
    if not layout.rows and text.strip():
        raise ValueError(
            f"{path} has a field of more than {csv.field_size_limit():,} characters in its first "
            "row; expected a line of column names: add one, or close an open quote"
        )
    if not layout.rows or not any(name.strip() for name in layout.rows[0]):
        raise ValueError(f"{path} is empty; expected a line of column names")


def _header(path: Path, layout: Layout, options: ReadOptions) -> tuple[tuple[str, ...], int, int]:
    """Return the names, the rows that hold them, and lines to skip instead of such rows."""
    if isinstance(options.header, tuple):
        if len(options.header) != layout.width:
            raise TextError(
                "{}: {header=} has {} names, but the first row has {} fields",
                path, options.header, len(options.header), layout.width,
            )  # fmt: skip
        return options.header, 0, 0
    if options.header is False:
        return tuple(str(j) for j in range(layout.width)), 0, 0
    if layout.comment_names is not None:
        return tuple(name.strip() for name in layout.comment_names), 0, 0
    names = tuple(name.strip() for name in layout.rows[0])
    # Some programs put strokes around the names alone.
    if all(re.fullmatch("'[^']+'", name) for name in names):
        names = tuple(name[1:-1] for name in names)
    if options.header is None:
        _check_names(path, names, layout)
    if layout.has_row_names:
        # Arrow takes names for as many columns as the rows have: the line is skipped as it is.
        return ("", *names), 0, 1
    return names, 2 if layout.has_units or layout.has_rule else 1, 0


def _check_names(path: Path, names: Sequence[str], layout: Layout) -> None:
    are_numbers = all(is_number(name) for name in names if name)
    # Names 0, 1, 2, ... are written by `convert` for the columns of an array.
    are_positions = list(names) == [str(j) for j in range(len(names))]
    if (are_numbers or layout.is_nameless) and not are_positions:
        what = "is all numbers" if are_numbers else "has values as the rows below it"
        raise TextError(
            "{} has no header line: its first row {} ({}); write a line of column names above "
            "it, or give {header=False} to number the columns from 0",
            path,
            what,
            join_words(names[:3]),
        )
