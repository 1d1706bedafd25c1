"""Rows on a Dask cluster of processes on this machine."""

from __future__ import annotations

import contextvars
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from close import assert_close

from gramian import KernelPCA, KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.data import RowSource, Sum, as_rows
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator
from gramian.solvers import Falkon

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

from distributed.comm import CommClosedError  # noqa: E402

from gramian.data.dask import DaskRows, DaskTable, remote_columns  # noqa: E402
from gramian.data.dask.connect import connection  # noqa: E402

pytestmark = [
    pytest.mark.slow,  # processes of their own
    pytest.mark.filterwarnings("ignore:stopped after:sklearn.exceptions.ConvergenceWarning"),
]

N, D, PARTS = 6000, 4, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32)
Y = (np.sin(X[:, 0]) + X[:, 1] + 0.05 * RNG.standard_normal(N)).astype(np.float32)
W = (1 + RNG.random(N)).astype(np.float32)
SIDE = np.where(Y > 0, "up", "down")
NAMES = [f"x{j}" for j in range(D)]
FRAME = pd.DataFrame(X, columns=NAMES)
NEW = FRAME[:100]
SETTINGS: dict[str, Any] = {
    "lengthscale": 2.0, "landmarks": 150, "penalty": 1e-5, "solver": "falkon", "random_state": 0,
    "max_iter": 30,
}  # fmt: skip


def cluster(workers: int) -> Any:
    dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster(2) as made, distributed.Client(made) as found:
        yield found


@pytest.fixture(scope="module")
def other() -> Iterator[Any]:
    """Give a client of workers that tests may kill: others take their place."""
    with cluster(2) as made, distributed.Client(made, set_as_default=False) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of files of different lengths."""
    path = tmp_path_factory.mktemp("lake")
    cuts = [0, 700, 1900, 3000, 3001, 5000, N]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        columns = {name: X[start:stop, j] for j, name in enumerate(NAMES)}
        more = {"y": Y[start:stop], "w": W[start:stop], "side": SIDE[start:stop]}
        table = pa.table({**columns, **more})
        pq.write_table(table, path / f"part{number}.parquet")
    return path


@pytest.fixture(params=[False, True], ids=["read", "kept"])
def rows(client, folder, request) -> DaskRows:
    return DaskRows.open(folder, NAMES, client=client, keep=request.param)


def test_rows_are_those_of_the_files(rows):
    assert (rows.shape, rows.dtype, rows.feature_names) == ((N, D), np.float32, tuple(NAMES))
    assert rows.remote
    index = np.array([5999, 0, 3000, 3000, 2])
    assert np.array_equal(rows.take(index), X[index])
    blocks = list(rows.blocks(900))
    assert [part.start for part, _ in blocks] == [0, 700, 1600, 1900, 2800, 3000, 3001, 3901, 4801,
                                                  5000, 5900]  # fmt: skip
    assert np.array_equal(np.concatenate([block for _, block in blocks]), X)
    y = rows.column("y")
    np.testing.assert_array_equal(np.asarray(y), Y)
    assert (y.shape, y.dtype, y.kind) == ((N,), np.float32, np.float32)
    assert np.array_equal(y[index], Y[index])


def test_products_are_those_of_rows_here(rows):
    kernel, z = Gaussian(2.0), X[:50]
    there = KernelOperator(kernel, rows, z)
    here = KernelOperator(kernel, X, z)
    v, u = (
        np.random.default_rng(0).standard_normal((50, 2)),
        np.random.default_rng(0).standard_normal((N, 1)),
    )
    assert_close(there @ v, here @ v, rtol=0, atol=1e-4)
    assert_close(there.normal(v), here.normal(v), rtol=1e-5, atol=1e-2)
    assert_close(there.T @ u, here.T @ u, rtol=1e-5, atol=1e-2)


def test_bits_do_not_depend_on_where_rows_are_kept(client, folder):
    found = [
        KernelRidge("gaussian", **SETTINGS).fit(rows, rows.column("y"))
        for keep in (False, True)
        for rows in [DaskRows.open(folder, NAMES, client=client, keep=keep)]
    ]
    assert np.array_equal(found[0].model_.coef, found[1].model_.coef)
    rows = DaskRows.open(folder, NAMES, client=client)
    assert found[0].score(rows, rows.column("y")) == pytest.approx(found[0].score(FRAME, Y))
    # The solver of remote rows: local ones would have a factor of all rows.
    # With a penalty at which float32 sums in another order change predictions by less than 1e-4.
    smooth = SETTINGS | {"penalty": 1e-3}
    remote = KernelRidge("gaussian", **smooth).fit(rows, rows.column("y"))
    here = KernelRidge("gaussian", **smooth).set_params(solver=Falkon("landmarks")).fit(X, Y)
    np.testing.assert_allclose(remote.predict(NEW), here.predict(X[:100]), atol=2e-4)
    assert found[0].score(FRAME, Y) > 0.99


def test_bits_do_not_depend_on_workers(client, folder):
    rows = DaskRows.open(folder, NAMES, client=client)
    expected = KernelRidge("gaussian", **SETTINGS).fit(rows, Y).model_.coef
    with cluster(1) as made, distributed.Client(made, set_as_default=False) as alone:
        rows = DaskRows.open(folder, NAMES, client=alone)
        found = KernelRidge("gaussian", **SETTINGS).fit(rows, Y).model_.coef
    assert np.array_equal(found, expected)


class KillWorker:
    """Kill a worker after an iteration, or once the first cell is solved."""

    def __init__(self, client: distributed.Client, iteration: int = -1) -> None:
        self.pid = next(iter(client.run(os.getpid).values()))
        self.iteration, self.done = iteration, False

    def __call__(self, problem: object, state: object) -> None:
        if state.iteration == self.iteration:
            self.part(1, 1)

    def stage(self, name: str) -> None:
        pass

    def part(self, done: int, total: int) -> None:
        if not self.done:
            os.kill(self.pid, signal.SIGKILL)
            self.done = True


def test_bits_do_not_depend_on_a_worker_that_is_killed(client, other, folder):
    expected = KernelRidge("gaussian", **SETTINGS).fit(
        DaskRows.open(folder, NAMES, client=client, keep=True), Y
    )
    rows = DaskRows.open(folder, NAMES, client=other, keep=True)
    kill = KillWorker(other, iteration=2)
    found = KernelRidge("gaussian", callbacks=[kill], **SETTINGS).fit(rows, Y)
    assert kill.done
    assert found.n_iter_ > 2
    assert np.array_equal(found.model_.coef, expected.model_.coef)


def test_the_client_need_not_be_the_default(client, folder, monkeypatch):
    """Futures that are waited for in the loop of another client cannot be gathered again."""
    rows = DaskRows.open(folder, NAMES, client=client)
    monkeypatch.setattr("distributed.client._global_clients", {})

    def found() -> np.ndarray:
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()
        return rows.take(np.arange(3))

    # that the fixture's is the current one is a matter of the context
    assert np.array_equal(contextvars.Context().run(found), X[:3])


A_CLIENT = """
import sys, warnings
import distributed
from gramian import KernelRidge
from gramian.data.dask import DaskRows

