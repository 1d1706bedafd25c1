"""What the benchmarks share: the data sets and their digests, results, and who imports whom."""

from __future__ import annotations

import ast
import gzip
import importlib
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
OPTIONS = {"quick": False, "fresh": False, "forget": []}


@pytest.fixture
def benchmarks(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def data(benchmarks) -> ModuleType:
    return benchmarks("data")


@pytest.fixture
def results(benchmarks, monkeypatch, tmp_path) -> ModuleType:
    results = benchmarks("lib.results")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return results


def written(path: Path, compression: str = "zstd", **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, compression=compression)
    return path


# --- data sets -----------------------------------------------------------------------------------


def test_the_digest_is_of_values_and_not_of_the_file(data, tmp_path):
    def digest(compression: str = "zstd", **change: Any) -> str:
        columns = {"x": np.arange(9.0), "s": ["a", "b", "c"] * 3, "split": np.zeros(9, np.int8)}
        path = written(tmp_path / "x.parquet", compression, **columns | change)
        return data.values_digest(pq.read_table(path))

    assert digest() == digest("snappy") == digest(s=pa.array(["a", "b", "c"] * 3, "large_string"))
    others = {"split": np.zeros(9, np.uint8)}, {"s": ["a", "b", "d"] * 3}, {"x": -np.ones(9)}
    assert len({digest(), *(digest(**other) for other in others)}) == 4
    for s in (["a", None, "c"] * 3, ["a\nb", "c", ""] * 3):
        with pytest.raises(ValueError, match="column 's' has"):
            digest(s=s)
    with pytest.raises(ValueError, match="column 'x' has"):
        digest(x=pa.array([None, *range(8)], "float64"))
    path = written(tmp_path / "x.parquet", s=["a", None])
    assert data.state(data.SOURCES[0], path).startswith("wrong: it cannot be read (column 's' has")


def test_a_set_is_missing_then_made_then_damaged(data, tmp_path, capsys):
    raw, folder = tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    source = next(source for source in data.SOURCES if source.name == "skin")
    lines = ["B\tG\tR\tI SKIN", *(f"{i}\t{2 * i}\t{255 - i}\t{1 + i % 2}" for i in range(20))]
    (raw / "Skin_NonSkin.txt").write_text("\r\n".join(lines) + "\r\n")
    i, tested = np.arange(20, dtype=np.uint8), np.random.default_rng(0).permutation(20)[:4]
    columns = {"B": i, "G": 2 * i, "R": 255 - i, "target": 1 + i.astype(np.int32) % 2}
    expected = pa.table(columns | {"split": np.isin(i, tested).astype(np.int8)})
    few = (
        data.Source(source.convert, source.files, "a page", "none", data.values_digest(expected)),
    )

    assert data.main([str(folder)], few) == 1
    assert "missing" in (said := capsys.readouterr().out)
    assert "from: a page" in said
    assert data.main([str(folder), "--from", str(raw)], few) == 0
    assert pq.read_table(folder / "skin.parquet").equals(expected)
    plain = {"compression": "none", "use_dictionary": False, "column_encoding": "PLAIN"}
    pq.write_table(expected, folder / "skin.parquet", **plain)
    assert data.main([str(folder)], few) == 0
    content = bytearray((folder / "skin.parquet").read_bytes())
    content[content.index(np.arange(20, dtype="<i4").tobytes()) + 8] ^= 4
    (folder / "skin.parquet").write_bytes(content)
    assert data.main([str(folder)], few) == 1
    assert "wrong: SHA-256" in capsys.readouterr().out
    (folder / "skin.parquet").write_bytes(content[:-9])
    assert data.main([str(folder)], few) == 1
    assert "wrong: it cannot be read" in capsys.readouterr().out


def test_every_set_has_its_own_digest_and_source(data):
    assert len({source.digest for source in data.SOURCES}) == len(data.SOURCES)
    for source in data.SOURCES:
        assert len(bytes.fromhex(source.digest)) == 32
        assert source.files
        assert source.origin


def test_sparse_lines_and_idx_files_are_read(benchmarks, tmp_path):
    conversions = benchmarks("lib.conversions")
    (tmp_path / "a9a").write_text("-1 3:1 123:1 \n+1 1:1 \n")
    (tmp_path / "a9a.t").write_text("+1 2:1 3:1\n")
    adult = conversions.adult_a9a(tmp_path)
    assert adult["target"].tolist() == [-1, 1, 1]
    assert adult["split"].tolist() == [0, 0, 1]
    ones = [
        (i, int(name[1:]))
        for i, row in adult.iterrows()
        for name in row[:123][row[:123] == 1].index
    ]
    assert ones == [(0, 3), (0, 123), (1, 1), (2, 2), (2, 3)]
    head = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3])
    (tmp_path / "idx.gz").write_bytes(gzip.compress(head + bytes(range(6))))
    assert conversions.read_idx(tmp_path / "idx.gz").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "idx.gz").write_bytes(gzip.compress(b"\0\0\x0d" + head[3:] + bytes(range(6))))
    with pytest.raises(ValueError, match="is not an IDX file of bytes"):
        conversions.read_idx(tmp_path / "idx.gz")


