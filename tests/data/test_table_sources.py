"""`as_table`: one table from everything that has named columns, and words for what has none."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from tensors import tensors_of

from gramian.data import Table, as_table, convert, is_table, target_column, write_with_columns
from gramian.data.formats import format_to_write

N = 50
PLACES = ["Rome", "Oslo", None, "Bern", "Lima"]
COLUMNS = {
    "x": (np.arange(N) / 8).tolist(),
    "n": list(range(N)),
    "place": PLACES * (N // 5),
    "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(N)],
}
WHOLE = pa.table(COLUMNS)


class Stream:
    """What has no more than a stream, which can be read once."""

    def __init__(self) -> None:
        self._reader: Any = WHOLE.to_reader(max_chunksize=7)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader, self._reader = self._reader, None
        return reader.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS, index=range(N, 2 * N)),
    "pandas with Arrow types": lambda: WHOLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda: pl.DataFrame(COLUMNS).lazy().filter(pl.col("n") >= 0),
    "Arrow": lambda: WHOLE,
    "long texts": lambda: WHOLE.set_column(2, "place", WHOLE["place"].cast(pa.large_string())),
    "a batch": lambda: WHOLE.combine_chunks().to_batches()[0],
    "a reader": lambda: WHOLE.to_reader(max_chunksize=7),
    "DuckDB": lambda: duckdb.from_arrow(WHOLE),
    "a stream": Stream,
    "a table": lambda: as_table(WHOLE),
}


def read(table: Table, size: int = 7) -> pa.Table:
    return pa.Table.from_batches(table.batches(table.names, size))


@pytest.mark.parametrize("name", SOURCES)
def test_one_table_from_every_source(name: str) -> None:
    x = SOURCES[name]()
    assert is_table(x)
    table = as_table(x)
    assert table.schema.types == [pa.float64(), pa.int64(), pa.string(), pa.date32()]
    for size in (7, N):
        assert read(table, size).to_pydict() == COLUMNS
    taken = table.take(["place", "n"], np.array([3, 3, 0]))
    assert taken.to_pydict() == {"place": ["Bern", "Bern", "Rome"], "n": [3, 3, 0]}


def test_is_table_reads_and_computes_nothing() -> None:
    def fail(batch: Any) -> Any:
        raise AssertionError("it was read")

    lazy = pl.DataFrame(COLUMNS).lazy().map_batches(fail)
    stream = Stream()
    assert is_table(lazy)
    assert is_table(stream)
    assert is_table(duckdb.sql("select error('it was read') as a"))
    assert len(as_table(stream)) == N
    assert is_table("nowhere.csv")
    assert is_table(Path("nowhere.csv"))


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((3, 2)),
        *tensors_of(np.zeros((3, 2), np.float32)),
        scipy.sparse.eye_array(3),
        [[1.0]],
        None,
        pd.Series([1.0]),
        pl.Series([1.0]),
        pa.chunked_array([[1.0]]),
        pa.array([1.0]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_has_no_named_columns(x: Any) -> None:
    assert not is_table(x)
    with pytest.raises(TypeError, match=r"has no named columns; expected a path"):
        as_table(x)


def test_a_stream_that_is_no_table() -> None:
    class Column:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.chunked_array([[1.0]]).__arrow_c_stream__(requested_schema)

    with pytest.raises(ValueError, match="the table cannot be read as a stream of Arrow"):
        as_table(Column())


def test_labels_and_categories_of_pandas() -> None:
    sizes = pd.Categorical(["small", "large"], ["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame({7: [1.5, None], "size": sizes, ("a", 1): [True, False]})
    table = as_table(frame, "houses")
    assert table.names == ("7", "size", "('a', 1)")
    assert table.where == "houses"
    assert table.schema.field("size").type.ordered
    column = read(table)["size"].combine_chunks()
    assert column.dictionary.to_pylist() == ["small", "medium", "large"]
    assert read(table)["7"].null_count == 1


def test_sparse_columns_of_pandas_are_filled() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 2.0])})
    assert read(as_table(frame)).to_pydict() == {"a": [0.0, 2.0]}


def test_the_index_that_pandas_stored_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9])
    frame.to_parquet(tmp_path / "x.parquet")
    for x in (frame, pa.Table.from_pandas(frame), tmp_path / "x.parquet"):
        assert as_table(x).names == ("a",)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (pd.DataFrame({"a": [1, "b"]}), r"the table: column 'a' holds .* types.*\(int and str\)"),
        (pd.DataFrame({"a": [1j]}), "column 'a' holds .*complex128"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the table has several columns named a:"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "several columns named 1"),
        (pa.table([[1], [2]], ["a", "a"]), "several columns named a"),
        (pd.DataFrame({"a": []}), "the table has 0 rows of 1 columns"),
        (pd.DataFrame(index=[1]), "rows of 0 columns"),
    ],
)
def test_frames_that_are_refused(x: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence) as refusal:
        as_table(x)
    assert "\n" not in str(refusal.value)


# --- files ---------------------------------------------------------------------------------------


def test_row_numbers_that_are_not_there(tmp_path: Path) -> None:
    pq.write_table(WHOLE, tmp_path / "x.parquet", row_group_size=7)
    table = as_table(tmp_path / "x.parquet")
    assert not table.random_access
    for index in ([N], [-1, 3]):
        with pytest.raises(IndexError, match=r"must be in 0 \.\. 49"):
            table.take(["x"], np.array(index))


def test_partitions(tmp_path: Path) -> None:
    places = {"Rome": (1, "b"), "Oslo %2F": (2, "a"), "__HIVE_DEFAULT_PARTITION__": (3, "c")}
    for place, (number, plain) in places.items():
        folder = tmp_path / f"place={place}" / f"number={number}" / plain
        folder.mkdir(parents=True)
        pq.write_table(WHOLE.select(["x"]).slice(0, 2), folder / "0.parquet")
    hidden = tmp_path / "_old" / "place=Bern"
    hidden.mkdir(parents=True)
    pq.write_table(WHOLE, hidden / "0.parquet")
    table = as_table(tmp_path)
    assert table.schema.names == ["x", "place", "number"]
    found = read(table, 3).to_pydict()
    assert found["number"] == [2, 2, 1, 1, 3, 3] or found["number"] == [2, 2, 1, 1, 3, 3][::-1]
    by_number = dict(zip(found["number"], found["place"], strict=True))
    assert by_number == {1: "Rome", 2: "Oslo /", 3: None}
    assert table.take(["number"], np.array([5, 0]))["number"].to_pylist() == [
        found["number"][5],
        found["number"][0],
    ]


def test_partitions_that_do_not_fit(tmp_path: Path) -> None:
    for folder in ("a=1", "b=2"):
        (tmp_path / folder).mkdir()
        pq.write_table(WHOLE, tmp_path / folder / "0.parquet")
    with pytest.raises(
        ValueError, match=r"in folders with the same keys, but .* has b and .* has a"
    ):
        as_table(tmp_path)
    (tmp_path / "set" / "x=1").mkdir(parents=True)
    pq.write_table(WHOLE, tmp_path / "set" / "x=1" / "0.parquet")
    with pytest.raises(
        ValueError, match="has a column x, which is also a key in the name of its folder"
    ):
        as_table(tmp_path / "set")


def test_files_that_differ(tmp_path: Path) -> None:
    pq.write_table(WHOLE, tmp_path / "0.parquet")
    pq.write_table(WHOLE.drop_columns("day"), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"differ in columns or types: none against day \(date32"):
        as_table(tmp_path)


def test_categories_through_feather(tmp_path: Path) -> None:
    """Those of a batch are put behind those before: a file has one list for each column."""
    parts = [["b", "a"], ["c", "a", None], ["b", "d"]]
    meant = [value for part in parts for value in part]
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("kind", kind), ("n", pa.int64())])
    for suffix in ("feather", "arrow"):
        path = tmp_path / f"x.{suffix}"
        with closing(format_to_write(path).writer(path, schema)) as writer:
            for part in parts:
                column = pa.array(part).dictionary_encode().cast(kind)
                writer.write(pa.record_batch([column, [0] * len(part)], schema=schema))
        found = read(as_table(path), 4)
        assert found.schema.field("kind").type == kind
        assert found["kind"].to_pylist() == meant
        assert convert(path, tmp_path / "y.csv") == 7
        assert read(as_table(tmp_path / "y.csv"))["kind"].to_pylist() == meant


def test_feather_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.feather").write_bytes(b"ARROW1 and no more")
    with pytest.raises(ValueError, match=r"x\.feather cannot be read as an Arrow"):
        as_table(tmp_path / "x.feather")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        as_table(tmp_path / "none.feather")


def test_an_empty_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"x\.npy has 0 rows of 2 columns"):
        as_table(tmp_path / "x.npy")


def test_lists_are_not_written_as_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [["x"], ["y"]]}), tmp_path / "x.parquet")
    with pytest.raises(TypeError, match=r"column 'a' holds list.*cannot be written as text"):
        convert(tmp_path / "x.parquet", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "tsv.gz", "csv.bz2", "csv.zst", "txt"])
def test_text_is_written_as_its_name_says(tmp_path: Path, suffix: str) -> None:
    pq.write_table(WHOLE, tmp_path / "x.parquet")
    convert(tmp_path / "x.parquet", tmp_path / f"x.{suffix}")
    assert read(as_table(tmp_path / f"x.{suffix}")).to_pydict() == COLUMNS
    start = (tmp_path / f"x.{suffix}").read_bytes()[:8]
    packed = {"gz": b"\x1f\x8b", "bz2": b"BZh", "zst": b"\x28\xb5\x2f\xfd"}
    mark = b"\t" if suffix == "tsv" else b","
    assert packed.get(suffix.split(".")[-1], mark) in start


# --- targets and outputs -------------------------------------------------------------------------


def test_targets_of_a_table() -> None:
    codes = pa.array(["no", "yes"] * (N // 2)).dictionary_encode()
    table = as_table(WHOLE.append_column("code", codes))
    assert target_column(table, "n").dtype == np.int64
    assert target_column(table, ["x", "n"]).shape == (N, 2)
    assert target_column(table, "code").tolist() == ["no", "yes"] * (N // 2)
    with pytest.raises(ValueError, match="the table: the target 'place' is missing in some rows"):
        target_column(table, "place")
    with pytest.raises(TypeError, match=r"the target 'day' holds dates or times \(date32"):
        target_column(table, "day")
    with pytest.raises(ValueError, match=r"the table has no column pace; .* did you mean place"):
        target_column(table, "pace")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_columns_beside_predictions(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramian.data.local.named_table._COPIED_ROWS", 7)
    out = tmp_path / f"p.{suffix}"
    write_with_columns(out, as_table(WHOLE), ["day", "place"], {"prediction": np.arange(N) / 16})
    found = read(as_table(out)).to_pydict()
    assert list(found) == ["day", "place", "prediction"]
    assert found["place"] == COLUMNS["place"]
    assert found["day"] == COLUMNS["day"]
    assert found["prediction"] == (np.arange(N) / 16).tolist()


@pytest.mark.parametrize(
    ("name", "keep", "sentence"),
    [
        ("p.npy", ["n"], r"p\.npy keeps no names and no text"),
        ("p.csv", ["m"], "the table has no column m; it has x, n, place, day"),
        ("p.csv", ["n", "n"], "two columns named n; name each column once"),
        ("p.csv", ["x"], "two columns named x; .*rename it in the table"),
    ],
)
def test_columns_that_cannot_be_kept(
    tmp_path: Path, name: str, keep: list[str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        write_with_columns(tmp_path / name, as_table(WHOLE), keep, {"x": np.zeros(N)})
    assert not list(tmp_path.iterdir())
