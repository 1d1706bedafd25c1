"""What cannot be a matrix of numbers is refused, with a sentence that says what to do."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from close import assert_close
from tensors import as_tensor, tensors_of

from gramian.cli.outputs.messages import messages_on_stderr
from gramian.data import (
    Complement,
    Standardized,
    Subset,
    as_rows,
    as_table,
    check_finite,
    convert,
    read_targets,
    write_table,
)
from gramian.data.formats.parquet_file import TEXT_BATCH_BYTES, TEXT_BATCH_ROWS, ParquetFile
from gramian.data.rows.file_stamp import FileStamp

CASES: dict[str, tuple[Any, type[Exception], str]] = {
    "1-D array": (np.zeros(3), ValueError, r"1-D array of 3.*reshape\(-1, 1\)"),
    "1-D list": ([1.0, 2.0], ValueError, "1-D"),
    "series": (pd.Series([1.0, 2.0]), ValueError, "1-D"),
    "1-D sparse": (scipy.sparse.coo_array(np.ones(3)), ValueError, "1-D"),
    "number": (np.float64(1), ValueError, r"shape \(\)"),
    "3-D": (np.zeros((2, 2, 2)), ValueError, r"shape \(2, 2, 2\)"),
    "no rows": (np.zeros((0, 3)), ValueError, "0 rows"),
    "no columns": (np.zeros((3, 0)), ValueError, "0 columns"),
    "empty frame": (pd.DataFrame({"a": []}), ValueError, "0 rows"),
    "empty table": (pa.table({"a": pa.array([], pa.float32())}), ValueError, "0 rows"),
    "empty sparse": (scipy.sparse.csr_array((0, 3)), ValueError, "0 rows"),
    "object": (np.array([[1, "a"]], dtype=object), TypeError, "object.*astype"),
    "text": (np.array([["a", "b"]]), TypeError, "must be numbers"),
    "dates": (np.zeros((2, 2), "M8[s]"), TypeError, "must be numbers"),
    "longdouble": (np.zeros((2, 2), np.longdouble), TypeError, "must be numbers"),
    "complex": (np.zeros((2, 2), complex), ValueError, "complex data not supported"),
    "complex sparse": (scipy.sparse.csr_array(np.ones((2, 2)) * 1j), ValueError, "complex"),
    "masked": (np.ma.masked_equal(np.zeros((2, 2)), 0), TypeError, "filled"),
    "text column": (
        pd.DataFrame({"size": [1.0], "city": ["Rome"], "day": pd.to_datetime(["2020-01-01"])}),
        TypeError,
        r"city \(.*\), day \(datetime64",
    ),
    "categories": (pd.DataFrame({"c": pd.Categorical(["a"])}), TypeError, r"c \(category\)"),
    "sparse frame": (
        pd.DataFrame({"c": pd.arrays.SparseArray([0.0, 1.0])}),
        TypeError,
        r"sparse\.to_coo",
    ),
    "arrow text": (
        pa.table({"x": [1.0], "city": ["Rome"]}),
        TypeError,
        r"city \(string\).*columns=",
    ),
    "arrow categories": (
        pa.table({"c": pa.array(["a"]).dictionary_encode()}),
        TypeError,
        r"c \(dictionary",
    ),
    "arrow nested": (pa.table({"c": [{"x": 1}]}), TypeError, r"c \(struct"),
    "same name twice": (
        pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]),
        ValueError,
        "several columns named a",
    ),
    "generator": ((i for i in range(3)), TypeError, "type generator"),
    "nothing": (None, TypeError, "NoneType"),
    "csv": ("data.csv", ValueError, "gramian convert data.csv data.parquet"),
    "unknown file": (
        Path("data.xyz"),
        ValueError,
        "data.xyz: expected a name ending in .feather, .npy, .parquet, .duckdb, or a folder of ",
    ),
    "missing npy": ("nowhere/x.npy", FileNotFoundError, "there is no file nowhere/x.npy"),
    "missing parquet": ("nowhere/x.parquet", FileNotFoundError, "there is no file"),
}


@pytest.mark.parametrize("name", CASES)
def test_as_rows_says_what_is_wrong(name: str) -> None:
    x, kind, sentence = CASES[name]
    with pytest.raises(kind, match=sentence):
        as_rows(x)


@pytest.mark.parametrize("name", ["1-D array", "complex"])
def test_a_tensor_is_refused_as_its_array(name: str) -> None:
    x, kind, sentence = CASES[name]
    with pytest.raises(kind, match=sentence):
        as_rows(as_tensor(x))


@pytest.mark.parametrize("size", [0, 5, 90, 200])
def test_a_cut_npy_file_is_named(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((10, 3)))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"x\.npy cannot be read.*cut off"):
        as_rows(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b", }", b", ("),  # Python sees a line that goes on
        (b"'<f8'", b"'<f8("),
        (b"(3, 2)", b"(3,-2)"),
        (b"(3, 2)", b"{3: 2}"),
        (b"'descr'", b"'descx'"),
        (b"'<f8'", b"7 + 7"),
        (b"False", b"[[[[["),
    ],
)
def test_a_damaged_npy_header_is_named(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    with pytest.raises(ValueError, match=r"x\.npy cannot be read.*damaged"):
        as_rows(path)


def test_npy_of_objects(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([["a", 1]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        as_rows(tmp_path / "x.npy")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_cut_parquet_file_is_named(tmp_path: Path, share: float) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(1000.0)}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read.*cut off.*again"):
        as_rows(path)


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.random.default_rng(0).normal(size=5000)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    damaged = bytearray(path.read_bytes())
    damaged[4:2000] = bytes(1996)
    path.write_bytes(damaged)
    rows = as_rows(path)  # the footer is whole
    for read in (lambda: list(rows.blocks(100)), lambda: rows.take(np.array([3]))):
        with pytest.raises(ValueError, match=r"x\.parquet cannot be read"):
            read()


@pytest.fixture(params=["convert", "write_table"])
def checksummed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of random numbers, uncompressible, as this package writes them."""
    x = np.random.default_rng(0).standard_normal((500, 2))
    if request.param == "convert":
        np.save(tmp_path / "x.npy", x)
        convert(tmp_path / "x.npy", tmp_path / "x.parquet", dtype="float64")
    else:
        write_table(tmp_path / "x.parquet", {"0": x[:, 0], "1": x[:, 1]})
    return tmp_path / "x.parquet"


