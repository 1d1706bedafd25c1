"""Losses besides the square: minima, steps, seconds, crossing quantiles, rows from disk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.lib.timing import set_blas_threads

from ..lib.results import Row
from ..lib.tables import Tables, asked
from . import streamed, worth
from .minima import CLASSES, LOGISTIC, METHODS, REGRESSION, Fit, classes, logistic, regression
from .notes import NOTES

PARTS = {"logistic": LOGISTIC, "classes": CLASSES, "regression": REGRESSION}
"""Names of parts for ``--only part=``, and what each fit of them is listed in."""

CROSSING, HELD, STREAMED = "Crossing quantiles", "Held-out rows", "Out of core"
ROWS, QUICK_ROWS = 10_000_000, 100_000

FIGURES = {
    "above the least": "above", "CPU seconds": "cpu_s", "steps / passes": "steps",
    "held-out loss / error": "held",
}  # fmt: skip
"""Figures that are set side by side, and their columns."""


KEY = ("set", "loss", "rows", "m", "penalty")
"""Columns that tell problems apart."""


def side_by_side(rows: list[Row], column: str) -> list[Row]:
    """Return one figure of all methods, a problem in each row."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[name]) for name in KEY), []).append(row)
    lines = []
    for some in found.values():
        least = min(row["objective"] for row in some)
        cells = {row["method"]: _text(row, column, least) for row in some}
        order = [name for name in METHODS if name in cells]
        lines.append({name: some[0][name] for name in KEY} | {name: cells[name] for name in order})
    return lines


def _text(row: Row, column: str, least: float) -> str:
    if column == "above":
        return f"{(row['objective'] - least) / abs(least):.1e}"
    if column == "held":
        error = f" / {row['error']:.4f}" if "error" in row else ""
        return f"{row['test loss']:.4f}{error}"
    if column == "steps":
        return f"{row['steps']} / {row['passes']:.0f}"
    return f"{row[column]:.2g}" if row[column] < 10 else f"{row[column]:.0f}"


def report(tables: Tables) -> None:
    """Set the tables that follow from the fits."""
    for title in PARTS.values():
        for what, column in FIGURES.items():
            tables.rows[f"{title}: {what}"] = side_by_side(tables[title], column)
    tables.save()


def fits(options: argparse.Namespace) -> Iterator[tuple[str, Fit]]:
    """Yield the fits that are asked for, and the list that each belongs to."""
    makers = {"logistic": logistic, "classes": classes, "regression": regression}
    for part, maker in makers.items():
        if not asked({"part": part}, options.only):
            continue
        for fit in maker(options.data, options.quick):
            yield PARTS[part], fit


def minima(tables: Tables, options: argparse.Namespace) -> None:
    """Measure the methods on each problem."""
    for title, fit in fits(options):
        known = {row["method"] for row in tables[title] if fit.key.items() <= row.items()}
        for row in fit.measured(known):
            tables.add(title, row)
        report(tables)


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    titles = [f"{title}: {what}" for title in PARTS.values() for what in FIGURES]
    shown = (*titles, CROSSING, HELD, STREAMED)
    tables = Tables(
        "losses", (*shown, *PARTS.values()), NOTES, options, hidden=tuple(PARTS.values())
    )
    minima(tables, options)
    if asked({"part": "crossing"}, options.only):
        known = {row["set"] for row in tables[CROSSING]}
        for row in worth.crossing(options.data, options.quick, known):
            tables.add(CROSSING, row)
    if asked({"part": "held"}, options.only) and not tables.has(HELD):
        for row in worth.held_out(options.data, options.quick):
            tables.add(HELD, row)
    if asked({"part": "streamed"}, options.only) and not tables.has(STREAMED):
        rows = QUICK_ROWS if options.quick else ROWS
        tables.add(STREAMED, streamed.measured(rows, options.work))
    report(tables)
