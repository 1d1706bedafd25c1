"""What workers hold after a pass that failed, was given up, or met a cluster started anew."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from clusters import in_threads

from gramian import KernelRidge
from gramian.data import ArrayRows, RowSource, Sum
from gramian.data.rows.transform import Blockwise
from gramian.data.rows.views import subset

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from dask.sizeof import sizeof  # noqa: E402

from gramian.data.dask import DaskRows  # noqa: E402
from gramian.data.dask.groups import bundles_of  # noqa: E402
from gramian.data.dask.workers import Workers  # noqa: E402

pytestmark = pytest.mark.slow  # workers of its own

N, D, PARTS = 800, 3, 8
X = np.random.default_rng(0).standard_normal((N, D))


@pytest.fixture
def client() -> Iterator[Any]:
    with in_threads(2) as found:
        yield found


@pytest.fixture
def started_anew() -> Iterator[Any]:
    """Give a client whose workers somebody starts again."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as made,
        distributed.Client(made) as found,
    ):
        yield found


def opened() -> DaskRows:
    return DaskRows.of(da.from_array(X, chunks=(N // PARTS, -1)))


def wait_until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        gc.collect()  # errors and their frames refer to each other
        time.sleep(0.05)


def raises(block: np.ndarray) -> np.ndarray:
    raise ArithmeticError("of a test")


def slow(block: np.ndarray) -> np.ndarray:
    time.sleep(0.5)
    return block.sum()


def test_an_error_in_a_task_leaves_nothing_with_the_workers(client):
    def fails() -> None:
        opened().fold(Sum(raises), size=50)

    with pytest.raises(ArithmeticError, match="of a test"):
        fails()
    tasks = client.cluster.scheduler.tasks
    wait_until(lambda: not tasks)


def test_ctrl_c_ends_the_tasks(client, monkeypatch):
    rows, wait = opened(), distributed.wait

    def interrupted(*given: Any, **more: Any) -> None:
        monkeypatch.setattr(distributed, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(distributed, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rows.fold(Sum(slow), size=50)
    begun = client.cluster.scheduler.tasks
    wait_until(lambda: len(begun) == PARTS)  # the partitions, which `rows` has
    assert float(rows.fold(Sum(np.sum), size=50)) == pytest.approx(X.sum())


def test_rows_that_are_read_outlive_a_cluster_started_anew(started_anew, tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = pa.table({name: X[:, j] for j, name in enumerate("aby")})
    for number in range(2):
        pq.write_table(table.slice(number * N // 2, N // 2), tmp_path / f"{number}.parquet")
    rows = DaskRows.open(tmp_path, ["a", "b"], keep=False)
    settings = {"lengthscale": 1.0, "landmarks": 600, "penalty": 1e-4, "random_state": 0}
    model = KernelRidge("gaussian", solver="falkon", **settings)  # of centers as large as are kept
    before = model.fit(rows, rows.column("y")).model_.coef
    started_anew.restart()
    assert np.array_equal(model.fit(rows, rows.column("y")).model_.coef, before)


def test_rows_that_were_kept_by_a_cluster_started_anew_are_gone(started_anew):
    rows = opened()
    started_anew.restart()
    with pytest.raises(ConnectionError, match="lost: the cluster was restarted"):
        rows.fold(Sum(np.sum), size=50)


class Shifted(Blockwise):
    """Rows plus numbers of 80 kB, most of which nobody needs."""

    def __init__(self, rows: RowSource, by: np.ndarray) -> None:
        super().__init__(rows)
        self.by = by

    def change(self, block: np.ndarray) -> np.ndarray:
        return block + self.by[0]


def test_what_changes_rows_is_sent_once(client):
    rows = opened().map_rows(partial(Shifted, by=np.ones(10_000, np.float64)))
    changes = [part.changes[0] for part in rows.parts]
    assert all(len(data) < 1000 for data, _, _ in changes)
    assert len({key for _, shared, _ in changes for key in shared}) == 1
    assert float(rows.fold(Sum(np.sum), size=50)) == pytest.approx(X.sum() + X.size)


def test_numbers_of_rows_that_are_left_are_sent_once(client):
    rows = DaskRows.of(da.from_array(np.repeat(X, 20, axis=0), chunks=(N * 20, -1)))
    some = rows.map_rows(subset, np.arange(0, N * 20, 2))
    ((_, _, sent),) = some.parts[0].changes
    assert isinstance(sent, distributed.Future)  # a task of its own, not a part of each
    assert float(some.fold(Sum(np.sum), size=500)) == pytest.approx(10 * X.sum())


def test_dask_sees_what_kept_rows_weigh():
    x = np.zeros((100, 3), np.float32)
    assert sizeof(x) == 1200
    assert sizeof(ArrayRows(x)) == 1200


def test_rows_are_kept_where_there_is_room(client, monkeypatch, tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "0.parquet")
    assert len(DaskRows.open(tmp_path, keep=True)) == N  # 12.8 kB
    monkeypatch.setattr("gramian.data.dask.workers.Workers.memory", lambda workers: [10_000] * 2)
    with pytest.raises(ValueError, match=r"rows of .* do not fit into 2 workers with"):
        DaskRows.open(tmp_path, keep=True)
    assert len(DaskRows.open(tmp_path, keep=False)) == N


@pytest.mark.parametrize(
    ("parts", "slots", "held", "memory", "expected"),
    [
        (100, 8, 10**9, 4 * 10**9, 32),  # four for each slot
        (10_000, 400, 10**9, 0, 2),  # few pieces, as nothing is known of memory
        (10_000, 400, 4 * 10**11, 16 * 10**9, 100),  # of 4 GB each
        (10, 1, 10**9, 10**6, 500),  # no more than groups
    ],
)
def test_bundles_fit_in_a_worker(parts, slots, held, memory, expected):
    assert bundles_of(500, parts, slots, held, memory) == expected


def test_workers_say_their_memory(client):
    limits = Workers(client).memory()
    assert len(limits) == 2
    assert all(limit > 10**8 for limit in limits)
