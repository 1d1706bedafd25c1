"""Contract of conformal methods: each name, and a new one, in estimators and files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, conformal
from gramian._arrays import RandomStream
from gramian.conformal import HeldOutMethod, RowScores
from gramian.conformal.base import methods
from gramian.conformal.held_out import errors_of, hold_out

PLAIN = {
    "kernel": "matern32", "lengthscale": "median", "penalty": 1e-2, "landmarks": 30,
    "random_state": 0,
}  # fmt: skip


@dataclass(frozen=True)
class AbsoluteErrors(HeldOutMethod):
    """A method that the package does not have: intervals of one width."""

    factor: float = 1.0

    def score_rows(self, refit, learned, held_data, draws):
        return RowScores(held_data.rows, self.factor * np.abs(errors_of(refit, held_data)))


@pytest.fixture(autouse=True)
def absolute(monkeypatch):
    monkeypatch.setattr(methods, "_classes", {**methods._classes, "absolute": AbsoluteErrors})


def noisy(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n)])
    return X, np.sin(3 * X[:, 0]) + (0.2 + X[:, 2]) * rng.normal(size=n)


X, Y = noisy(500, 0)
NEW, TRUTH = noisy(2000, 1)
NAMES = ["absolute", *conformal.names()]


@pytest.mark.parametrize("groups", [None, 2], ids=["all", "groups"])
@pytest.mark.parametrize("name", NAMES)
def test_a_method_in_estimators_and_files(name, groups, tmp_path):
    est = KernelRidge(**PLAIN, conformal=name, conformal_groups=groups).fit(X, Y)
    ends = est.predict_interval(NEW)
    assert ((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)).mean() == pytest.approx(0.9, abs=0.07)
    assert est.model_.conformal.method == conformal.make(name)
    est.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    assert loaded.model_.conformal.method == est.model_.conformal.method
    np.testing.assert_array_equal(loaded.predict_interval(NEW), ends)
    given = KernelRidge(**PLAIN, conformal=conformal.make(name), conformal_groups=groups)
    np.testing.assert_array_equal(given.fit(X, Y).predict_interval(NEW), ends)


def test_a_new_method_is_no_other_one():
    est = KernelRidge(**PLAIN, conformal="absolute").fit(X, Y)
    held = hold_out(500, est._draws())[1]
    scores = np.sort(abs(Y[held] - est.predict(X[held])))
    width = 2 * scores[int(np.ceil(101 * 0.9)) - 1]
    np.testing.assert_allclose(np.diff(est.predict_interval(NEW))[:, 0], width)


def test_parameters_of_a_method_are_kept(tmp_path):
    est = KernelRidge(**PLAIN, conformal=AbsoluteErrors(2.0)).fit(X, Y)
    est.save(tmp_path / "m")
    assert gramian.load(tmp_path / "m").model_.conformal.method == AbsoluteErrors(2.0)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "cqr"])
def test_sets_of_classes(name):
    est = KernelRidgeClassifier(**PLAIN, conformal=name).fit(X, Y > 0)
    sets = est.predict_set(NEW, 0.9)
    assert sets[np.arange(2000), (TRUTH > 0).astype(int)].mean() > 0.85


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_divided(name):
    """Held-out rows increase; a method without any scores all rows."""
    index = conformal.make(name).divide(100, lambda: RandomStream(0))
    assert (index is None) is conformal.make(name).scores_all_rows
    assert index is None or (len(index) == 20 and bool((np.diff(index) > 0).all()))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "cv+"])
def test_few_rows_are_told_of_cv_plus(name):
    with pytest.raises(ValueError, match=r"at least 20 rows .*, not 19; with conformal='cv\+'"):
        KernelRidge(**PLAIN, conformal=name).fit(X[:19], Y[:19])
    est = KernelRidge(**PLAIN | {"landmarks": 10}, conformal=name).fit(X[:30], Y[:30])
    with pytest.warns(UserWarning, match=r"which requires 9: .*; with conformal=.cv\+. every row"):
        assert np.isinf(est.predict_interval(NEW)).all()
