"""Calibration by groups: which scores a row is compared with, coverage, files and refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian import _arrays as xp
from gramian.conformal import CalibratedPart, ConformalPredictor, RowGroups, make
from gramian.conformal.groups import GroupColumn
from gramian.data import as_rows

PLAIN = {
    "kernel": "matern32", "lengthscale": "median", "penalty": 1e-2, "standardize": True,
    "landmarks": 30, "random_state": 0,
}  # fmt: skip
METHODS = [None, "split", "cv+", "cqr"]


def grouped(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a group in the last column; noise differs by groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    X = np.column_stack([rng.uniform(-1, 1, n), group])
    return X, np.sin(3 * X[:, 0]) + np.array([0.05, 0.3, 1.5])[group] * rng.normal(size=n)


X, Y = grouped(600)
NEW, TRUTH = grouped(3000, 1)
NAMES = np.array(["quiet", "normal", "loud"])


def table_of(X: np.ndarray, y: np.ndarray) -> pa.Table:
    return pa.table({"x": X[:, 0], "kind": NAMES[X[:, 1].astype(int)], "y": y})


def fitted(method="split", groups=1, **settings) -> KernelRidge:
    return KernelRidge(**(PLAIN | settings), conformal=method, conformal_groups=groups).fit(X, Y)


def shares(ends: np.ndarray) -> np.ndarray:
    inside = (ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)
    return np.array([inside[NEW[:, 1] == group].mean() for group in range(3)])


class Zero:
    """A function that is zero."""

    def predict(self, rows, **settings):
        return np.zeros((len(rows), 1), np.float64)


def of_scores(groups: dict[float, list[float]]) -> ConformalPredictor:
    known = np.array([[value] for value in groups], dtype=np.float64)
    by = RowGroups(GroupColumn("kind", (0,), ("kind",)), known, tuple(map(str, groups)))
    scores = np.array([s for own in groups.values() for s in own], dtype=np.float64)
    codes = np.concatenate([np.full((len(s),), i) for i, s in enumerate(groups.values())])
    part = CalibratedPart.from_scores(scores[:, None], {}, codes)
    return ConformalPredictor(make("split"), (part,), by)


def test_a_row_has_the_quantile_of_its_group():
    made = of_scores({5.0: [3.0, 1.0, 2.0], 7.0: [30.0, 10.0, 20.0]})
    rows = as_rows(np.array([[7.0], [5.0], [7.0]]))
    np.testing.assert_array_equal(made.intervals(Zero(), rows, 0.5)[:, 0, 1], [20, 2, 20])
    assert list(made.shortfalls(0.5, rows)) == []


def test_small_and_unknown_groups_have_all_scores_and_a_warning():
    made = of_scores({5.0: [3.0, 1.0, 2.0, 4.0, 5.0, 6.0], 7.0: [10.0, 20.0]})
    rows = as_rows(np.array([[7.0], [5.0], [8.0]]))
    ends = made.intervals(Zero(), rows, 0.7)[:, 0, 1]
    np.testing.assert_array_equal(ends, [10, 5, 10])
    small, unknown = map(str, made.shortfalls(0.7, rows))
    assert small.startswith(
        "groups with fewer than the 3 held-out rows that a level of 0.7 needs: 7.0 (2); their"
    )
    assert small.endswith("with conformal='cv+' every row has a score")
    assert unknown.startswith("1 rows are in no group by conformal_groups='kind' that the")


def test_float32_rows_are_in_the_groups_of_float64_rows():
    made = of_scores({0.1: [1.0, 2.0], 0.2: [3.0, 4.0]})
    assert made.groups.codes(as_rows(np.array([[0.1], [0.2]], np.float32))).tolist() == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_coverage_of_each_group(method):
    """Without groups the quiet rows are covered too often, or the loud ones too rarely."""
    found = shares(fitted(method).predict_interval(NEW))
    assert (abs(found - 0.9) < (0.06 if method == "cv+" else 0.1)).all()


def test_coverage_differs_without_groups():
    """A spread that does not know the group: the last column is no feature of the kernel."""
    settings = {"metric": np.array([1.0, 0.0])}
    pooled = shares(fitted(groups=None, **settings).predict_interval(NEW))
    assert pooled[0] > 0.97
    assert pooled[2] < 0.8
    assert (abs(shares(fitted(**settings).predict_interval(NEW)) - 0.9) < 0.1).all()


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_tables(method, tmp_path):
    table, new = table_of(X, Y), table_of(NEW, TRUTH)
    est = KernelRidge(**PLAIN, conformal=method, conformal_groups="kind").fit(table, "y")
    ends = est.predict_interval(new)
    assert (abs(shares(ends) - 0.9) < 0.1).all()
    groups = est.model_.conformal.groups
    assert sorted(groups.labels) == ["kind=loud", "kind=normal", "kind=quiet"]
    est.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_interval(new), ends)
    assert loaded.model_.conformal.describe() == est.model_.conformal.describe()


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame, new = (pandas.DataFrame(rows, columns=["x", "kind"]) for rows in (X, NEW))
    est = KernelRidge(**PLAIN, conformal="split", conformal_groups="kind").fit(frame, Y)
    np.testing.assert_array_equal(est.predict_interval(new), fitted().predict_interval(NEW))


def test_several_targets():
    both = np.column_stack([Y, -10 * Y])
    est = KernelRidge(**PLAIN, conformal="split", conformal_groups=1).fit(X, both)
    ends = est.predict_interval(NEW)
    assert ends.shape == (3000, 2, 2)
    assert (abs(shares(ends[:, 0]) - 0.9) < 0.1).all()
    assert (abs(shares(-0.1 * ends[:, 1, ::-1]) - 0.9) < 0.1).all()


@pytest.mark.parametrize("method", [None, "split", "cv+"])
def test_sets_of_classes(method, tmp_path):
    labels = np.where(Y > 0, "up", "down")
    est = KernelRidgeClassifier(**PLAIN, conformal=method, conformal_groups=1).fit(X, labels)
    sets = est.predict_set(NEW, 0.8)
    inside = sets[np.arange(3000), (TRUTH > 0).astype(int)]
    assert all(inside[NEW[:, 1] == group].mean() > 0.7 for group in range(3))
    loud, quiet = NEW[:, 1] == 2, NEW[:, 1] == 0
    assert sets[loud].sum(axis=1).mean() > sets[quiet].sum(axis=1).mean()
    est.save(tmp_path / "m")
    np.testing.assert_array_equal(gramian.load(tmp_path / "m").predict_set(NEW, 0.8), sets)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"test_fraction": 0.1}], ids=["all", "test rows"])
def test_searches(settings):
    est = KernelRidgeCV(
        budget=400_000, conformal="split", conformal_groups=1, random_state=0, **settings
    ).fit(X, Y)
    assert (abs(shares(est.predict_interval(NEW)) - 0.9) < 0.12).all()


class TestRefusals:
    @pytest.mark.parametrize("groups", [2, -1, "kind", True, 1.0, None])
    def test_columns_that_are_none(self, groups):
        if groups is None:
            fitted(groups=None)
            return
        with pytest.raises(ValueError, match=r"conformal_groups=.* is (no feature|neither)"):
            fitted(groups=groups)

    def test_names_that_no_table_has(self):
        est = KernelRidge(**PLAIN, conformal="split", conformal_groups="kinds")
        with pytest.raises(ValueError, match=r"conformal_groups=.kinds. is no column .* x, kind"):
            est.fit(table_of(X, Y), "y")

    def test_numbers_that_no_table_has(self):
        est = KernelRidge(**PLAIN, conformal="split", conformal_groups=2)
        with pytest.raises(ValueError, match="conformal_groups=2 is no column"):
            est.fit(table_of(X, Y), "y")

    def test_before_the_fit(self, monkeypatch):
        monkeypatch.setattr("gramian.fitting.fit", lambda *_args, **_more: pytest.fail("a fit"))
        for method in (None, "split", "cv+"):
            with pytest.raises(ValueError, match="is no feature"):
                fitted(method, groups=2)

    def test_columns_of_many_values(self):
        with pytest.raises(ValueError, match="conformal_groups='0' has 60 values in 60 calib"):
            fitted(groups=0)

    def test_sparse_rows(self):
        est = KernelRidge(**PLAIN, conformal="split", conformal_groups=1)
        with pytest.raises(ValueError, match="needs dense rows, and these are sparse"):
            est.fit(scipy.sparse.csr_array(X), Y)

    def test_levels_that_are_encoded_by_means(self):
        """Training rows have means without their own targets, and new ones have others."""
        level = [f"level {i}" for i in np.random.default_rng(0).integers(0, 250, 12_000)]
        table = pa.table({"x": np.tile(X[:, 0], 20), "level": level, "y": np.tile(Y, 20)})
        for method in (None, "cv+"):
            est = KernelRidge(**PLAIN, conformal=method, conformal_groups="level")
            with pytest.raises(ValueError, match=r"means of the target.*conformal=.split."):
                est.fit(table, "y")
        est = KernelRidge(**PLAIN, conformal="split", conformal_groups="level").fit(table, "y")
        known = est.model_.conformal.groups.codes(est.model_.rows(table))
        assert len(np.unique(known[known >= 0])) == len(est.model_.conformal.groups.labels)
        assert xp.cast(known >= 0, np.float32).mean() > 0.8