def test_a_flipped_bit_in_a_page_is_found(checksummed: Path) -> None:
    whole, expected = checksummed.read_bytes(), as_rows(checksummed).take(np.arange(500))
    first = whole.find(expected[0, 0].tobytes())
    assert first > 0
    for at in (first, first + 77, first + 3000):
        damaged = bytearray(whole)
        damaged[at] ^= 4
        checksummed.write_bytes(damaged)
        rows = as_rows(checksummed)
        reads = (
            lambda rows=rows: list(rows.blocks(100)),
            lambda rows=rows: rows.take(np.arange(500)),
            lambda: [read_targets(checksummed, name) for name in "01"],
            lambda: convert(checksummed, checksummed.with_suffix(".csv")),
        )
        for read in reads:
            with pytest.raises(ValueError, match=r"x\.parquet cannot be read as Parquet.*CRC"):
                read()


@pytest.mark.parametrize("seed", range(3))
def test_mutants_of_a_checksummed_file_are_refused_or_read_the_same(
    checksummed: Path, seed: int
) -> None:
    whole, rng = checksummed.read_bytes(), np.random.default_rng(seed)
    expected = as_rows(checksummed).take(np.arange(500))
    for _ in range(20):
        damaged, at = bytearray(whole), int(rng.integers(len(whole)))
        damaged[at : at + 8] = rng.bytes(len(damaged[at : at + 8]))
        checksummed.write_bytes(damaged)
        found = read_or_refused(checksummed)
        assert isinstance(found, np.ndarray) or "x.parquet" in found
        assert isinstance(found, str) or np.array_equal(found, expected)


def read_or_refused(path: Path) -> np.ndarray | str:
    try:
        return as_rows(path, columns=["0", "1"]).take(np.arange(500))
    except (ValueError, OSError) as error:
        return str(error)


def test_a_file_that_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(10.0)}), path)
    rows = as_rows(path)
    pq.write_table(pa.table({"a": np.arange(11.0)}), path)
    with pytest.raises(ValueError, match="has changed"):
        list(rows.blocks(100))


