"""Tables of text into typed columns: DuckDB, polars, and Arrow's parser with types of our own."""

from __future__ import annotations

import argparse
import datetime
import gzip
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ..lib.process import in_fresh_process
from ..lib.tables import Tables

READERS = ("gramian", "duckdb", "polars")
SIZES = (100, 1000)
SHORT = 300  # megabytes that polars reads: 1,000 took it 14 minutes and 1.4 GB
GIVEN = "200MB"  # to DuckDB
DAY = datetime.date(2020, 1, 31)
NOTES = f"""\
A table of text becomes typed columns in a temporary file: 8 columns of decimals, 4 of integers, one
each of text with commas and of days. `peak MB` is the largest resident set of a process that does
this and no more, `libraries MB` the part of it that is there before (gramian loads torch). DuckDB
has two threads and a memory limit of {GIVEN}, and looks at all rows for the types; so does polars
(`scan_csv(infer_schema_length=None, low_memory=True).sink_parquet`). `late` is the same with one
text in the last row of a column of integers. Other programs ran beside it: compare CPU seconds.

Awkward tables, all named .csv, read by each as by default, with types from all rows: `right` if
names and values are those that were meant, `refused` if there is an error, else what was found
instead. polars finds out neither separators nor encodings: where it says `refused`, options would
help if one knew them."""

AWKWARD: dict[str, tuple[bytes, dict[str, list[Any]]]] = {
    "commas": (b"a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "semicolons, decimal commas": (b"a;b\n1,5;x\n2,25;y\n", {"a": [1.5, 2.25], "b": ["x", "y"]}),
    "thousands with points": (b"a;b\n1.234,5;1\n12,0;2\n", {"a": [1234.5, 12.0], "b": [1, 2]}),
    "thousands with commas": (b'a,b\n"1,234.5",1\n"12.0",2\n', {"a": [1234.5, 12.0], "b": [1, 2]}),
    "tabs": (b"a\tb\n1\tx y\n2\tz\n", {"a": [1, 2], "b": ["x y", "z"]}),
    "bars": (b"a|b\n1|x\n2|y,z\n", {"a": [1, 2], "b": ["x", "y,z"]}),
    "quoted newlines": (b'a,b\n1,"x\ny"\n2,"z,""w"\n', {"a": [1, 2], "b": ["x\ny", 'z,"w']}),
    "latin-1": ("a,é\n1,ü\n2,ö\n".encode("latin-1"), {"a": [1, 2], "é": ["ü", "ö"]}),
    "UTF-8 with its mark": ("\ufeffa,b\n1,ü\n".encode(), {"a": [1], "b": ["ü"]}),
    "UTF-16": ("a,b\n1,ü\n".encode("utf-16"), {"a": [1], "b": ["ü"]}),
    "gzip": (gzip.compress(b"a,b\n1,x\n2,y\n"), {"a": [1, 2], "b": ["x", "y"]}),
    "late decimal": (b"a,b\n" + b"1,2\n" * 300_000 + b"0.5,3\n", {"a": [*[1.0] * 300_000, 0.5]}),
    "late text": (b"a,b\n" + b"1,2\n" * 300_000 + b"x,3\n", {"a": [*["1"] * 300_000, "x"]}),
    "words for missing": (b"a,b\n1,x\nNA,y\n?,z\n-,w\n", {"a": [1, None, None, None]}),
    "days": (b"a,b\n1,2020-01-31\n", {"a": [1], "b": [DAY]}),
    "days with points": (b"a,b\n1,31.01.2020\n2,1.2.2020\n", {"b": [DAY, DAY.replace(2020, 2, 1)]}),
    "days in American order": (b"a,b\n1,1/31/2020\n", {"b": [DAY]}),
    "yes and no": (b"a,b\n1,yes\n2,No\n", {"b": [True, False]}),
    "spaces around": (b"a, b\n1, x\n 2, y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "trailing separator": (b"a,b,\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}),
    "1,000 columns": (
        b",".join(b"c%d" % j for j in range(1000)) + b"\n" + b"1," * 999 + b"1.5\n",
        {"c0": [1], "c999": [1.5]},
    ),
    "a field too many": (b"a,b\n1,2\n3,4,5\n6,7\n", {}),
    "no header line": (b"1,2\n3,4\n", {}),
    "duplicate names": (b"a,a\n1,2\n", {}),
    "no text": (b"PK\x03\x04\x00\x00", {}),
}  # fmt: skip
"""Bytes that are written, and the columns that are meant; none: it should be refused."""


