"""What every table format must do: a new one is tested here by being registered."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gramian.data import convert, open_rows, read_targets, write_table
from gramian.data.formats import (
    TableFormat,
    WritableFormat,
    endings,
    format_of,
    format_to_write,
    formats,
    is_table_name,
)

N = 23
NAMES = ("a", "b", "y")
X = np.random.default_rng(0).standard_normal((N, 3))
WRITABLE = [name for name in formats if issubclass(formats[name], WritableFormat)]


def named(name: str) -> tuple[str, ...]:
    return NAMES if formats[name].named else ("0", "1", "2")


@pytest.fixture
def path(name: str, tmp_path: Path) -> Path:
    """Give a table of a format, written in two batches."""
    path = tmp_path / f"x{formats[name].suffixes[0]}"
    whole = pa.table(dict(zip(NAMES, X.T, strict=True))).to_batches()[0]
    with closing(format_to_write(path).writer(path, whole.schema)) as writer:
        writer.write(whole.slice(0, 9))
        writer.write(whole.slice(9))
    return path


def values(table: pa.Table) -> np.ndarray:
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


@pytest.mark.parametrize("name", tuple(formats))
def test_it_is_told_by_its_suffixes(name: str) -> None:
    for suffix in formats[name].suffixes:
        assert suffix == suffix.lower()
        assert suffix in endings()
        for file in (f"x{suffix}", f"some/folder/X{suffix.upper()}"):
            assert type(format_of(file)) is formats[name]
            assert is_table_name(file)
        assert not is_table_name(suffix.removeprefix("."))
        for bare in (suffix, f"some/folder/{suffix}"):  # a hidden file without a suffix
            assert not is_table_name(bare)
            with pytest.raises(ValueError, match="cannot tell the format of"):
                format_of(bare)


@pytest.mark.parametrize("name", tuple(formats))
def test_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"none{formats[name].suffixes[0]}"
    with pytest.raises(FileNotFoundError):
        formats.make(name).schema(path)


@pytest.mark.parametrize("name", WRITABLE)
def test_schema(name: str, path: Path) -> None:
    schema = formats.make(name).schema(path)
    assert schema.names == list(named(name))
    assert set(schema.types) == {pa.float64()}


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("chosen", [(0, 1, 2), (2, 0), (1,)])
def test_batches_have_the_columns_asked_for(name: str, path: Path, chosen: tuple) -> None:
    found, names = formats.make(name), [named(name)[j] for j in chosen]
    whole = found.schema(path)
    schema = pa.schema([whole.field(each) for each in names])
    table = found.table(path)
    assert table.schema.equals(whole)
    assert (table.where, len(table)) == (str(path), N)
    for size in (1, 7, 1000):
        batches = list(table.batches(names, size))
        assert all(batch.schema.equals(schema) for batch in batches)
        assert [batch.num_rows for batch in batches[:-1]] == [size] * (len(batches) - 1)
        np.testing.assert_array_equal(values(pa.Table.from_batches(batches, schema)), X[:, chosen])
    index = np.array([20, 3, 3, 9, 0])
    taken = pa.Table.from_batches([table.take(names, index)], schema)
    np.testing.assert_array_equal(values(taken), X[np.ix_(index, chosen)])


@pytest.mark.parametrize("name", WRITABLE)
def test_rows_and_targets(name: str, path: Path) -> None:
    a, b, y = named(name)
    every = open_rows(path)
    np.testing.assert_array_equal(every.map(lambda block: block, size=5), X)
    assert every.feature_names == (NAMES if formats[name].named else None)
    two = open_rows(path, [b, a]).map(lambda block: block, size=5)
    np.testing.assert_array_equal(two, X[:, [1, 0]])
    np.testing.assert_array_equal(read_targets(path, y), X[:, 2])
    np.testing.assert_array_equal(read_targets(path, [y, a]), X[:, [2, 0]])
    with pytest.raises(ValueError, match="no column price"):
        read_targets(path, "price")


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("other", WRITABLE)
def test_conversion_from_and_to_every_other(name: str, other: str, path: Path) -> None:
    target = path.with_name(f"other{formats[other].suffixes[0]}")
    assert convert(path, target, dtype="float64") == N
    np.testing.assert_array_equal(open_rows(target).map(lambda b: b, size=9), X)


@pytest.mark.parametrize("name", WRITABLE)
def test_predictions_of_numbers_and_of_labels(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"p{formats[name].suffixes[0]}"
    column = "prediction" if formats[name].named else "0"
    for predicted in (X[:, 0], np.array(["Rome", "Bern"])):
        write_table(path, {"prediction": predicted})
        np.testing.assert_array_equal(read_targets(path, column), predicted)


class Ledger(TableFormat):
    """A folder of that name, which is only read: what it has to state, and no more."""

    suffixes = (".ledger",)

    def opens(self, path: Path) -> bool:
        return self.has_suffix(path.name)

    def load(self, path: Path) -> pa.Table:
        return pa.table({"a": pa.array([3, 4], pa.int8())})


def test_a_folder_with_a_suffix_is_of_that_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_classes", dict(formats._classes))
    folder = tmp_path / "x.ledger"
    folder.mkdir()
    assert type(format_of(folder)) is formats["parquet"]
    formats.register("ledger")(Ledger)
    assert type(format_of(folder)) is Ledger
    assert read_targets(folder, "a").tolist() == [3, 4]
    assert type(format_of(tmp_path)) is formats["parquet"]


def test_a_format_that_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_classes", dict(formats._classes) | {"ledger": Ledger})
    path = tmp_path / "x.ledger"
    for act in (lambda: write_table(path, {}), lambda: convert(path.with_suffix(".csv"), path)):
        with pytest.raises(ValueError, match=r"x\.ledger cannot be written.*\.csv, .*\.npy"):
            act()