def test_files_of_different_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet and .*0\.parquet differ.*int64.*double"):
        as_rows(tmp_path)


def test_a_directory_without_parquet(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"contains no \*\.parquet"):
        as_rows(tmp_path)


def test_parquet_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.float32())}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet has 0 rows"):
        as_rows(tmp_path / "x.parquet")


@pytest.mark.parametrize("columns", [["a", "z"], ["z"]])
def test_a_missing_column_is_named(tmp_path: Path, columns: list[str]) -> None:
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    frame.to_parquet(tmp_path / "x.parquet")
    for x in (frame, pa.Table.from_pandas(frame), tmp_path / "x.parquet"):
        with pytest.raises(ValueError, match="no column z; it has a, b"):
            as_rows(x, columns=columns)


@pytest.mark.parametrize("columns", [["a", "a"], []])
def test_columns_named_twice_or_not_at_all(tmp_path: Path, columns: list[str]) -> None:
    table = pa.table({"a": [1.0], "b": [2.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    for x in (table, tmp_path / "x.parquet"):
        with pytest.raises(ValueError, match=r"twice|0 columns"):
            as_rows(x, columns=columns)


def parts(x: np.ndarray, folder: Path) -> list[Any]:
    pq.write_table(pa.table(dict(zip("abc", x.T, strict=True))), folder / "x.parquet")
    frame = pd.DataFrame(x, columns=list("abc"))
    return [x, *tensors_of(x), frame, scipy.sparse.csr_array(x), folder / "x.parquet"]


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "1 NaN"), (np.inf, "1 inf"), (-np.inf, "first is -inf")]
)
def test_check_finite_names_the_place(tmp_path: Path, value: float, word: str) -> None:
    x = np.ones((40, 3))
    x[17, 1] = value
    for data in parts(x, tmp_path):
        rows = as_rows(data)
        column = "column 1" if rows.feature_names is None else "column 'b'"
        with pytest.raises(ValueError, match=f"{word}.*row 17, {column}"):
            check_finite(rows)


def test_check_finite_counts(tmp_path: Path) -> None:
    x = np.ones((40, 3))
    x[[17, 30], 1], x[35] = np.nan, np.inf
    for data in parts(x, tmp_path):
        with pytest.raises(ValueError, match=r"^Z contains 2 NaN and 3 inf.*row 17"):
            check_finite(as_rows(data), what="Z")


def test_check_finite_passes_finite_data(tmp_path: Path) -> None:
    for data in parts(np.full((40, 3), 1e300), tmp_path):
        check_finite(as_rows(data))


@pytest.mark.parametrize("ints", ["Int64", "Int8", "boolean", "Float32", "int64[pyarrow]"])
def test_missing_values_become_nan(ints: str) -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, 0], dtype=ints), "b": [1.0, 2.0, 3.0]})
    got = as_rows(frame).take(np.arange(3))
    expected = np.array([[1, 1], [np.nan, 2], [0, 3]], dtype=got.dtype)
    assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_a_column_of_nothing_becomes_nan() -> None:
    rows = as_rows(pa.table({"a": pa.nulls(2), "b": pa.array([1, None], pa.int16())}))
    assert rows.dtype == np.float32
    with pytest.raises(ValueError, match="3 NaN"):
        check_finite(rows)


def test_sparse_rows_are_not_centered() -> None:
    rows, ones = as_rows(scipy.sparse.csr_array(np.eye(3))), np.ones(3, np.float64)
    with pytest.raises(ValueError, match="cannot be centered"):
        Standardized(rows, ones, ones)


@pytest.mark.parametrize(("mean", "scale"), [([0.0], [1.0]), ([0.0, 0.0], [1.0, 0.0])])
def test_standardisation_that_does_not_fit(mean: list[float], scale: list[float]) -> None:
    tensors = (np.array(v, dtype=np.float64) for v in (mean, scale))
    with pytest.raises(ValueError, match=r"features, but|above zero"):
        Standardized(as_rows(np.ones((4, 2))), *tensors)


@pytest.mark.parametrize("index", [[], [4], [-1]])
def test_a_subset_of_rows_that_are_not_there(index: list[int]) -> None:
    with pytest.raises((ValueError, IndexError)):
        Subset(as_rows(np.ones((4, 2))), np.array(index, dtype=np.int64))


