"""Cells of rows that are elsewhere: solved there, and the model is an ordinary one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from remote import Remote

from gramian import KernelRidge, KernelRidgeClassifier, load
from gramian.callbacks import Checkpoint
from gramian.cells import KMeansCells, MedianSplits, RandomCells
from gramian.data import as_rows

N, D, ROWS = 2000, 3, 300
GIVEN = {
    "kernel": "gaussian",
    "lengthscale": 2.0,
    "penalty": 1e-4,
    "random_state": 0,
    "standardize": False,
}


def rows_and_targets(dtype: torch.dtype) -> tuple[torch.Tensor, np.ndarray]:
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=rng, dtype=torch.float64)
    noise = 0.1 * torch.randn(N, generator=rng, dtype=torch.float64)
    return X.to(dtype), (5 + torch.sin(2 * X[:, 0]) + X[:, 1] + noise).numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "cells", [ROWS, MedianSplits(ROWS, overlap=0.0), KMeansCells(ROWS)], ids=repr
)
def test_the_same_function_as_of_rows_here(dtype, cells):
    X, y = rows_and_targets(dtype)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=cells).fit(rows, rows.beside(y))
    here = KernelRidge(**GIVEN, cells=cells).fit(X.numpy(), y)
    assert rows.traffic.groups == est.model_.cells.cells.count > 3
    assert rows.traffic.taken <= N + 1000  # the samples of cells and of lengthscales
    np.testing.assert_allclose(
        est.predict(X.numpy()),
        here.predict(X.numpy()),
        atol=2e-2 if dtype == torch.float32 else 1e-8,
    )
    assert est.score(rows, rows.beside(y)) == pytest.approx(here.score(X.numpy(), y), abs=1e-3)


def test_random_cells_have_rows_of_all_parts():
    X, y = rows_and_targets(torch.float64)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=RandomCells(rows=ROWS)).fit(rows, y)
    here = KernelRidge(**GIVEN, cells=RandomCells(rows=ROWS)).fit(X.numpy(), y)
    assert len(est.model_.centers) == len(here.model_.centers) == N
    taken = next(est.model_.centers.blocks(N))[1]
    assert torch.equal(taken.sort(dim=0).values, X.sort(dim=0).values)
    assert est.score(X.numpy(), y) == pytest.approx(here.score(X.numpy(), y), abs=0.02)


def test_weights_and_several_targets():
    X, y = rows_and_targets(torch.float64)
    both, weights = np.stack([y, y**2], axis=1), (y > 4).astype(float) * (1 + np.arange(N) % 3)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=ROWS)
    est.fit(rows, rows.beside(both), sample_weight=rows.beside(weights))
    here = KernelRidge(**GIVEN, cells=ROWS).fit(X.numpy(), both, sample_weight=weights)
    np.testing.assert_allclose(est.predict(X.numpy()), here.predict(X.numpy()), atol=1e-7)


def test_classes():
    X, y = rows_and_targets(torch.float64)
    labels = np.digitize(y, [4.5, 5.5])
    rows = Remote.of(X)
    est = KernelRidgeClassifier(**GIVEN, cells=ROWS).fit(rows, rows.beside(labels))
    here = KernelRidgeClassifier(**GIVEN, cells=ROWS).fit(X.numpy(), labels)
    assert np.array_equal(est.predict(X.numpy()), here.predict(X.numpy()))


def test_what_is_chosen_is_chosen_by_a_cell():
    X, y = rows_and_targets(torch.float64)
    rows = Remote.of(X)
    given = {"kernel": "gaussian", "cells": ROWS, "random_state": 0}
    est = KernelRidge(**given).fit(rows, rows.beside(y))
    here = KernelRidge(**given).fit(X.numpy(), y)
    assert est.penalty_ == pytest.approx(here.penalty_, rel=1e-6)
    # The same multiple of the median. Each face measures the median in a cell of its own, and
    # medians of cells differ by some percent; neighbouring multiples by more than a tenth.
    assert est.kernel_.lengthscale == pytest.approx(here.kernel_.lengthscale, rel=0.04)
    assert est.score(X.numpy(), y) == pytest.approx(here.score(X.numpy(), y), abs=3e-4)


def test_a_cell_of_equal_rows_and_one_without_any():
    X, y = rows_and_targets(torch.float64)
    X[: N // 2] = 1.0
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=MedianSplits(rows=100, overlap=0.0)).fit(rows, rows.beside(y))
    sizes = est.model_.cells.starts.diff()
    assert int(sizes.min()) > 0
    assert int(sizes.max()) <= 150
    np.testing.assert_allclose(est.predict(X[:1].numpy()), y[: N // 2].mean(), atol=0.2)


def test_the_model_is_an_ordinary_one(tmp_path):
    X, y = rows_and_targets(torch.float32)
    rows = Remote.of(X)
    est = KernelRidge(**{**GIVEN, "standardize": True}, cells=ROWS).fit(rows, rows.beside(y))
    est.save(tmp_path / "cells.model")
    found = load(tmp_path / "cells.model").predict(X.numpy())
    np.testing.assert_array_equal(np.ravel(found), est.predict(X.numpy()))


def test_a_fit_ends_in_time():
    X, y = rows_and_targets(torch.float64)
    rows = Remote.of(X)
    given = {**GIVEN, "solver": "pcg", "tol": 1e-14, "max_iter": 10**6, "time_limit": 1e-3}
    with pytest.warns(Warning, match="time_limit"):
        est = KernelRidge(**given, cells=ROWS).fit(rows, rows.beside(y))
    assert est.stop_reason_ == "time_limit"


def test_a_checkpoint_is_refused_before_work(tmp_path):
    X, y = rows_and_targets(torch.float64)
    rows = Remote.of(X)
    est = KernelRidge(**GIVEN, cells=ROWS, callbacks=[Checkpoint(tmp_path / "c")])
    with pytest.raises(ValueError, match="has no checkpoint: leave Checkpoint or cells out"):
        est.fit(rows, y)
    assert rows.traffic.taken == rows.traffic.passes == 0


def test_groups_of_rows_here():
    X = torch.arange(20.0).reshape(10, 2)

    for source in (as_rows(X), Remote.of(X)):
        found = list(source.by_group(Odd(), Told(X), 2, torch.arange(10), size=3))
        assert found == [(0, [0, 2, 4, 6, 8]), (1, [8, 9])]


class Odd:
    def __call__(self, start, block):
        at = start + torch.arange(len(block))
        return [(at % 2 == 0).nonzero()[:, 0], (at > 7).nonzero()[:, 0]]


class Told:
    def __init__(self, X):
        self.X = X

    def __call__(self, group, rows, numbers):
        assert torch.equal(rows, self.X[numbers])
        return group, numbers.tolist()
