"""Reports: results of commands, printed as text or as JSON; and predictions on standard output."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePath
from typing import Any

import typer

from ..._messages.display import escape_controls, escape_json_controls, without_secrets

Report = Mapping[str, Any]
"""Names and values: texts, numbers, lists and nested reports. Text output omits None.

Paths are `Path` objects: one may be an address, which is printed without its secrets.
"""


@dataclass(frozen=True)
class TextTable:
    """Entry of a report with lines of labels and counts.

    - `cells`: texts of each line.
    - `entry`: entry for JSON.
    """

    cells: list[list[str]]
    entry: dict[str, Any]

    def __str__(self) -> str:
        """Align the first column to the left, the others to the right."""
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in self.cells
        )


SHOWN_NAMES = 10
"""Names of a list that are shown, and columns that have a line of their own."""

SHOWN_LETTERS = 100
"""Letters of these names, beyond the first one."""


def show(report: Report, as_json: bool, hint: str | None = None) -> None:
    """Print a report to stdout: one JSON object, or one line per entry.

    With `hint`, a command that lists them, many columns are grouped by encoding.
    """
    if as_json:
        typer.echo(escape_json_controls(to_json(report)))
        return
    columns = report.get("columns")
    if hint is not None and isinstance(columns, Mapping) and len(columns) > SHOWN_NAMES:
        report = {**report, "columns": group_columns(columns, hint)}
    entries = list(lines_of(report))
    width = max(len(name) for name, _ in entries)
    for name, value in entries:
        lines = value.splitlines()
        if len(lines) > 1:
            lines = ["", *(f"  {line}" for line in lines)]
        typer.echo(f"{name:<{width}}  {lines[0] if lines else ''}".rstrip())
        for line in lines[1:]:
            typer.echo(line)


def shorten(value: Any, hint: str = "--all") -> Any:
    """Return a value, or nested values, with the first names of long lists."""
    if isinstance(value, Mapping):
        return {name: shorten(inner, hint) for name, inner in value.items()}
    is_list = isinstance(value, list | tuple) and not any(isinstance(x, Mapping) for x in value)
    if not is_list or len(value) <= SHOWN_NAMES:
        return value
    lengths = accumulate(len(str(name)) for name in value[:SHOWN_NAMES])
    count = max(1, sum(length <= SHOWN_LETTERS for length in lengths))
    return [*value[:count], f"... ({len(value):,}; {hint} shows all)"]


def group_columns(columns: Mapping[str, str], hint: str = "--all") -> dict[str, str]:
    """Return the names of columns by their encoding, the most frequent first."""
    names: dict[str, list[str]] = {}
    for name, text in columns.items():
        names.setdefault(text, []).append(name)
    frequent_first = sorted(names.items(), key=lambda group: -len(group[1]))
    shown = {
        f"({len(group):,}) {text}": ", ".join(map(str, shorten(group, hint)))
        for text, group in frequent_first[:SHOWN_NAMES]
    }
    more_count = sum(len(group) for _, group in frequent_first[SHOWN_NAMES:])
    return shown | ({"others": f"{more_count:,}; {hint} shows all"} if more_count else {})


def to_json(value: object) -> str:
    """Return JSON, with null for numbers that JSON lacks, such as infinity."""
    return json.dumps(_finite(value), allow_nan=False, ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, TextTable):
        return _finite(value.entry)
    if isinstance(value, Mapping):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, PurePath):
        return without_secrets(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines_of(report: Report, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each entry, including nested reports."""
    for key, value in report.items():
        name = f"{prefix}{escape_controls(key.replace('_', ' '))}"
        if isinstance(value, Mapping):
            yield from lines_of(value, f"{name} ")
        elif value is not None:
            yield name, _text(value)


def _text(value: object) -> str:
    # Before int: True is an int to Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        if value and all(isinstance(row, Mapping) for row in value):
            return _align_table(value)
        return ", ".join(_text(inner) for inner in value)
    if isinstance(value, TextTable):
        return str(value)
    return escape_controls(without_secrets(value) if isinstance(value, PurePath) else str(value))


def _align_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Align rows below the names of their columns; omit empty columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    shown = [name for name in names if any(row.get(name) is not None for row in rows)]
    cells = [[escape_controls(name.replace("_", " ")) for name in shown]]
    cells += [["" if row.get(name) is None else _text(row[name]) for name in shown] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


STANDARD_OUTPUT = "-"
"""Name of a file of predictions that goes to standard output, as CSV."""


def write_standard_output(write: Callable[[Path], object]) -> None:
    """Write a table to standard output; `write` first writes it to a temporary file."""
    with tempfile.TemporaryDirectory(prefix="gramian-") as folder:
        path = Path(folder) / "predictions.csv"
        write(path)
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
