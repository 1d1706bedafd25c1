"""Folders as other programs write them: workers and this machine read the same rows of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import in_threads

from gramian import KernelRidge
from gramian.data import as_rows, as_table
from gramian.data.formats.parquet import ParquetRows

distributed = pytest.importorskip("distributed")

from gramian.data.dask import DaskRows, DaskTable, remote_columns  # noqa: E402
from gramian.data.dask.connect import connection  # noqa: E402
from gramian.data.dask.workers import connected_client  # noqa: E402

pytestmark = pytest.mark.slow  # workers of its own

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with in_threads(2) as found:
        yield found


def write(folder: Path, number: int, names: str, rows: int = 50, kind: Any = np.float64) -> None:
    table = {name: RNG.standard_normal(rows).astype(kind) for name in names}
    pq.write_table(pa.table(table), folder / f"{number}.parquet")


@pytest.mark.parametrize("keep", [False, True])
def test_columns_go_by_their_names(client, tmp_path, keep):
    write(tmp_path, 0, "aby")
    write(tmp_path, 1, "bya")
    rows = DaskRows.open(tmp_path, client=client, keep=keep)
    assert rows.feature_names == ("a", "b", "y")
    every = np.arange(100)
    assert np.array_equal(rows.take(every), ParquetRows(tmp_path).take(every))


@pytest.mark.parametrize("moment", ["before the targets", "between passes"])
def test_a_file_that_changes_is_named(client, tmp_path, moment):
    """Workers compare each file with what was seen when the table was opened."""
    for number in range(2):
        write(tmp_path, number, "aby")
    with client.as_current():
        table = DaskTable(tmp_path)
        rows = table.rows(["a", "b"]) if moment == "between passes" else None
        write(tmp_path, 1, "aby")
        with pytest.raises(ValueError, match=r"1\.parquet has changed since it was opened: its"):
            table.remote_columns(["y"]) if rows is None else rows.take(np.arange(100))
        (tmp_path / "1.parquet").unlink()
        with pytest.raises((ValueError, FileNotFoundError), match=r"1\.parquet"):
            DaskTable.rows(table, ["a"])


@pytest.mark.parametrize("scheduler", ["lives", "is gone"])
def test_a_client_of_something_else_changes_nothing(tmp_path, scheduler):
    table = {name: RNG.standard_normal(50) for name in "aby"} | {"k": ["up", "down"] * 25}
    for number in range(2):
        pq.write_table(pa.table(table), tmp_path / f"{number}.parquet")
    model = KernelRidge(landmarks=20, lengthscale=1.0, penalty=1e-3, random_state=0)

    def coefficients() -> list[np.ndarray]:
        every = {"columns": None}, {"columns": ["a", "b"]}
        return [model.fit(tmp_path, "y", **more).model_.coef for more in every]

    expected = coefficients()
    with in_threads(1) as found:
        if scheduler == "is gone":
            found.cluster.close()
        assert distributed.default_client() is found
        assert type(as_rows(tmp_path, columns=["a", "b"])) is ParquetRows
        assert not as_table(tmp_path).remote
        assert all(map(np.array_equal, coefficients(), expected))


def test_a_connection_reads_folders_while_it_lasts(client, tmp_path):
    write(tmp_path, 0, "aby")
    with connection(client.scheduler.address) as asked, in_threads(1) as last:
        assert distributed.default_client() is last
        rows = [as_rows(tmp_path), as_table(tmp_path).rows(["a"])]
        assert [one.workers.client for one in rows] == [asked, asked]
        assert type(as_rows(tmp_path / "0.parquet")) is ParquetRows
    assert type(as_rows(tmp_path)) is ParquetRows


def test_a_table_of_a_folder_has_its_own_client(client, tmp_path):
    write(tmp_path, 0, "aby")
    with in_threads(1) as last:
        tables = DaskTable(str(tmp_path)), DaskTable(tmp_path, client=client)
        assert [table.rows(["a"]).workers.client for table in tables] == [last, client]
        assert [table.remote_columns(["y"]).rows.workers.client for table in tables] == [
            last,
            client,
        ]


def test_addresses_are_shown_without_secrets(monkeypatch):
    def refuse(address: str, **_more: Any) -> None:
        raise ValueError(f"no port in {address}")

    monkeypatch.setattr(distributed, "Client", lambda *_, **_more: contextlib.nullcontext())
    with (
        pytest.warns(UserWarning, match="scheduler at ws://host:8786 accepts connections"),
        connection("ws://me:SECRET@host:8786?key=SECRET"),
    ):
        pass
    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(ConnectionError, match="at ws://host:8786 within") as error:
        connection("ws://host:8786?key=SECRET").__enter__()
    assert "SECRET" not in str(error.value)


def test_files_without_rows_are_left_out(client, tmp_path):
    for number, rows in enumerate((0, 50, 0, 30)):
        write(tmp_path, number, "aby", rows)
    rows = DaskRows.open(tmp_path, ["a", "b"], client=client)
    assert (rows.shape, len(rows.parts)) == ((80, 2), 2)
    every = np.arange(80)
    assert np.array_equal(rows.take(every), ParquetRows(tmp_path, ["a", "b"]).take(every))
    assert rows.column("y").shape == (80,)


def test_a_folder_without_a_row(client, tmp_path):
    write(tmp_path, 0, "ab", 0)
    with pytest.raises(ValueError, match="has no rows"):
        DaskRows.open(tmp_path, client=client)


def test_files_that_differ_are_named(client, tmp_path):
    write(tmp_path, 0, "aby")
    write(tmp_path, 1, "abyc")
    with pytest.raises(ValueError, match=r"1\.parquet and .*0\.parquet differ in columns: a, b, y"):
        DaskRows.open(tmp_path, client=client)
    assert DaskRows.open(tmp_path, ["a", "y"], client=client).shape == (100, 2)
    write(tmp_path, 1, "aby", kind=np.float32)
    for columns in (None, ["a", "y"]):
        with pytest.raises(ValueError, match=r"differ in types: float32 and float64"):
            DaskRows.open(tmp_path, columns, client=client)


def test_columns_in_names_of_folders_are_refused(client, tmp_path):
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        write(tmp_path / f"year={year}", 0, "ab")
    with pytest.raises(ValueError, match="year is in the names of folders, which workers"):
        DaskRows.open(tmp_path, client=client)
    assert DaskRows.open(tmp_path, ["a"], client=client).shape == (100, 1)
    inside = DaskRows.open(tmp_path / "year=2024", client=client)  # it is the table then
    assert inside.feature_names == ("a", "b")
    assert DaskRows.open(tmp_path / "year=2024" / "0.parquet", client=client).shape == (50, 2)


def test_object_stores_are_refused(client):
    with pytest.raises(ValueError, match=r"s3://bucket/taxi is in an object store"):
        DaskRows.open("s3://bucket/taxi", client=client)


def test_an_asynchronous_client_is_refused(client, monkeypatch):
    monkeypatch.setattr(type(client), "asynchronous", True)
    with pytest.raises(ValueError, match="is asynchronous, but a fit waits for its passes"):
        connected_client(client)


def test_texts_with_gaps_are_counted(client):
    dd = pytest.importorskip("dask.dataframe")
    texts = pd.DataFrame({"y": np.array(["up", None, "down", None], dtype=object)})
    with pytest.raises(
        ValueError, match="the targets have 2 missing values in a partition of 4 rows"
    ):
        remote_columns(dd.from_pandas(texts, npartitions=1)["y"].astype(object).to_dask_array())
