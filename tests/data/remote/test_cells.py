"""Cells of rows that are elsewhere: solved there, and the model is an ordinary one."""

from __future__ import annotations

import numpy as np
import pytest
from remote import Remote

from gramian import KernelRidge, KernelRidgeClassifier, load
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint
from gramian.cells import KMeansCells, MedianSplits, RandomCells

N, D, ROWS = 2000, 3, 300
GIVEN = {
    "kernel": "gaussian",
    "lengthscale": 2.0,
    "penalty": 1e-4,
    "random_state": 0,
    "standardize": False,
}


def rows_and_targets(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    rng = RandomStream(0)
    X = rng.standard_normal((N, D), np.float64)
    noise = 0.1 * rng.standard_normal(N, np.float64)
    return xp.cast(X, dtype), (5 + np.sin(2 * X[:, 0]) + X[:, 1] + noise)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "cells", [ROWS, MedianSplits(ROWS, overlap=0.0), KMeansCells(ROWS)], ids=repr
)
def test_the_same_function_as_of_rows_here(dtype, cells):
    X, y = rows_and_targets(dtype)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=cells).fit(rows, rows.beside(y))
    here = KernelRidge(**GIVEN, cells=cells).fit(X, y)
    assert rows.traffic.groups == est.model_.cells.cells.count > 3
    assert rows.traffic.taken <= N + 1000  # the samples of cells and of lengthscales
    np.testing.assert_allclose(
        est.predict(X),
        here.predict(X),
        atol=2e-2 if dtype == np.float32 else 1e-8,
    )
    assert est.score(rows, rows.beside(y)) == pytest.approx(here.score(X, y), abs=1e-3)


def test_random_cells_have_rows_of_all_parts():
    X, y = rows_and_targets(np.float64)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=RandomCells(rows=ROWS)).fit(rows, y)
    here = KernelRidge(**GIVEN, cells=RandomCells(rows=ROWS)).fit(X, y)
    assert len(est.model_.centers) == len(here.model_.centers) == N
    taken = next(est.model_.centers.blocks(N))[1]
    assert np.array_equal(xp.sort(taken, axis=0), xp.sort(X, axis=0))
    assert est.score(X, y) == pytest.approx(here.score(X, y), abs=0.02)


def test_weights_and_several_targets():
    X, y = rows_and_targets(np.float64)
    both, weights = np.stack([y, y**2], axis=1), (y > 4).astype(float) * (1 + np.arange(N) % 3)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=ROWS)
    est.fit(rows, rows.beside(both), sample_weight=rows.beside(weights))
    here = KernelRidge(**GIVEN, cells=ROWS).fit(X, both, sample_weight=weights)
    np.testing.assert_allclose(est.predict(X), here.predict(X), atol=1e-7)


def test_classes():
    X, y = rows_and_targets(np.float64)
    labels = np.digitize(y, [4.5, 5.5])
    rows = Remote.of(X)
    est = KernelRidgeClassifier(**GIVEN, cells=ROWS).fit(rows, rows.beside(labels))
    here = KernelRidgeClassifier(**GIVEN, cells=ROWS).fit(X, labels)
    assert np.array_equal(est.predict(X), here.predict(X))


def test_what_is_chosen_is_chosen_by_a_cell():
    X, y = rows_and_targets(np.float64)
    rows = Remote.of(X)
    given = {"kernel": "gaussian", "cells": ROWS, "random_state": 0}
    est = KernelRidge(**given).fit(rows, rows.beside(y))
    here = KernelRidge(**given).fit(X, y)
    assert est.penalty_ == pytest.approx(here.penalty_, rel=1e-6)
    # The same multiple of the median. Each face measures the median in a cell of its own, and
    # medians of cells differ by some percent; neighbouring multiples by more than a tenth.
    assert est.kernel_.lengthscale == pytest.approx(here.kernel_.lengthscale, rel=0.04)
    assert est.score(X, y) == pytest.approx(here.score(X, y), abs=3e-4)


def test_a_cell_of_equal_rows_and_one_without_any():
    X, y = rows_and_targets(np.float64)
    X[: N // 2] = 1.0
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=MedianSplits(rows=100, overlap=0.0)).fit(rows, rows.beside(y))
    sizes = xp.diff(est.model_.cells.starts)
    assert int(sizes.min()) > 0
    assert int(sizes.max()) <= 150
    np.testing.assert_allclose(est.predict(X[:1]), y[: N // 2].mean(), atol=0.2)


def test_the_model_is_an_ordinary_one(tmp_path):
    X, y = rows_and_targets(np.float32)
    rows = Remote.of(X)
    est = KernelRidge(**{**GIVEN, "standardize": True}, cells=ROWS).fit(rows, rows.beside(y))
    est.save(tmp_path / "cells.model")
    found = load(tmp_path / "cells.model").predict(X)
    np.testing.assert_array_equal(np.ravel(found), est.predict(X))


def test_a_fit_ends_in_time():
    X, y = rows_and_targets(np.float64)
    rows = Remote.of(X)
    given = {**GIVEN, "solver": "pcg", "tol": 1e-14, "max_iter": 10**6, "time_limit": 1e-3}
    with pytest.warns(Warning, match="time_limit"):
        est = KernelRidge(**given, cells=ROWS).fit(rows, rows.beside(y))
    assert est.stop_reason_ == "time_limit"


def test_a_checkpoint_is_refused_before_work(tmp_path):
    X, y = rows_and_targets(np.float64)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=ROWS, callbacks=[Checkpoint(tmp_path / "c")])
    with pytest.raises(ValueError, match="has no checkpoint: leave Checkpoint or cells out"):
        est.fit(rows, y)
    assert rows.traffic.taken == rows.traffic.passes == 0


def test_groups_of_remote_rows():
    X = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    found = list(Remote.of(X).by_group(Odd(), Told(X), 2, np.arange(10), size=3))
    assert found == [(0, [0, 2, 4, 6, 8]), (1, [8, 9])]


class Odd:
    def __call__(self, start, block):
        at = start + np.arange(len(block))
        return [np.flatnonzero(at % 2 == 0), np.flatnonzero(at > 7)]


class Told:
    def __init__(self, X):
        self.X = X

    def __call__(self, group, rows, numbers):
        assert np.array_equal(rows, self.X[numbers])
        return group, numbers.tolist()
