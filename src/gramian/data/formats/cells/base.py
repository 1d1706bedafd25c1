"""Tables of cells with values of any type, such as sheets and tables of databases."""

from __future__ import annotations

import csv
import datetime
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...tables.base import Table
from ...tables.column_reading import TEXT_COLUMN
from ...tables.read_options import ReadOptions
from ..base import TableFormat

PART_MARK = "::"
"""Mark between a file and the name of a table or sheet in it."""


class CellsFormat(TableFormat):
    """Tables in files that hold several, as ``FILE::NAME``; a file with one table needs no name.

    A subclass implements `cells`. The values are written to a temporary file of text and read like
    one, so that texts have the same meaning in all formats.
    """

    text = True

    def opens(self, path: Path) -> bool:
        return super().opens(split_part(path)[0])

    def cells(self, path: Path, part: str | None) -> Iterator[Sequence[Any]]:
        """Yield the rows of a table, the names of its columns first.

        Parameters
        ----------
        path : Path
            Of the file.
        part : str or None
            Name of the table or sheet.
        """
        raise NotImplementedError

    def open(self, path: Path, where: str, options: ReadOptions) -> Table:
        file, part = split_part(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}")
        from ..csv.table import text_table  # long to import, see `Csv.table`

        handle, name = tempfile.mkstemp(prefix="gramian-", suffix=".csv")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                kinds = _write_rows(csv.writer(stream), self.cells(file, part))
            table = text_table(Path(name), where, _cell_options(options, kinds))
        finally:
            Path(name).unlink()
        table.reading = options.for_model
        return table


def split_part(path: Path) -> tuple[Path, str | None]:
    """Return the file of a path such as ``FILE::NAME``, and the name."""
    file, mark, part = str(path).partition(PART_MARK)
    return Path(file), part if mark else None


def choose_part(path: Path, part: str | None, known: Sequence[str], what: str) -> str:
    """Return the name of a table in a file; ValueError if it is not there, or there are several."""
    if part is None and len(known) == 1:
        return known[0]
    names = ", ".join(known) or "none"
    if part is None:
        raise ValueError(
            f"{path} has {len(known)} {what}s ({names}); name one, as {path}{PART_MARK}NAME"
        )
    if part not in known:
        raise ValueError(f"{path} has no {what} {part!r}; it has {names}")
    return part


def _write_rows(writer: Any, rows: Iterable[Sequence[Any]]) -> dict[str, set[type]]:
    """Write rows as text, and return the types of the values of each column."""
    kinds: list[set[type]] = []
    names: list[str] = []
    for row in rows:
        texts = [_text_of(value) for value in row]
        if not names and sum(map(bool, texts)) > 1:
            names = texts
            kinds = [set() for _ in names]
        elif names:
            for kind, value in zip(kinds, row, strict=False):
                if value is not None:
                    kind.add(type(value))
        writer.writerow(texts)
    return dict(zip(names, kinds, strict=True))


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.datetime):
        is_day = value.time() == datetime.time() and value.tzinfo is None
        return (value.date() if is_day else value).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        raise TypeError(f"a value is bytes, {value[:20]!r}: leave its column out, or store text")
    return str(value)


def _cell_options(options: ReadOptions, kinds: Mapping[str, set[type]]) -> ReadOptions:
    """Return options for the text of cells: typed values need no marks, and no order of days."""
    columns = {
        name: reading
        for name, reading in options.columns.items()
        if reading == TEXT_COLUMN or str in kinds.get(name, {str})
    }
    return replace(options, separator=",", encoding="utf-8", decimal=None, columns=columns)