@pytest.mark.parametrize("index", [[3, 1], [1, 1]])
def test_a_sequential_source_wants_increasing_rows(tmp_path: Path, index: list[int]) -> None:
    pq.write_table(pa.table({"a": np.arange(5.0)}), tmp_path / "x.parquet")
    part = Subset(as_rows(tmp_path / "x.parquet"), np.array(index))
    with pytest.raises(ValueError, match=r"strictly increasing.*gramian convert"):
        list(part.blocks(2))
    assert part.take(np.array([0, 1])).ravel().tolist() == index


@pytest.mark.parametrize("index", [[4], [-1], [2, 1], [1, 1], [0, 1, 2, 3]])
def test_rows_that_cannot_be_left_out(index: list[int]) -> None:
    with pytest.raises((ValueError, IndexError), match=r"increasing|leaves none|0 \.\. 3"):
        Complement(as_rows(np.ones((4, 2))), np.array(index))


LARGE = 2**60 + np.arange(4) * 3 + 1
WHOLE: dict[str, tuple[Any, str]] = {
    "array": (np.stack([np.arange(4), LARGE], axis=1), "1"),
    "unsigned": (np.full((4, 1), 2**64 - 1, np.uint64), "0"),
    "the largest": (np.full((4, 1), 2**63 - 1, np.int64), "0"),
    "negative": (-LARGE[:, None], "0"),
    "whole": (LARGE[:, None], "0"),
    "sparse": (scipy.sparse.csr_array(np.stack([np.arange(4), LARGE], axis=1)), "1"),
    "frame": (pd.DataFrame({"x": np.ones(4), "id": LARGE}), "'id'"),
    "nullable": (pd.DataFrame({"id": pd.array([*LARGE[:3].tolist(), None], "Int64")}), "'id'"),
    "table": (pa.table({"x": np.ones(4), "id": LARGE}), "'id'"),
    "dictionary": (pa.table({"id": pa.array(LARGE).dictionary_encode()}), "'id'"),
    "decimals": (pa.table({"d": pa.array([Decimal(10) ** 20 + 1] * 4)}), "'d'"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_that_float64_rounds_are_followed_by_a_warning(name: str) -> None:
    data, column = WHOLE[name]
    for rows in (data, *(tensors_of(data) if name == "whole" else [])):
        with pytest.warns(
            UserWarning, match=rf"column {column} holds whole numbers beyond 2\*\*53"
        ):
            list(as_rows(rows).blocks(2))


def test_such_numbers_of_a_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": LARGE}), tmp_path / "x.parquet")
    with pytest.warns(UserWarning, match="column 'id' holds whole numbers"):
        as_rows(tmp_path / "x.parquet").take(np.array([1, 2]))


@pytest.mark.parametrize(
    "data",
    [
        np.array([[2**53], [-(2**53)], [2**60], [3 * 2**61]]),
        10**9 * np.arange(1_700_000_000, 1_700_000_004)[:, None],  # seconds, in nanoseconds
        LARGE[:, None].astype(np.float64),
        np.full((4, 1), 2**63, np.uint64),
    ],
)
def test_whole_numbers_that_float64_holds_are_not(data: np.ndarray) -> None:
    for part, block in as_rows(data).blocks(2):
        assert [int(x) for x in block[:, 0]] == [int(x) for x in data[part, 0]]


def arrow_array(kind: pa.DataType, buffers: list[bytes | None], length: int = 3) -> pa.Array:
    """Return an array as a file with a flipped bit gives it: Arrow checks nothing."""
    held = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(kind, length, held)


def offsets(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes()


CODES = arrow_array(pa.int8(), [None, bytes([0, 1, 2])])
DAMAGED_ARRAYS: dict[str, pa.Array] = {
    "an offset beyond the texts": arrow_array(pa.string(), [None, offsets(0, 9, 2, 4), b"abcd"]),
    "a decreasing offset": arrow_array(pa.string(), [None, offsets(0, 3, 2, 4), b"abcd"]),
    "no UTF-8": arrow_array(pa.string(), [None, offsets(0, 1, 2, 4), b"ab\xff\xfe"]),
    "an index of no category": pa.DictionaryArray.from_arrays(CODES, ["a", "b"], safe=False),
    "an index of no number": pa.DictionaryArray.from_arrays(CODES, [1.0, 2.0], safe=False),
}


@pytest.mark.parametrize("name", DAMAGED_ARRAYS)
@pytest.mark.parametrize("way", ["file", "stream", "table"])
def test_arrow_data_with_a_flipped_bit_are_refused(name: str, way: str, tmp_path: Path) -> None:
    table = pa.table({"x": DAMAGED_ARRAYS[name], "y": [1.0, 2.0, 3.0]})
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write(table)
    source = {"file": path, "stream": table.to_reader(), "table": table}[way]
    with pytest.raises(ValueError, match=r"damaged.*Arrow reports"):
        list(as_table(source).batches(["x"], 10))


def test_rows_of_damaged_categories_of_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"damaged.*Arrow reports"):
        as_rows(pa.table({"x": DAMAGED_ARRAYS["an index of no number"]}))


def test_all_blocks_of_a_column_are_one_warning_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = as_rows(pa.table({"id": LARGE}))
    for _ in range(2):  # of two commands each has its own
        with messages_on_stderr():
            list(rows.blocks(1))
            list(rows.blocks(3))
    assert capsys.readouterr().err.count("'id' holds whole numbers") == 2


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy"])
def test_a_touched_file_is_refused_and_the_reason_is_said(suffix: str, tmp_path: Path) -> None:
    """Its size is the same, and so may be its bytes, but only all of them could say so."""
    path = tmp_path / f"x.{suffix}"
    write_table(path, {"x": np.arange(9.0), "y": np.arange(9.0)})
    table = as_table(path)
    os.utime(path, (1, 1))
    words = (
        r"modification time is now 1970-01-01 00:00:01\.000\+00:00: it was written again, or "
        r"touched.*start again, and do not write, touch or sync the file until the end"
    )
    with pytest.raises(ValueError, match=words):
        list(table.batches(table.names, 9))


def test_long_texts_of_a_small_parquet_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(300.0), "text": ["a" * 100_000] * 300}), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"column 'text' have 100,004 bytes on average"):
        list(as_table(path).batches(["x", "text"], 300))
    (batch,) = as_table(path).batches(["x"], 300)
    assert batch.num_rows == 300


