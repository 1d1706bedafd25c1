"""Files of text that other libraries ship, as gramian, pandas and DuckDB read them by default."""

from __future__ import annotations

import argparse
import datetime
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..lib.process import in_fresh_process
from ..lib.tables import Tables

NOTES = """\
Every file of text below a folder (`--data FOLDER`, with one folder for each library), of up to 5
MB, is read by gramian, by `pandas.read_csv` and by DuckDB's `read_csv`, each with its defaults.
`alike`: names, rows and values are those of pandas or of DuckDB, whatever the width of numbers,
with days and numbers compared as values. `typed`: alike, but gramian has numbers, days or booleans
where both have text. `text`: alike, but gramian has text where one of them has values. `otherwise`:
other names, rows or values. `without names`: refused because the first row has values, and alike
with `header=False` but for names. `refused`: another error of one line, where another library
reads; `refused by all`: nobody reads it."""

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".tbl", ".psv", ".csv.gz", ".tsv.gz", ".txt.gz")
LARGEST_BYTES = 5_000_000
COMPARED_ROWS = 1000
MISSING = {"", "na", "n/a", "nan", "null", "none", "-nan", "<na>", "#n/a"}

Columns = dict[str, list[Any]]


def main(options: argparse.Namespace) -> None:
    tables = Tables("shipped_tables", ("Files", "Refusals", "Read otherwise"), NOTES, options)
    folders = (path for path in Path(options.data).iterdir() if path.is_dir())
    for folder in sorted(folders):
        if not tables.has("Files", folder=folder.name):
            _measure(tables, folder, 20 if options.quick else None)


def _measure(tables: Tables, folder: Path, most: int | None) -> None:
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name.lower().endswith(SUFFIXES)
        and 0 < path.stat().st_size <= LARGEST_BYTES
    ]
    found = in_fresh_process(compare_all, paths[:most])
    counts = Counter(verdict for verdict, _ in found.values())
    order = (
        "alike", "typed", "text", "without names", "otherwise", "refused", "refused by all"
    )  # fmt: skip
    tables.add(
        "Files", {"folder": folder.name, "files": len(paths)} | {o: counts[o] for o in order}
    )
    reasons = Counter(reason for verdict, reason in found.values() if verdict == "refused")
    for reason, count in reasons.most_common():
        tables.add("Refusals", {"folder": folder.name, "reason": reason, "files": count})
    for path, (verdict, reason) in found.items():
        if verdict in ("otherwise", "text"):
            row = {"folder": folder.name, "file": str(path.relative_to(folder))}
            tables.add("Read otherwise", row | {"difference": reason})


def compare_all(paths: list[Path]) -> dict[Path, tuple[str, str]]:
    return {path: compare(path) for path in paths}


def compare(path: Path) -> tuple[str, str]:
    """Return how gramian reads a file next to the others, and the difference or the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = {
            name: columns
            for name, read in (("pandas", _pandas), ("DuckDB", _duckdb))
            if isinstance(columns := _tried(read, path), dict)
        }
        ours = _tried(_gramian, path)
    if isinstance(ours, str):
        again = _tried(_nameless, path) if "no header line" in ours else ours
        if isinstance(again, dict) and any(
            _are_alike(again, columns) for columns in theirs.values()
        ):
            return "without names", ours
        return "refused" if theirs else "refused by all", ours
    if not theirs:
        return "otherwise", "read by gramian alone"
    verdicts = {name: _difference(ours, columns) for name, columns in theirs.items()}
    for verdict in ("alike", "typed", "text"):
        for kind, text in verdicts.values():
            if kind == verdict:
                return verdict, text
    return "otherwise", "; ".join(f"{name}: {text}" for name, (_, text) in verdicts.items())


def _tried(read: Callable[[Path], Columns], path: Path) -> Columns | str:
    try:
        return read(path)
    except Exception as error:
        text = str(error).replace(str(path), "").splitlines()
        line = re.sub(r" \(the header line is row 1\)", "", text[0] if text else "").strip(": ")
        words = re.sub(r"'[^']*'|\d[\d,]*|\"[^\"]*\"", "...", re.split("[:;(,]", line)[0])
        return f"{words.strip()[:110]}{' (several lines)' * (len(text) > 1)}"


def _gramian(path: Path) -> Columns:
    from gramian.data import as_table

    table = as_table(path)
    return {name: table.column(name).to_pylist() for name in table.names}


def _nameless(path: Path) -> Columns:
    from gramian.data import ReadOptions, as_table

    table = as_table(path, options=ReadOptions(header=False))
    return {name: table.column(name).to_pylist() for name in table.names}


def _are_alike(ours: Columns, theirs: Columns) -> bool:
    """Return whether values are alike, whatever the names."""
    if len(ours) != len(theirs):
        return False
    renamed = dict(zip(ours, theirs.values(), strict=True))
    return _difference(ours, renamed)[0] in ("alike", "typed")


def _pandas(path: Path) -> Columns:
    import pandas as pd

    frame = pd.read_csv(path)
    # An index without a name, and what pandas calls columns without one, are no columns.
    named = [name for name in frame.columns if not str(name).startswith("Unnamed: ")]
    return {str(name): frame[name].tolist() for name in named}


def _duckdb(path: Path) -> Columns:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as base:
        table = base.read_csv(str(path)).to_arrow_table()
    assert isinstance(table, pa.Table)
    return {name.strip(): table.column(name).to_pylist() for name in table.column_names}


def _plain(value: Any) -> Any:
    """Return a value in a form that does not depend on the library."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None)
        return value.isoformat(" ") if value.time() != datetime.time() else str(value.date())
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in MISSING else text
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def _difference(ours: Columns, theirs: Columns) -> tuple[str, str]:
    """Return the kind of the difference, and its first place."""
    names = [name.strip() for name in theirs]
    if list(ours) != names:
        return "otherwise", f"names {_shown(list(ours))} for {_shown(names)}"
    lengths = [len(next(iter(columns.values()), [])) for columns in (ours, theirs)]
    if lengths[0] != lengths[1]:
        return "otherwise", f"{lengths[0]} rows for {lengths[1]}"
    kinds: dict[str, str] = {}
    for (name, mine), other in zip(ours.items(), theirs.values(), strict=True):
        for a, b in zip(mine[:COMPARED_ROWS], other[:COMPARED_ROWS], strict=True):
            if (kind := _cell(_plain(a), _plain(b))) != "alike":
                kinds.setdefault(kind, f"{name}: {a!r} for {b!r}"[:120])
    for kind in ("otherwise", "text", "typed"):
        if kind in kinds:
            return kind, kinds[kind]
    return "alike", ""


def _cell(mine: Any, other: Any) -> str:
    if mine == other or str(mine) == str(other):
        return "alike"
    if isinstance(mine, float) and isinstance(other, float):
        return "alike" if math.isclose(mine, other, rel_tol=1e-9) else "otherwise"
    if isinstance(other, str):
        is_day = isinstance(mine, str)  # days are texts in this form
        return "otherwise" if is_day and not re.match(r"\d{2,4}[-:]", mine) else "typed"
    return "text" if isinstance(mine, str) else "otherwise"


def _shown(names: list[str]) -> str:
    return ", ".join(names[:3])[:50] + (f", ... ({len(names)})" if len(names) > 3 else "")
