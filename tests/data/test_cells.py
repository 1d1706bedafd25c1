"""Workbooks, databases, lines of JSON, several files: read as the same table in a file of text."""

from __future__ import annotations

import io
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pytest

from gramian import KernelRidge
from gramian.data import as_table, convert

N = 60


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 400, N), "D")
    frame = pd.DataFrame(
        {"x": rng.normal(size=N).round(4), "k": rng.integers(0, 9, N), "day": days}
    )
    frame["town"] = rng.choice(["Rome", "Bern"], N)
    frame["lift"] = rng.random(N) < 0.5
    frame["y"] = (frame["x"] + frame["k"]).round(4)
    frame.loc[3, "x"] = np.nan
    return frame


def write(frame: pd.DataFrame, folder: Path, name: str) -> Path:
    """Write the frame as libraries do, and return the path of the table."""
    path = folder / name
    if name.endswith(".xlsx"):
        frame.to_excel(path, index=False)
    elif name.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    elif name.endswith(".duckdb"):
        with closing(duckdb.connect(str(path))) as database:
            database.register("frame", frame)
            database.execute("create table sales as select * from frame")
    elif name.endswith(".db"):
        texts = frame.assign(
            day=frame["day"].dt.strftime("%Y-%m-%d"), lift=frame["lift"].map(str).str.lower()
        )
        with closing(sqlite3.connect(path)) as database:
            texts.to_sql("sales", database, index=False)
            database.commit()
    elif name == "days":
        path.mkdir()
        frame[:20].to_csv(path / "a.csv", index=False)
        frame[20:40][frame.columns[::-1]].to_csv(path / "b.tsv", index=False, sep="\t")
        frame[40:].to_csv(path / "c.csv.gz", index=False)
    else:
        frame.to_csv(path, index=False)
    return path


NAMES = ("a.xlsx", "a.jsonl", "a.db", "a.duckdb", "days")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_table_and_the_same_predictions(
    frame: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    text = write(frame, tmp_path, "a.csv")
    path = write(frame, tmp_path, name)
    expected, table = as_table(text), as_table(path)
    assert table.names == expected.names
    for column in table.names:
        kind = expected.schema.field(column).type
        assert table.column(column).cast(kind).to_pylist() == expected.column(column).to_pylist()
    here = KernelRidge("gaussian", penalty=1e-3).fit(text, "y")
    there = KernelRidge("gaussian", penalty=1e-3).fit(path, "y")
    np.testing.assert_array_equal(here.predict(path), here.predict(text))
    np.testing.assert_array_equal(there.predict(text), here.predict(text))
    assert convert(path, tmp_path / "b.parquet") == N


@pytest.mark.parametrize("name", ["a.xlsx", "a.db", "a.duckdb"])
def test_a_part_is_named(frame: pd.DataFrame, tmp_path: Path, name: str) -> None:
    path = write(frame, tmp_path, name)
    part = "Sheet1" if name == "a.xlsx" else "sales"
    assert len(as_table(f"{path}::{part}")) == N
    with pytest.raises(ValueError, match=f"has no (sheet|table) 'none'; it has {part}"):
        as_table(f"{path}::none")


def test_several_tables_must_be_named(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = write(frame, tmp_path, "a.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table more (a)")
        database.commit()
    with pytest.raises(ValueError, match=r"has 2 tables \(more, sales\); name one, as .*::NAME"):
        as_table(path)


@pytest.mark.parametrize("name", ["a.xlsx", "a.db", "a.duckdb", "a.jsonl"])
def test_damaged_files_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no such file at all, but long enough to be one" * 40)
    with pytest.raises(ValueError, match=f"{name} cannot be read as") as refusal:
        as_table(tmp_path / name)
    assert "\n" not in str(refusal.value)
    with pytest.raises(FileNotFoundError, match=r"there is no file|No such file|Failed to open"):
        as_table(tmp_path / f"none{name}")


def test_a_sheet_with_a_title(tmp_path: Path) -> None:
    rows = [["Sales", None], [None, None], ["a", "b"], *([i, i / 2] for i in range(1, 9))]
    pd.DataFrame(rows).to_excel(tmp_path / "a.xlsx", index=False, header=False)
    with pytest.warns(UserWarning, match="'Sales'"):
        table = as_table(tmp_path / "a.xlsx")
    assert table.column("b").to_pylist() == [i / 2 for i in range(1, 9)]


def test_a_pattern(frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = write(frame, tmp_path, "days")
    assert len(as_table(folder / "*.csv")) == 20
    assert len(as_table(f"{folder}/[ab].*sv")) == 40
    with pytest.raises(FileNotFoundError, match=r"there is no file .*\*\.txt"):
        as_table(folder / "*.txt")


def test_files_with_other_columns(frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = write(frame, tmp_path, "days")
    (folder / "d.csv").write_text("x,k,sun,town,lift,y\n1,2,3,4,5,6\n")
    with pytest.raises(ValueError, match=r"d\.csv has other columns than .*a\.csv: day, sun"):
        as_table(folder)


def test_types_are_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    (tmp_path / "b.csv").write_text("b;a\ny;1,5\n")
    assert as_table(tmp_path).column("a").to_pylist() == [1.0, 1.5]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a;b\n1;2,5\n")))
    table = as_table("-")
    assert table.column("b").to_pylist() == [2.5]
    assert table.where == "standard input"
