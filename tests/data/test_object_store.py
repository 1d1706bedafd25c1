"""Tables on object stores: Parquet in pieces, other files copied, and what is not there."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import Store, store

from gramian.cli import main
from gramian.data import as_rows, as_table, convert
from gramian.data.local.remote_table import is_uri
from gramian.data.tables import PiecesTable
from gramian.model import load_model

N = 30_000
X = np.random.default_rng(0).normal(size=N)
WHOLE = pa.table({"a": X, "b": np.arange(N), "place": ["Rome", "Oslo"] * (N // 2)})


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    folder = tmp_path / "store" / "houses"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def s3(bucket: Path) -> Iterator[Store]:
    with store(bucket.parent) as running:
        yield running


def read(table: object) -> pa.Table:
    return pa.Table.from_batches(table.batches(table.names, 7000))  # type: ignore[attr-defined]


def test_parquet_is_read_in_pieces(bucket: Path, s3: Store) -> None:
    pq.write_table(WHOLE, bucket / "x.parquet", row_group_size=10_000, use_dictionary=["place"])
    table = as_table(s3.uri("houses/x.parquet"))
    assert isinstance(table.source, PiecesTable)
    assert table.where == "s3://houses/x.parquet"
    s3.asked.clear()
    assert read(table).equals(WHOLE)
    assert table.take(["b"], np.array([29_999, 5]))["b"].to_pylist() == [29_999, 5]
    size = (bucket / "x.parquet").stat().st_size
    assert all(f"bytes=0-{size - 1}" not in line for line in s3.asked)
    assert sum(line.startswith("GET") for line in s3.asked) > 3


@pytest.mark.parametrize(
    ("rows", "change"), [(WHOLE.slice(5), "bytes and now has"), (None, "it no longer exists")]
)
def test_an_object_that_changes_between_passes_is_named(
    rows: pa.Table | None, change: str, bucket: Path, s3: Store
) -> None:
    pq.write_table(WHOLE, bucket / "x.parquet")
    table = as_table(s3.uri("houses/x.parquet"))
    assert read(table).equals(WHOLE)
    (bucket / "x.parquet").unlink() if rows is None else pq.write_table(rows, bucket / "x.parquet")
    with pytest.raises(ValueError, match=rf"s3://houses/x\.parquet has changed .*{change}"):
        read(table)


def test_a_folder_with_partitions(bucket: Path, s3: Store) -> None:
    for year in (2019, 2020):
        (bucket / "set" / f"year={year}").mkdir(parents=True)
        pq.write_table(WHOLE.slice(0, 4), bucket / "set" / f"year={year}" / "0.parquet")
    (bucket / "set" / "_SUCCESS").write_text("")
    table = as_table(s3.uri("houses/set"))
    assert table.names == ("a", "b", "place", "year")
    assert table.column("year").to_pylist() == [2019] * 4 + [2020] * 4


def test_other_files_are_copied_once(
    bucket: Path, s3: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (bucket / "x.csv").write_text("a;place\n1,5;Rome\n2,25;Oslo\n")
    table = as_table(s3.uri("houses/x.csv"))
    assert table.where == "s3://houses/x.csv"
    for _ in range(2):
        assert read(table).to_pydict() == {"a": [1.5, 2.25], "place": ["Rome", "Oslo"]}
    assert sum(line.startswith("GET x.csv") for line in s3.asked) == 1
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    del table
    gc.collect()
    assert not list((tmp_path / "temporary").iterdir())


def test_a_copy_that_is_no_table_is_removed(
    bucket: Path, s3: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (bucket / "x.csv").write_text("a,b\n1,2,3\n")
    with pytest.raises(ValueError, match=r"x\.csv: row 2 .* has 3 fields"):
        as_table(s3.uri("houses/x.csv"))
    assert not list((tmp_path / "temporary").iterdir())


def test_convert_from_a_store(bucket: Path, s3: Store, tmp_path: Path) -> None:
    pq.write_table(WHOLE, bucket / "x.parquet")
    assert convert(s3.uri("houses/x.parquet"), tmp_path / "x.feather") == N
    assert read(as_table(tmp_path / "x.feather")).equals(WHOLE)


def test_what_is_not_there(bucket: Path, s3: Store) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file or folder s3://houses/none\.parquet$"):
        as_table(s3.uri("houses/none.parquet"))
    (bucket / "set").mkdir()
    (bucket / "set" / "x.txt").write_text("a")
    with pytest.raises(
        ValueError, match=r"folder s3://houses/set contains no \*\.parquet or \*\.pq"
    ):
        as_table(s3.uri("houses/set"))


def test_an_address_of_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match=r"ftp://houses/x\.csv cannot be reached.*the address"):
        as_table("ftp://reader:secret@houses/x.csv")


@pytest.mark.parametrize("read", [as_table, as_rows, load_model])
def test_errors_have_no_secrets(read: Callable[[str], object]) -> None:
    with pytest.raises((ValueError, OSError)) as caught:
        read("s3://reader:secret@houses/x.csv?endpoint_override=127.0.0.1:1&scheme=http")
    assert "s3://houses/x.csv" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "127.0.0.1:1&" not in str(caught.value)


def test_rows_of_an_address(bucket: Path, s3: Store) -> None:
    pq.write_table(WHOLE, bucket / "x.parquet")
    rows = as_rows(s3.uri("houses/x.parquet"), columns=["b", "a"])
    assert rows.take(np.array([7])).tolist() == [[7.0, X[7]]]


def test_an_address_of_this_machine(tmp_path: Path) -> None:
    pq.write_table(WHOLE, tmp_path / "x.parquet")
    assert read(as_table(f"file://{tmp_path}/x.parquet")).equals(WHOLE)


def test_the_command_line_takes_addresses(
    bucket: Path, s3: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It makes a path of each, which loses a slash."""
    pq.write_table(WHOLE.slice(0, 200), bucket / "x.parquet")
    data, model, out = s3.uri("houses/x.parquet"), tmp_path / "b.model", tmp_path / "p.csv"
    fit = ["fit", data, "--target", "b", "--landmarks", "20", "--out", str(model)]
    predict = ["predict", str(model), data, "--keep", "place", "--out", str(out)]
    for command in (fit, predict, ["convert", data, str(tmp_path / "x.tsv")]):
        assert main(command) == 0, capsys.readouterr().err
    assert as_table(out).column("place").to_pylist() == ["Rome", "Oslo"] * 100
    assert len(as_table(tmp_path / "x.tsv")) == 200
    capsys.readouterr()
    for form in ([], ["--json"]):
        assert main(["evaluate", str(model), data, *form]) == 0
        assert main(["fit", data, "--target", "none", "--out", str(model)]) == 2
    said = capsys.readouterr()
    assert said.out.count("s3://houses/x.parquet") == 2
    assert said.err.count("s3://houses/x.parquet") == 2
    assert "secret" not in said.out + said.err
    assert "endpoint_override" not in said.out + said.err


@pytest.mark.parametrize("kind", [str, Path])
def test_a_local_folder_may_be_named_like_the_start_of_an_address(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_uri(Path("run:/x.parquet"))
    Path("run:").mkdir()
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "run:" / "x.parquet")
    assert as_table(kind("run:/x.parquet")).num_rows == 2
