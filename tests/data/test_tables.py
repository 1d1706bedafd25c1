"""Tables for the command line: columns, targets, predictions, conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gramian.data import (
    as_rows,
    convert,
    open_rows,
    read_targets,
    sample_path,
    table_schema,
    write_table,
)

TABLE = pa.table(
    {
        "a": pa.array([0.5, 1.5, 2.5, 3.5], pa.float64()),
        "b": pa.array([1, 2, 3, 4], pa.int64()),
        "city": ["Rome", "Oslo", "Rome", "Bern"],
        "y": pa.array([1.0, 2.0, 4.0, 8.0], pa.float32()),
    }
)
NUMBERS = TABLE.drop_columns(["city"])


def saved(folder: Path, suffix: str, table: pa.Table = TABLE) -> Path:
    path = folder / f"table{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix == ".npy":
        np.save(path, np.stack([c.to_numpy() for c in table.columns], axis=1))
    else:
        pq.write_table(table, path, row_group_size=3)
    return path


def names(suffix: str) -> list[str]:
    return ["0", "1", "2"] if suffix == ".npy" else ["a", "b", "y"]


@pytest.fixture(params=[".csv", ".npy", ".parquet"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_names_of_columns(tmp_path: Path, suffix: str) -> None:
    assert table_schema(saved(tmp_path, suffix, NUMBERS)).names == list(names(suffix))


def test_columns_that_cannot_be_chosen(tmp_path: Path, suffix: str) -> None:
    path, (a, b, y) = saved(tmp_path, suffix, NUMBERS), names(suffix)
    with pytest.raises(ValueError, match=f"has no column price; it has {a}, {b}, {y}"):
        read_targets(path, "price")


def test_rows_and_targets(tmp_path: Path, suffix: str) -> None:
    path, (a, b, y) = saved(tmp_path, suffix, NUMBERS), names(suffix)
    rows = open_rows(path, [b, a])
    assert rows.dtype == np.float64
    assert rows.take(np.array([3, 0])).tolist() == [[4, 3.5], [1, 0.5]]
    assert read_targets(path, y).tolist() == [1, 2, 4, 8]
    assert read_targets(path, [y, b]).tolist() == [[1, 1], [2, 2], [4, 3], [8, 4]]


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_targets_keep_their_type(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, kind)
    assert read_targets(path, "b").dtype == np.int64
    assert read_targets(path, "y").dtype.kind == ("f" if kind == ".parquet" else "i")
    assert read_targets(path, "city").tolist() == ["Rome", "Oslo", "Rome", "Bern"]
    assert read_targets(path, "city").dtype.kind == "U"
    with pytest.raises(TypeError, match="several targets must all be numbers, but city holds text"):
        read_targets(path, ["b", "city"])
    with pytest.raises(TypeError, match=r"city \(string\)"):
        open_rows(path, ["a", "city"])


def test_encoded_boolean_and_text_targets(tmp_path: Path) -> None:
    table = TABLE.append_column("code", TABLE["city"].dictionary_encode())
    path = saved(tmp_path, ".parquet", table.append_column("yes", [[True, False, True, True]]))
    assert read_targets(path, "code").tolist() == ["Rome", "Oslo", "Rome", "Bern"]
    assert read_targets(path, "yes").tolist() == [True, False, True, True]
    assert read_targets(path, "yes").dtype == np.bool_
    np.save(tmp_path / "labels.npy", np.array(["x", "yy"]))
    assert read_targets(tmp_path / "labels.npy", "0").tolist() == ["x", "yy"]


def test_targets_of_a_directory(tmp_path: Path) -> None:
    for name, part in (("1", TABLE.slice(2)), ("0", TABLE.slice(0, 2)), ("2", TABLE.slice(0, 0))):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    assert read_targets(tmp_path, "b").tolist() == [1, 2, 3, 4]
    assert read_targets(tmp_path, "city").tolist() == ["Rome", "Oslo", "Rome", "Bern"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None, 2.0], "'t' is missing"),
        (["a", None, "b"], "'t' is missing"),
        (["a", "", "b"], "'t' is missing"),
        ([1.0, np.nan, np.inf], r": 2 of 3, first in row 1 "),
        ([["a"], ["b"], ["c"]], "neither numbers nor text, but list"),
        ([None, None, None], "'t' is missing"),
    ],
)
def test_targets_that_cannot_be_learned(tmp_path: Path, values: list, sentence: str) -> None:
    pq.write_table(pa.table({"t": values}), tmp_path / "x.parquet")
    with pytest.raises((ValueError, TypeError), match=sentence):
        read_targets(tmp_path / "x.parquet", "t")


def test_a_label_that_is_missing_from_a_csv_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,t\n1,p\n2,\n3,q\n")
    with pytest.raises(ValueError, match="the target 't' is missing in some rows"):
        read_targets(tmp_path / "x.csv", "t")


def test_no_target_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="target must name at least one column"):
        read_targets(saved(tmp_path, ".parquet"), [])


def test_predictions_are_written_and_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_table(path, {"y": np.array([1.5, 2.5])})
    assert read_targets(path, "0" if suffix == ".npy" else "y").tolist() == [1.5, 2.5]
    write_table(path, {"y": np.array([1.5, 2.5]), "z": np.array([0.0, -1.0])})
    assert open_rows(path).take(np.arange(2)).tolist() == [[1.5, 0], [2.5, -1]]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_predicted_labels(tmp_path: Path, kind: str) -> None:
    write_table(tmp_path / f"out{kind}", {"y": np.array(["Rome", "Bern"])})
    assert read_targets(tmp_path / f"out{kind}", "y").tolist() == ["Rome", "Bern"]


def test_what_is_expected_is_what_would_do(tmp_path: Path) -> None:
    known = (
        r"a name ending in \.csv, \.tsv, \.csv\.gz, \.tsv\.gz, \.csv\.bz2, \.csv\.zst, \.feather, "
        r"\.npy, \.parquet"
    )
    read = r", \.duckdb, \.xlsx, \.jsonl, \.sqlite"
    with pytest.raises(ValueError, match=known + read + r", or a folder of \.parquet files$"):
        table_schema(tmp_path / "x")
    with pytest.raises(ValueError, match=known + "$"):
        write_table(tmp_path / "x", {})


def test_unknown_formats(tmp_path: Path) -> None:
    for act in (table_schema, lambda p: write_table(p, {}), lambda p: convert(p, "x.npy")):
        with pytest.raises(
            ValueError, match=r"expected a name ending in \.csv, .*\.npy, .*\.parquet"
        ):
            act(tmp_path / "x.xls")


@pytest.mark.parametrize("target", [".csv", ".npy", ".parquet"])
def test_convert_keeps_the_numbers(tmp_path: Path, suffix: str, target: str) -> None:
    source, out = saved(tmp_path, suffix, NUMBERS), tmp_path / f"out{target}"
    assert convert(source, out) == 4
    expected = np.stack([c.to_numpy() for c in NUMBERS.columns], axis=1)
    np.testing.assert_array_equal(open_rows(out).take(np.arange(4)), expected)
    if target == ".npy":
        assert np.load(out).dtype == np.float64
    elif suffix != ".npy":
        assert table_schema(out).names == ["a", "b", "y"]


@pytest.mark.parametrize(
    ("dtype", "a", "y"),
    [("float32", "float", "float"), ("float64", "double", "double"), ("keep", "double", "float")],
)
def test_convert_chooses_the_float_type(tmp_path: Path, dtype: str, a: str, y: str) -> None:
    source = saved(tmp_path, ".parquet")
    convert(source, tmp_path / "out.parquet", dtype=dtype)
    schema = table_schema(tmp_path / "out.parquet")
    assert [str(t) for t in schema.types] == [a, "int64", "string", y]
    convert(saved(tmp_path, ".parquet", NUMBERS), tmp_path / "out.npy", dtype=dtype)
    wide = np.float32 if dtype == "float32" else np.float64
    assert np.load(tmp_path / "out.npy").dtype == wide


def test_convert_of_more_rows_than_one_batch(tmp_path: Path) -> None:
    n = (1 << 21) // 2 + 17  # one batch of two columns, and some
    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2) % 1000
    np.save(tmp_path / "x.npy", x)
    assert convert(tmp_path / "x.npy", tmp_path / "x.parquet") == n
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 2
    assert convert(tmp_path / "x.parquet", tmp_path / "back.npy") == n
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy", mmap_mode="r"), x)
    assert as_rows(tmp_path / "back.npy").shape == (n, 2)


@pytest.mark.parametrize("held", [1 << 15, 1 << 26])
def test_convert_of_csv_whose_types_show_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Types of a long text are guessed from its beginning; what comes later must not be lost."""
    monkeypatch.setattr("gramian.data.formats.csv.reader.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("gramian.data.formats.csv.table.HELD_BYTES", held)
    monkeypatch.setattr("gramian.data.formats.csv.table._GUESS_BYTES", 1 << 14)
    n = 4_000
    lines = [f"{i % 7},,{i % 5}" for i in range(n)] + ["0.5,1.25,05"]
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c", *lines]))
    assert convert(tmp_path / "x.csv", tmp_path / "x.parquet") == n + 1
    table = pq.read_table(tmp_path / "x.parquet")
    assert [str(t) for t in table.schema.types] == ["double", "double", "string"]
    assert table.slice(n).to_pylist() == [{"a": 0.5, "b": 1.25, "c": "05"}]
    assert table.slice(3, 1).to_pylist() == [{"a": 3, "b": None, "c": "3"}]


@pytest.mark.parametrize(
    ("columns", "dtype", "target", "sentence"),
    [
        ({"a": [1e300]}, "float32", ".parquet", "'a' has numbers too large for float32"),
        ({"a": [1e300]}, "float32", ".npy", "'a' has numbers too large for float32"),
        ({"a": [2**24 + 1]}, "float32", ".npy", "'a' has integers beyond 16,777,216"),
        ({"a": [-(2**60)]}, "float64", ".npy", "'a' has integers beyond"),
        ({"a": ["x"]}, "float32", ".npy", r"a \(string\)"),
        ({"a": [1.0]}, "float16", ".npy", "dtype must be one of float32, float64, keep"),
        ({"a": pa.array([], pa.float32())}, "keep", ".npy", "0 rows"),
    ],
)
def test_convert_refuses_to_lose(
    tmp_path: Path, columns: dict, dtype: str, target: str, sentence: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    (tmp_path / f"out{target}").write_text("the old file")
    with pytest.raises((ValueError, TypeError), match=sentence):
        convert(tmp_path / "x.parquet", tmp_path / f"out{target}", dtype=dtype)
    assert (tmp_path / f"out{target}").read_text() == "the old file"
    assert len(list(tmp_path.iterdir())) == 2


def test_infinity_is_no_overflow(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [np.inf, -np.inf]}), tmp_path / "x.parquet")
    convert(tmp_path / "x.parquet", tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [[np.inf], [-np.inf]]


def test_convert_onto_itself_or_a_directory(tmp_path: Path) -> None:
    path = saved(tmp_path, ".parquet")
    for target in (path, tmp_path):
        with pytest.raises(ValueError, match="a file other than the source"):
            convert(path, target)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"x\.csv is empty; expected a line of column names"),
        ("a,b\n1\n", r"x\.csv: row 2 \(the header line is row 1\) has 1 fields"),
    ],
)
def test_a_csv_that_is_none(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    for read in (
        lambda: open_rows(tmp_path / "x.csv"),
        lambda: convert(tmp_path / "x.csv", tmp_path / "y.parquet"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read()


def test_a_csv_that_is_not_there() -> None:
    for act in (open_rows, table_schema, lambda p: convert(p, "x.npy")):
        with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.csv"):
            act("nowhere.csv")


@pytest.mark.parametrize(("name", "n"), [("california_housing", 20640), ("energy", 768)])
def test_samples(name: str, n: int) -> None:
    path = sample_path(name)
    *features, last = [name for name in table_schema(path).names if name != "target"]
    assert (len(features), last) == (8, "split")
    assert as_rows(path).shape[0] == n
    split = read_targets(path, "split")
    assert set(split.tolist()) == {0, 1}


def test_the_split_of_california_housing_is_the_one_described() -> None:
    split = read_targets(sample_path("california_housing"), "split")
    n = len(split)
    test = np.random.default_rng(0).permutation(n)[: round(0.2 * n)]
    assert sorted(test) == np.flatnonzero(split).tolist()


def test_an_unknown_sample() -> None:
    with pytest.raises(
        ValueError, match="no sample data set 'iris'; choose one of california_housing"
    ):
        sample_path("iris")