@pytest.mark.parametrize("row", [0, 5, 40, 999])
def test_one_long_text_is_read_in_any_row_of_a_parquet_file(row: int, tmp_path: Path) -> None:
    path, texts = tmp_path / "x.parquet", ["a", "b"] * 500
    texts[row] = "c" * (3 << 20)
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    read = pa.Table.from_batches(as_table(path).batches(["text"], 300))
    assert read["text"].cast(pa.string()).to_pylist() == texts


@pytest.mark.parametrize("row", [0, 39])
def test_the_mean_length_of_refused_texts_is_of_the_rows_that_it_names(
    row: int, tmp_path: Path
) -> None:
    path, texts = tmp_path / "x.parquet", ["a"] * 40
    texts[row] = "c" * (3 << 20)
    pq.write_table(pa.table({"text": texts}), path)
    read = 32 if row == 0 else 40
    with pytest.raises(ValueError, match=f"bytes on average over {read} of 40 rows") as caught:
        list(as_table(path).batches(["text"], 40))
    mean = int(str(caught.value).split(" bytes")[0].split()[-1].replace(",", ""))
    assert mean == pytest.approx((3 << 20) / read, abs=8)  # with the offsets of Arrow


def test_long_texts_behind_short_ones_are_decoded_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["a"] * 5000 + ["b" * 2000] * 20_000}), path)
    file = ParquetFile(path, FileStamp.of(path), (25_000,))
    assert max(batch.nbytes for batch in file.batches(["text"], 25_000)) < 2010 * TEXT_BATCH_ROWS


def test_texts_are_decoded_in_batches_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [f"{i:03}" + "a" * 50_000 for i in range(30)] * 80  # 120 MB of texts
    pq.write_table(pa.table({"text": texts}), path)
    sizes = [
        batch.num_rows
        for batch in ParquetFile(path, FileStamp.of(path), (2400,)).batches(["text"], 2400)
    ]
    assert sum(sizes) == 2400
    assert max(sizes) * 50_000 < 1.1 * TEXT_BATCH_BYTES
