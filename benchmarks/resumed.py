"""Tables that grow row by row: each is written at once, and a run that ended early goes on."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .common import RESULTS, write

Row = dict[str, Any]


class Tables:
    """The tables of one results file.

    Parameters
    ----------
    name : str
        Of the files in ``benchmarks/results``.
    titles : tuple of str
        In their order.
    notes : str
    options : argparse.Namespace
        With ``--fresh`` what has been measured before is forgotten; with ``--quick`` nothing is
        read or written.
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
        self.name, self.notes, self.kept, self.hidden = name, notes, not options.quick, hidden
        self.rows: dict[str, list[Row]] = {title: [] for title in titles}
        path = RESULTS / f"{name}.json"
        if self.kept and not options.fresh and path.is_file():
            before = json.loads(path.read_text())["tables"]
            self.rows |= {title: before[title] for title in titles if title in before}

    def __getitem__(self, title: str) -> list[Row]:
        return self.rows[title]

    def has(self, title: str, **key: Any) -> bool:
        """Return whether a table has a row with these values."""
        return any(key.items() <= row.items() for row in self.rows[title])

    def add(self, title: str, *rows: Row) -> None:
        """Append rows, show and write them."""
        for row in rows:
            cells = (f"{k}={v:.4g}" if isinstance(v, float) else f"{v}" for k, v in row.items())
            print("  ".join(cells), flush=True)
        self.rows[title] += rows
        self.save()

    def replace(self, title: str, rows: list[Row]) -> None:
        """Set a table that is a summary of others."""
        self.rows[title] = rows
        self.save()

    def save(self) -> None:
        if self.kept:
            tables = {title: rows for title, rows in self.rows.items() if rows}
            write(self.name, tables, self.notes, hidden=self.hidden)
