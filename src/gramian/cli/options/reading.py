"""Options for reading a table."""

# No `from __future__ import annotations`: classes in other modules inherit the fields, and the
# types of their options would be looked up there by name.

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from typer import Option

READING_PANEL = "Reading of text files (stored in the model)"


def _option(help: str, *names: str) -> Any:
    return Option(*names, help=help, rich_help_panel=READING_PANEL, show_default=False)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading a table; the others are detected, or are as in training."""

    separator: Annotated[
        str | None, _option("Character between fields, as ';'; tab; or whitespace.")
    ] = None
    decimal: Annotated[str | None, _option("Mark for decimals: . or ,")] = None
    encoding: Annotated[str | None, _option("Encoding, as utf-8, cp1251 or shift_jis.")] = None
    no_header: Annotated[
        bool,
        _option("No line has the names of the columns: they are 0, 1, 2, ...", "--no-header"),
    ] = False
    header: Annotated[
        str | None,
        _option("Names of the columns of a file without a line of names, as a,b,c."),
    ] = None
    skip: Annotated[int | None, _option("Lines to skip above the table.")] = None
    comment: Annotated[
        str | None, _option("Beginning of lines to skip anywhere in the file, as '#'.")
    ] = None
    missing: Annotated[
        list[str] | None,
        _option("Text for missing values, as unknown or -999; repeat the option for more."),
    ] = None
    date_format: Annotated[
        str | None,
        _option("Format of dates, as %d/%m/%Y, or their order: dmy, mdy or ymd."),
    ] = None
    types: Annotated[
        list[str] | None,
        _option(
            "Type of a column, as zip=category: number, category, date, boolean or ignore. Repeat "
            "the option for more columns."
        ),
    ] = None

    @property
    def read(self) -> dict[str, Any]:
        """The options that were given, as the argument ``read`` of a fit."""
        if self.no_header and self.header is not None:
            raise ValueError("--no-header and --header cannot be combined: --header has the names")
        values = {name: getattr(self, name) for name in SAME_NAMES}
        read: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        if self.no_header:
            read["header"] = False
        if self.header is not None:
            read["header"] = tuple(split_list(self.header))
        if self.missing:
            read["missing"] = tuple(self.missing)
        if self.types:
            read["types"] = dict(_type(text) for text in _type_texts(self.types))
        return read


SAME_NAMES = ("separator", "decimal", "encoding", "skip", "comment", "date_format")
"""Options that are parameters of `ReadOptions`."""

READING_OPTIONS = frozenset(option.name for option in fields(ReadingOptions))


def _type_texts(texts: Sequence[str]) -> list[str]:
    """Return texts such as zip=category; one text may have several of them."""
    lists = [[text] if text.count("=") == 1 else split_list(text) for text in texts]
    return [text for parts in lists for text in parts]


def _type(text: str) -> tuple[str, str]:
    name, mark, kind = text.rpartition("=")
    if not mark or not name:
        raise ValueError(f"--types must be a column and its type, as zip=category, not {text!r}")
    return name, kind


def split_list(text: str) -> list[str]:
    """Return the names of a list with commas; a name with commas has quotes around it."""
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def column_names(texts: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns that an option names; None if it was not given.

    - `texts`: each is the name of a column, ``@FILE`` with a name a line, or a list with commas.
    - `known`: names of the table.

    Raise ValueError if a column is named twice, and OSError if there is no such file.
    """
    if texts is None:
        return None
    names: list[str] = []
    for text in texts:
        if text in known:
            names.append(text)
        elif text.startswith("@"):
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
            names += [line for line in lines if line.strip()]
        else:
            names += split_list(text)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the column {twice} is named twice in {', '.join(texts)}")
    return tuple(names)
