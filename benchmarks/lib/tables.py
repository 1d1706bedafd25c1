"""Tables that grow row by row: each row is written at once, and an interrupted run goes on."""

from __future__ import annotations

import argparse
from typing import Any

from .results import Row, read, shown, write


class Tables:
    """The tables of one results file; rows of earlier runs stay and are not measured again.

    Parameters
    ----------
    name : str
        Of the files in ``benchmarks/results``.
    titles : tuple of str
        In their order.
    notes : str
        What the columns mean and how they were measured.
    options : argparse.Namespace
        With ``--fresh`` all earlier rows are dropped, with ``--forget KEY=VALUE`` those with that
        value; with ``--quick`` nothing is read or written.
    hidden : tuple of str
        Titles that go into the JSON only.
    """

    def __init__(
        self,
        name: str,
        titles: tuple[str, ...],
        notes: str,
        options: argparse.Namespace,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.name, self.notes, self.written, self.hidden = name, notes, not options.quick, hidden
        self.rows: dict[str, list[Row]] = {title: [] for title in titles}
        if self.written and not options.fresh:
            before = read(name)
            for title in titles:
                earlier = before.get(title, [])
                self.rows[title] = [row for row in earlier if not _matches(row, options.forget)]

    def __getitem__(self, title: str) -> list[Row]:
        return self.rows[title]

    def has(self, title: str, **key: Any) -> bool:
        """Return whether a table has a row with these values."""
        return any(key.items() <= row.items() for row in self.rows[title])

    def add(self, title: str, *rows: Row) -> None:
        """Append rows, show and write them."""
        for row in rows:
            shown(row)
        self.rows[title] += rows
        self.save()

    def replace(self, title: str, rows: list[Row]) -> None:
        """Set a table that is a summary of others."""
        self.rows[title] = rows
        self.save()

    def save(self) -> None:
        if self.written:
            tables = {title: rows for title, rows in self.rows.items() if rows}
            write(self.name, tables, self.notes, hidden=self.hidden)


def asked(row: Row, only: list[str]) -> bool:
    """Return whether for each key given as ``KEY=VALUE`` the row has one of its values."""
    wanted: dict[str, set[str]] = {}
    for key, _, value in (text.partition("=") for text in only):
        wanted.setdefault(key, set()).add(value)
    return all(str(row.get(key)) in values for key, values in wanted.items())


def _matches(row: Row, forget: list[str]) -> bool:
    """Return whether a row has any of the values given as ``KEY=VALUE``."""
    pairs = (text.partition("=") for text in forget)
    return any(key in row and str(row[key]) == value for key, _, value in pairs)