warnings.simplefilter("ignore")
with distributed.Client(sys.argv[1]) as client:
    rows = DaskRows.open(sys.argv[2], ["x0", "x1"], client=client, keep=True)
    print("there", flush=True)
    while True:
        KernelRidge(landmarks=100, max_iter=3, tol=0.0).fit(rows, rows.column("y"))
"""


def test_a_client_that_is_killed_leaves_nothing(folder):
    with cluster(2) as made:
        command = [sys.executable, "-c", A_CLIENT, made.scheduler_address, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == "there\n"
                wait_until(lambda: any(t.prefix.name == "fold_part" for t in tasks_of(made)))
                assert held_by(made) > 0
            finally:
                other.kill()  # leaving the block waits for the client, which never ends by itself
        wait_until(lambda: not tasks_of(made) and held_by(made) == 0)


def tasks_of(made: Any) -> list[Any]:
    return list(made.scheduler.tasks.values())


def held_by(made: Any) -> int:
    """Return the results that workers have, asked by a client of its own."""
    with distributed.Client(made, set_as_default=False) as client:
        return sum(client.run(lambda dask_worker: len(dask_worker.data)).values())


def wait_until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_rows_that_are_kept_stay_where_they_are(folder):
    """On this machine; work stealing and the memory manager would move them."""
    with connection(2, patience="7s", keep=True) as client:
        rows = DaskRows.open(folder, NAMES)
        assert rows.workers.patience == 7
        y = rows.column("y")
        kept = [part.source for part in (*rows.parts, *y.rows.parts)]
        distributed.wait(kept)
        before = client.who_has(kept)
        assert len(before) == 2 * PARTS
        KernelRidge("gaussian", **SETTINGS).fit(rows, y)
        came = client.run(lambda dask_worker: [
            key for one in dask_worker.transfer_incoming_log for key in one["keys"]
        ])  # fmt: skip
        assert client.who_has(kept) == before
    everything = [str(key) for keys in came.values() for key in keys]
    assert everything  # vectors, and results to merge
    assert not [key for key in everything if key.startswith(("kept", "numbers"))]
    assert dask.config.get("gramian.keep", None) is None


def test_a_pass_is_a_few_messages(client, folder, monkeypatch):
    rows = DaskRows.open(folder, NAMES, client=client)
    graphs, send = [], client._send_to_scheduler

    def counted(message: dict[str, Any]) -> None:
        if message["op"] == "update-graph":
            graphs.append(message)
        send(message)

    monkeypatch.setattr(client, "_send_to_scheduler", counted)
    total = rows.fold(Sum(np.sum), size=500)
    assert float(total) == pytest.approx(float(X.sum()), abs=0.1)
    assert len(graphs) == 2  # the parts, and one merge of all


def test_without_workers_a_pass_ends(folder):
    with cluster(1) as made, distributed.Client(made, set_as_default=False) as other:
        rows = DaskRows.open(folder, NAMES, client=other)
        rows.workers.patience = 2.0
        made.scale(0)
        deadline = time.monotonic() + 60
        while other.scheduler_info()["workers"] and time.monotonic() < deadline:
            time.sleep(0.1)
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="no worker has been available for 2 s"):
            rows.take(np.arange(5))
        assert time.monotonic() - started < 30


class Poison(RowSource):
    """Rows that end the process that reads them."""

    def __init__(self, rows: RowSource) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype

    def blocks(self, size: int) -> Iterator[Any]:
        if self.shape[0] == 1:  # the part of one row
            os._exit(1)
        yield from self.rows.blocks(size)

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.rows.take(index)


def test_a_part_that_ends_workers_is_named(folder):
    with cluster(2) as made, distributed.Client(made, set_as_default=False) as other:
        rows = DaskRows.open(folder, NAMES, client=other).map_rows(Poison)
        with pytest.raises(MemoryError, match=r"part3.parquet of 1 rows( or .*)? ended 4 workers"):
            rows.map(xp.copy, size=1000)


def test_workers_with_other_engines_are_counted(client, folder, monkeypatch):
    rows = DaskRows.open(folder, NAMES, client=client)
    answers = {"tcp://a": "native", "tcp://b": "triton", "tcp://c": "native"}
    monkeypatch.setattr(client, "run", lambda ask, **_: answers)
    with pytest.raises(ValueError, match="workers differ: 2 have 'native'; 1 have 'triton'; set"):
        rows.call_at_rows(os.getpid)


def test_a_large_tensor_is_sent_once(client, folder):
    rows = DaskRows.open(folder, NAMES, client=client)
    K = KernelOperator(Gaussian(2.0), rows, X[:2000])
    v = np.random.default_rng(0).standard_normal((2000, 1))
    K.normal(v)
    sent = set(rows.workers.sent)
    assert len(sent) >= 1
    K.normal(v + 1)
    assert len(set(rows.workers.sent) - sent) <= 1  # v itself
    value, used = rows.workers.value(Gaussian(2.0), 6)
    assert not used
    assert len(value) < 1000


def test_collections(client):
    import dask.array as da
    import dask.dataframe as dd

    X_da, y_da = da.from_array(X, chunks=(1500, D)), da.from_array(Y, chunks=1500)
    of_array = KernelRidge("gaussian", **SETTINGS).fit(X_da, y_da)
    frame = dd.from_pandas(FRAME.assign(fare=Y), npartitions=4)
    of_frame = KernelRidge("gaussian", **SETTINGS).fit(frame[NAMES], frame["fare"])
    np.testing.assert_allclose(of_array.predict(X_da), of_array.predict(X), atol=1e-5)
    assert of_frame.feature_names_in_.tolist() == NAMES
    assert of_frame.score(FRAME, Y) > 0.99
    labels = np.where(Y > 0, "up", "down")
    classes = KernelRidgeClassifier("gaussian", **SETTINGS).fit(X_da, labels)
    assert classes.score(X_da, labels) > 0.95
    F = KernelPCA(kernel="gaussian", n_components=3, lengthscale=2.0, landmarks=100, random_state=0)
    assert F.fit(X_da).transform(X[:10]).shape == (10, 3)


def test_targets_stay_with_the_rows(client, folder, monkeypatch):
    rows = DaskRows.open(folder, NAMES, client=client)
    sent: list[int] = []
    beside = rows.workers.beside

    def weighed(numbers: Any, parts: int) -> Any:
        sent.append(len(numbers))
        return beside(numbers, parts)

    monkeypatch.setattr(rows.workers, "beside", weighed)
    there = KernelRidge("gaussian", **SETTINGS, standardize=False)
    there.fit(rows, rows.column("y"), sample_weight=rows.column("w"))
    assert not sent
    sent_ones = KernelRidge("gaussian", **SETTINGS, standardize=False)
    sent_ones.fit(rows, Y, sample_weight=W)
    assert sent
    np.testing.assert_allclose(there.predict(NEW), sent_ones.predict(NEW), atol=1e-4)


def test_labels_stay_with_the_rows(client, folder):
    for keep in (False, True):
        rows = DaskRows.open(folder, NAMES, client=client, keep=keep)
        y = rows.column("side")
        assert np.asarray(y).tolist() == SIDE.tolist()
        est = KernelRidgeClassifier("gaussian", **SETTINGS).fit(rows, y)
        assert est.classes_.tolist() == ["down", "up"]
        assert est.score(rows, y) == pytest.approx(est.score(FRAME, SIDE), abs=1e-3)
        assert est.score(rows, y) > 0.95


def test_collections_stay_where_they_are(client, monkeypatch):
    import dask.array as da
    import dask.dataframe as dd

    frame = dd.from_pandas(FRAME.assign(fare=Y, w=W, side=SIDE), npartitions=4)
    given = KernelRidge("gaussian", **SETTINGS)
    monkeypatch.setattr("gramian.data.RemoteColumns.gather", None)
    monkeypatch.setattr("gramian.data.RemoteColumns.__array__", None)
    given.fit(frame[NAMES], frame["fare"], sample_weight=frame["w"])
    assert given.score(frame[NAMES], frame["fare"]) == pytest.approx(given.score(FRAME, Y))
    labelled = KernelRidgeClassifier("gaussian", **SETTINGS).fit(frame[NAMES], frame["side"])
    assert labelled.score(frame[NAMES], frame["side"]) > 0.95
    two = da.from_array(np.stack([Y, Y**2], axis=1), chunks=(1500, 2))
    both = KernelRidge("gaussian", **SETTINGS).fit(da.from_array(X, chunks=(1500, D)), two)
    assert both.dual_coef_.shape == (150, 2)


def test_cells_are_tasks(client, other, folder):
    given = {
        "kernel": "gaussian", "lengthscale": 2.0, "penalty": 1e-4, "cells": 800, "random_state": 0,
    }  # fmt: skip
    rows = DaskRows.open(folder, NAMES, client=client)
    est = KernelRidge(**given).fit(rows, rows.column("y"))
    assert est.model_.cells.cells.count > 6
    here = KernelRidge(**given).fit(X, Y)
    np.testing.assert_allclose(est.predict(NEW), here.predict(X[:100]), atol=5e-3)
    assert est.score(rows, rows.column("y")) == pytest.approx(est.score(FRAME, Y), abs=1e-6)
    kept = DaskRows.open(folder, NAMES, client=client, keep=True)
    again = KernelRidge(**given).fit(kept, kept.column("y"))
    assert np.array_equal(again.model_.coef, est.model_.coef)
    rows = DaskRows.open(folder, NAMES, client=other)
    kill = KillWorker(other)
    lost = KernelRidge(callbacks=[kill], **given).fit(rows, rows.column("y"))
    assert kill.done
    assert np.array_equal(lost.model_.coef, est.model_.coef)


def test_parts_that_do_not_match(client):
    import dask.array as da

    rows, given = da.from_array(X, chunks=(1500, D)), KernelRidge("gaussian", **SETTINGS)
    one = given.fit(rows, da.from_array(Y, chunks=1500)).model_.coef
    other = given.fit(rows, da.from_array(Y, chunks=(700, 4000, 1300))).model_.coef
    assert np.array_equal(one, other)
    y = da.from_array(Y[:-1], chunks=1500)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        given.fit(rows, y)
    kept = DaskRows.of(rows, client=client)
    with pytest.raises(
        ValueError, match="X has 4 partitions of 6,000 rows, but y or sample_weight has"
    ):
        kept.fold(Sum(xp.copy), remote_columns(y), size=100)


def test_a_target_with_gaps_names_the_file(client, tmp_path):
    for name, value in (("a", 1.0), ("b", None)):
        table = pa.table({"x": [1.0, 2.0, 3.0], "y": [2.0, value, 5.0]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    rows = DaskRows.open(tmp_path, ["x"], client=client)
    with pytest.raises(ValueError, match=r"b.parquet: the target 'y' is missing"):
        rows.column("y")


def test_what_cannot_be_rows(client, folder):
    import dask.array as da

    with pytest.raises(
        ValueError, match=r"all features in one chunk, .*use X.rechunk\(\{1: -1\}\)"
    ):
        as_rows(da.from_array(X, chunks=(1000, 2)))
    with pytest.raises(TypeError, match="rows on a cluster cannot be pickled"):
        pickle.dumps(DaskRows.open(folder, NAMES, client=client))


def test_without_a_client_nothing_is_loaded(monkeypatch):
    import dask.array as da

    def missing() -> None:
        raise ValueError("No global client found")

    monkeypatch.setattr("distributed.default_client", missing)
    monkeypatch.setattr(da.Array, "__array__", None)
    with pytest.raises(ValueError, match="no Dask client: connect first"):
        KernelRidge("gaussian", **SETTINGS).fit(da.from_array(X, chunks=(1500, D)), Y)


class TestFolders:
    """A `DaskTable` and the name of a column."""

    def test_workers_read_a_folder(self, client, folder, monkeypatch):
        from gramian.data.formats.parquet import ParquetRows

        monkeypatch.setattr(ParquetRows, "blocks", None)  # not here
        table = DaskTable(folder, client=client)
        found = KernelRidge("gaussian", **SETTINGS).fit(table, "y", columns=NAMES)
        rows = DaskRows.open(folder, NAMES, client=client)
        expected = KernelRidge("gaussian", **SETTINGS).fit(rows, rows.column("y"))
        assert np.array_equal(found.model_.coef, expected.model_.coef)
        assert found.model_.target == ("y",)
        assert found.score(table) == pytest.approx(expected.score(FRAME, Y), abs=1e-5)
        np.testing.assert_allclose(found.predict(table), expected.predict(FRAME), atol=1e-5)

    def test_labels(self, client, tmp_path):
        pq.write_table(
            pa.table({"a": X[:, 0], "b": X[:, 1], "side": np.where(Y > 0, "up", "down")}),
            tmp_path / "one.parquet",
        )
        table = DaskTable(tmp_path, client=client)
        est = KernelRidgeClassifier("gaussian", **SETTINGS).fit(table, "side")
        assert est.score(table, "side") > 0.9
        with pytest.raises(TypeError, match="columns that are not numbers: side"):
            KernelRidge("gaussian", **SETTINGS).fit(table, "a")

    def test_gaps_are_refused(self, client, tmp_path):
        missing = pa.table({"a": [1.0, None, 2.0], "y": [1.0, 2.0, 3.0]})
        pq.write_table(missing, tmp_path / "one.parquet")
        table = DaskTable(tmp_path, client=client)
        with pytest.raises(ValueError, match="column 'a'"):
            KernelRidge("gaussian", **SETTINGS | {"landmarks": 2}).fit(table, "y")

    def test_a_path_that_workers_cannot_see(self, client, folder, monkeypatch):
        rows = DaskRows.open(folder, NAMES, client=client)
        with pytest.raises(ValueError, match=r"cannot see .*/nowhere: the path must be the same"):
            rows.workers.check(str(folder / "nowhere"))

    def test_a_worker_that_is_lost_while_it_is_asked_stops_nothing(
        self, client, folder, monkeypatch
    ):
        run = client.run

        def losing(*arguments: Any, on_error: str = "raise") -> dict[str, Any]:
            """Run a function while one worker of the client is lost."""
            lost = CommClosedError("Stream is closed")
            if on_error == "raise":
                raise lost
            found = run(*arguments, on_error=on_error)
            return found if on_error == "ignore" else found | {"tcp://127.0.0.1:9": lost}

        monkeypatch.setattr(client, "run", losing)
        rows = DaskRows.open(folder, NAMES, client=client)
        assert np.array_equal(rows.take(np.arange(3)), X[:3])

    def test_settings_that_no_cluster_has_are_refused_first(self, client, folder):
        table = DaskTable(folder, client=client)
        with pytest.raises(ValueError, match="uses all rows as centers"):
            KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3, solver="pcg").fit(
                table, "y", columns=NAMES
            )
