"""Parquet in bounded memory, read ahead by a thread that always ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from close import assert_close

from gramian.data import ParquetRows, Sum, as_rows
from gramian.data.rows.prefetch import prefetch


def readers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("gramian-read")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    x = np.arange(3000.0).reshape(1000, 3)
    pq.write_table(pa.table(dict(zip("abc", x.T, strict=True))), tmp_path / "x.parquet", 150)
    return tmp_path / "x.parquet"


@pytest.mark.parametrize("size", [1, 10, 149, 150, 151, 333, 1000, 5000])
def test_blocks_do_not_depend_on_row_groups(path: Path, size: int) -> None:
    expected = [slice(i, min(i + size, 1000)) for i in range(0, 1000, size)]
    assert [part for part, _ in ParquetRows(path).blocks(size)] == expected


def test_columns_in_the_order_asked_for(path: Path) -> None:
    rows = ParquetRows(path, ["c", "a"])
    assert rows.feature_names == ("c", "a")
    assert rows.take(np.array([1, 0])).tolist() == [[5, 3], [2, 0]]
    assert next(iter(rows.blocks(1)))[1].tolist() == [[2, 0]]


def test_a_folder_of_all_names_of_such_files(tmp_path: Path) -> None:
    for i, name in enumerate(["x.parquet", "y.PARQUET", "z.pq", ".hidden.pq", "_log.pq", "w.csv"]):
        pq.write_table(pa.table({"a": [3.0 * i, 1.0, 2.0]}), tmp_path / name)
    rows = as_rows(tmp_path)
    assert rows.shape == (9, 1)
    assert rows.take(np.arange(9))[::3, 0].tolist() == [0.0, 3.0, 6.0]
    for kept in ("x.parquet", "y.PARQUET", "z.pq"):
        (tmp_path / kept).unlink()
    with pytest.raises(ValueError, match=r"contains no \*\.parquet or \*\.pq files"):
        as_rows(tmp_path)


def test_names_with_dots(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1.0], "a": [2.0], "a.b.c": [3.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = ParquetRows(tmp_path / "x.parquet", ["a.b", "a"])
    assert rows.take(np.array([0])).tolist() == [[1, 2]]
    assert next(iter(rows.blocks(1)))[1].tolist() == [[1, 2]]


def test_the_index_that_pandas_stores_is_no_feature(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]).to_parquet(tmp_path / "x.parquet")
    assert as_rows(tmp_path / "x.parquet").feature_names == ("a",)


def test_booleans_and_nulls(tmp_path: Path) -> None:
    table = pa.table({"a": [True, None, False], "b": pa.array([1, 2, None], pa.int8())})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = as_rows(tmp_path / "x.parquet")
    assert rows.dtype == np.float32
    expected = np.array([[1, 1], [np.nan, 2], [0, np.nan]], np.float32)
    got = rows.take(np.arange(3))
    assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_take_opens_only_row_groups_with_wanted_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: pq.ParquetFile, *args: object, **kwargs: object) -> Iterator[pa.RecordBatch]:
        read.append(list(kwargs["row_groups"]))  # type: ignore[call-overload]
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    index = np.array([999, 160, 5, 160])
    assert ParquetRows(path).take(index)[:, 0].tolist() == (3.0 * index).tolist()
    assert read == [[0, 1, 6]]


def test_the_reader_ends_with_the_walk(path: Path) -> None:
    for _ in ParquetRows(path).blocks(100):
        assert readers()
    assert not readers()


def test_the_reader_ends_when_the_walk_stops_early(path: Path) -> None:
    for _ in ParquetRows(path).blocks(10):
        break
    assert not readers()


def test_the_reader_ends_when_the_consumer_fails(path: Path) -> None:
    def fail(block: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ParquetRows(path).fold(Sum(fail), size=10)
    assert not readers()  # the traceback is gone, and with it the walk


def test_an_error_in_the_reader_reaches_the_consumer_in_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the disk is gone")

    walk = prefetch(items())
    assert [next(walk), next(walk)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(walk)
    assert not readers()


def test_only_one_item_is_made_in_advance() -> None:
    made = []

    def items() -> Iterator[int]:
        for i in range(20):
            made.append(i)
            yield i

    for i in prefetch(items()):
        deadline = time.monotonic() + 10
        while len(made) < min(i + 2, 20) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(made) == min(i + 2, 20)


# Streams 100 MB of one row group, in a process of its own after a walk over its first columns has
# loaded what has to be loaded, and prints by how many MB the peak has grown.
STREAM = """
import sys
import numpy as np
from gramian.data import ParquetRows, Sum

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000

warm, whole = sys.argv[1:]
total = ParquetRows(warm).fold(Sum(lambda block: block.sum(axis=0)), size=4096)
before = peak()
rows = ParquetRows(whole)
total = rows.fold(Sum(lambda block: block.astype(np.float64).sum(axis=0)), size=16384)
assert np.array_equal(total, np.arange(10.0) * rows.shape[0])
rows.take(np.arange(0, rows.shape[0], 100_000))
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_memory_does_not_grow_with_the_row_group(tmp_path: Path) -> None:
    for name, n in (("warm", 10_000), ("whole", 2_500_000)):
        columns = {str(j): np.full(n, j, np.float32) for j in range(10)}
        pq.write_table(
            pa.table(columns), tmp_path / name, n, use_dictionary=False, compression="zstd"
        )
    names = [str(tmp_path / name) for name in ("warm", "whole")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STREAM, *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 50  # of 100; it takes about 20