def generate(path: Path, megabytes: int, late: bool) -> None:
    """Write about so many megabytes of text."""
    rng, n = np.random.default_rng(0), 50_000
    with path.open("wb") as file:
        writer = None
        while file.tell() < megabytes * 1e6:
            columns: dict[str, Any] = {f"x{j}": rng.normal(size=n).round(5) for j in range(9)}
            columns |= {f"i{j}": rng.integers(0, 10_000, n).astype(str) for j in range(4)}
            columns["place"] = np.array(["Rome", "Oslo", "Bern", "Paris, F"])[
                rng.integers(4, size=n)
            ]
            columns["day"] = np.datetime64("2020-01-01") + rng.integers(0, 1000, n)
            table = pa.table(columns)
            plain = pa.csv.WriteOptions(quoting_style="needed")
            writer = writer or pa.csv.CSVWriter(file, table.schema, write_options=plain)
            writer.write(table)
        if late:
            writer.write(table.slice(0, 1).set_column(9, "i0", pa.array(["many"])))


def peak() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)


def timed(reader: str, path: Path, out: Path) -> dict[str, Any]:
    """Read a table of text into a file, in a process of its own."""
    work = {"gramian": _gramian, "duckdb": _duckdb, "polars": _polars}[reader]
    libraries = work(path, out, loading=True)
    start, before = time.perf_counter(), time.process_time()
    work(path, out)
    seconds, spent = time.perf_counter() - start, time.process_time() - before
    return {"seconds": seconds, "CPU seconds": spent, "peak MB": peak(), "libraries MB": libraries}


def _gramian(path: Path, out: Path, loading: bool = False) -> int:
    from gramian.data import as_table

    before = peak()
    if not loading:
        as_table(path)
    return before


def _duckdb(path: Path, out: Path, loading: bool = False) -> int:
    import duckdb

    before = peak()
    if not loading:
        with duckdb.connect(config={"memory_limit": GIVEN, "threads": 2}) as base:
            base.sql(f"copy (from read_csv('{path}', sample_size=-1)) to '{out}' (format parquet)")
    return before


def _polars(path: Path, out: Path, loading: bool = False) -> int:
    import polars

    before = peak()
    if not loading:
        lazy = polars.scan_csv(
            path, infer_schema_length=None, try_parse_dates=True, low_memory=True
        )
        lazy.sink_parquet(out)
    return before


def found_all(reader: str, folder: Path) -> dict[str, str]:
    """Read the awkward tables and say whether each is what was meant."""
    return {
        name: found(reader, folder / f"{name}.csv", meant) for name, (_, meant) in AWKWARD.items()
    }


def found(reader: str, path: Path, meant: dict[str, list[Any]]) -> str:
    try:
        columns = _columns(reader, path)
    except Exception as error:
        return "refused" if meant else f"refused: {' '.join(str(error).split())[-60:]}"
    if not meant.keys() <= columns.keys() or not meant:
        return f"read, columns {', '.join(columns)}"[:50]
    wrong = [name for name in meant if _differ(columns[name].to_pylist(), meant[name])]
    return f"{wrong[0]}: {columns[wrong[0]].type}" if wrong else "right"


def _columns(reader: str, path: Path) -> dict[str, pa.ChunkedArray]:
    if reader == "gramian":
        from gramian.data import as_table

        table = as_table(path)
        return {name: table.column(name) for name in table.names}
    out = path.with_suffix(".parquet")
    (_duckdb if reader == "duckdb" else _polars)(path, out)
    whole = pq.read_table(out)
    return dict(zip(whole.column_names, whole.columns, strict=True))


def _differ(values: list[Any], meant: list[Any]) -> bool:
    return values != meant or [type(v) for v in values] != [type(v) for v in meant]


def main(options: argparse.Namespace) -> None:
    tables = Tables("text_tables", ("Long tables", "Awkward tables"), NOTES, options)
    with tempfile.TemporaryDirectory(prefix="gramian-", dir=options.work) as folder:
        work = Path(folder)
        if not tables["Awkward tables"]:
            for name, (content, _) in AWKWARD.items():
                (work / f"{name}.csv").write_bytes(content)
            said = {reader: in_fresh_process(found_all, reader, work) for reader in READERS}
            tables.add(
                "Awkward tables",
                *(
                    {"table": name} | {reader: said[reader][name] for reader in READERS}
                    for name in AWKWARD
                ),
            )
        for size in (30,) if options.quick else SIZES:
            for late in (False, True):
                _long(tables, work, size, late)


def _long(tables: Tables, work: Path, size: int, late: bool) -> None:
    path, out = work / "long.csv", work / "out.parquet"
    for reader in READERS:
        key = {"MB": size, "late": late, "reader": reader}
        if tables.has("Long tables", **key) or (reader == "polars" and size > SHORT):
            continue
        if not path.exists():
            generate(path, size, late)
        tables.add("Long tables", key | in_fresh_process(timed, reader, path, out))
    path.unlink(missing_ok=True)