def test_incomplete_hours_and_winds_of_beijing(benchmarks, tmp_path):
    conversions = benchmarks("lib.conversions")
    rows = pd.DataFrame({"No": range(4), "year": 2013, "PM2.5": [4.0, None, 5.0, 6.0]})
    rows["PM10"], rows["SO2"] = [None, 1.0, 2.0, 3.0], ["1", "2", " ", "4"]
    rows["wd"], rows["station"] = ["E", "E", "N", "SW"], "Dongsi"
    rows.to_csv(tmp_path / "PRSA_Data_Dongsi_20130301-20170228.csv", index=False)
    found = conversions.beijing_pm25(tmp_path)
    assert found["target"].tolist() == [4.0, 6.0]  # PM10 may be missing, all else not
    np.testing.assert_allclose(found["wd_sin"], [1.0, -(0.5**0.5)], atol=1e-7)
    np.testing.assert_allclose(found["wd_cos"], [0.0, -(0.5**0.5)], atol=1e-7)
    assert found["st_Dongsi"].tolist() == [1, 1]


# --- results -------------------------------------------------------------------------------------


def test_results_are_read_as_written_and_equal_ones_have_equal_bytes(results, tmp_path):
    tables = {"A": [{"x": 1.5, "s": "±"}], "Hidden": [{"y": 7654321}]}
    results.write("some", tables, "Notes.", hidden=("Hidden",))
    path = tmp_path / "results" / "some.json.gz"
    first = path.read_bytes()
    assert first[4:8] == bytes(4)  # no time in the header
    assert results.read("some") == tables
    results.write("some", tables, "Notes.", hidden=("Hidden",))
    assert path.read_bytes() == first
    text = (tmp_path / "results" / "some.md").read_text()
    assert "| 1.5 | ± |" in text
    assert "7654321" not in text
    assert results.read("other") == {}


def test_an_interrupted_run_goes_on_and_rows_can_be_forgotten(benchmarks, results):
    Tables = benchmarks("lib.tables").Tables

    def opened(**change: Any) -> Any:
        return Tables("some", ("A", "B"), "Notes.", Namespace(**OPTIONS | change))

    tables = opened()
    tables.add("A", {"file": "csv", "bugs": 1}, {"file": "npy", "bugs": 2})
    tables.add("B", {"file": "csv", "n": 3}, {"solver": "pcg"})
    assert opened().has("A", file="npy", bugs=2)
    some = opened(forget=["file=csv", "n=9"])
    assert (some["A"], some["B"]) == ([{"file": "npy", "bugs": 2}], [{"solver": "pcg"}])
    some.add("A", {"file": "csv", "bugs": 0})
    assert [row["bugs"] for row in opened()["A"]] == [2, 0]
    assert opened(fresh=True)["A"] == opened(quick=True)["A"] == []


def test_the_settings_that_others_use_are_in_the_results(benchmarks):
    chosen = benchmarks("lib.settings").chosen
    for name in benchmarks("lib.sets").NAMES:
        lengthscale, penalty = chosen(name, "2000")
        assert lengthscale > 0
        assert 0 < penalty < 1


# --- the folders ---------------------------------------------------------------------------------


def test_every_benchmark_is_listed_and_can_be_run(benchmarks, capsys):
    command = benchmarks("__main__")
    with pytest.raises(SystemExit, match="0"):
        command.parse(["--help"])
    listing = capsys.readouterr().out
    for group, names in command.GROUPS.items():
        assert f"\n{group}:\n" in listing
        for name in names:
            assert f"\n  {name} " in listing
            tree = ast.parse((ROOT / "benchmarks" / group / f"{name}.py").read_text())
            assert ast.get_docstring(tree)
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            assert "main" in functions
    with pytest.raises(SystemExit, match="2"):
        command.parse(["no_such_benchmark"])
    assert "no benchmark no_such_benchmark" in capsys.readouterr().err


def test_a_folder_of_benchmarks_imports_itself_and_lib_only(benchmarks):
    command = benchmarks("__main__")
    for path in (ROOT / "benchmarks").glob("*/*.py"):
        above = {"lib"} if path.parent.name != "lib" else set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                top = (node.module or "").split(".")[0]
                assert node.level == 1 or top in above, (path, ast.unparse(node))
    assert set(command.GROUPS) | {"lib", "results", "__pycache__"} >= {
        path.name for path in (ROOT / "benchmarks").iterdir() if path.is_dir()
    }
