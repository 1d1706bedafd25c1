"""Conformal intervals and sets: which rows do what, coverage, files, and refusals."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeClassifierCV, KernelRidgeCV
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.conformal import split, spread
from gramian.conformal.held_out import hold_out
from gramian.conformal.spread import ERROR_FLOOR
from gramian.fitting.uncertainty import refit as refits
from gramian.losses import Quantile
from gramian.model import KernelModel

PLAIN = {
    "kernel": "matern32", "lengthscale": "median", "penalty": 1e-4, "standardize": True,
    "random_state": 0,
}  # fmt: skip
METHODS = [None, "split", pytest.param("cv+", marks=pytest.mark.slow)]


def noisy(n: int, seed: int = 0, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose noise is ten times as large on one side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 0] > 0, 0.5, 0.05) * rng.normal(size=n)
    return X, y


X, Y = noisy(300)
NEW, TRUTH = noisy(2000, 1)


def fitted(method="split", X=X, y=Y, **settings) -> KernelRidge:
    return KernelRidge(**(PLAIN | settings), conformal=method).fit(X, y)


def share_inside(ends: np.ndarray, y: np.ndarray = TRUTH) -> float:
    return float(((y >= ends[:, 0]) & (y <= ends[:, 1])).mean())


class TestCoverage:
    @pytest.mark.parametrize("method", METHODS)
    def test_is_the_level(self, method):
        """Draws of 300 rows: held-out rows spread it by their number."""
        found = {0.5: [], 0.9: []}
        draws = 8 if method == "cv+" else 20  # that fits many models
        for seed in range(draws):
            est = fitted(method, *noisy(300, 100 + seed))
            for level, shares in found.items():
                shares.append(share_inside(est.predict_interval(NEW, level)))
        scores = 300 if method == "cv+" else 30
        for level, shares in found.items():
            spread = math.sqrt(level * (1 - level) * (1 / scores + 1 / 2000) / draws)
            high = 0.05 if method == "cv+" else 0.0  # of a fold left out, a function is worse
            assert -3 * spread < np.mean(shares) - level < 3 * spread + 1 / (scores + 1) + high

    def test_is_the_same_where_noise_is_large(self):
        est = fitted(X=noisy(2000)[0], y=noisy(2000)[1], landmarks=100)
        ends = est.predict_interval(NEW)
        loud = NEW[:, 0] > 0
        width = np.diff(ends)[:, 0]
        assert width[loud].mean() > 4 * width[~loud].mean()
        for some in (loud, ~loud):
            assert share_inside(ends[some], TRUTH[some]) == pytest.approx(0.9, abs=0.05)
        half = np.diff(est.predict_interval(NEW, 0.5))[:, 0]
        assert (half < width).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_of_sets_of_two_classes_with_more_errors_than_the_level_allows(self, method):
        """A third of the rows is wrong: some sets have one class, and some both."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(2600, 2))
        labels = rows[:, 0] + 1.5 * rng.normal(size=2600) > 0
        est = KernelRidgeClassifier(**(PLAIN | {"penalty": 1e-2}), conformal=method, landmarks=50)
        sets = est.fit(rows[:600], labels[:600]).predict_set(rows[600:], 0.8)
        assert est.score(rows[600:], labels[600:]) < 0.75
        assert 0.75 < sets[np.arange(2000), labels[600:].astype(int)].mean() < 0.87
        assert 1.1 < sets.sum(axis=1).mean() < 1.7

    @pytest.mark.parametrize("method", METHODS)
    def test_of_sets(self, method):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(2600, 2))
        labels = np.digitize(rows[:, 0] + 0.5 * rng.normal(size=2600), [-0.5, 0.5])
        names = np.array(["low", "middle", "high"])
        est = KernelRidgeClassifier(**PLAIN, landmarks=50, conformal=method)
        sets = est.fit(rows[:600], names[labels[:600]]).predict_set(rows[600:], 0.9)
        number = np.searchsorted(est.classes_, names[labels[600:]])
        inside = sets[np.arange(2000), number].mean()
        assert 0.86 < inside < 0.97
        assert 1 < sets.sum(axis=1).mean() < 2
        assert sets.any(axis=1).all()
        best = est.predict(rows[600:]) if method != "cv+" else None
        if method == "split":
            assert sets[np.arange(2000), np.searchsorted(est.classes_, best)].all()


class TestWhoSeesWhat:
    def test_held_back_rows_change_neither_function_nor_spread(self):
        """With their targets far off, only scores and the choice of the ridge are others."""
        learn, held = hold_out(300, fitted()._draws())
        far = Y.copy()
        far[held] += 100 * (1 + np.arange(len(held)))
        one, other = fitted(), fitted(y=far)
        np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))
        assert len(learn) == 240
        assert len(one.dual_coef_) == 240
        wide = np.diff(other.predict_interval(NEW))
        assert wide.mean() > 50 * np.diff(one.predict_interval(NEW)).mean()

    def test_rows_with_scores_do_not_change_the_spread(self):
        """Not by a bit: what the other half chooses is what it chose before."""
        est = fitted()
        _, held = hold_out(300, est._draws())
        second = xp.chunk(est._draws().permutation(60), 2)[1]
        far = Y.copy()
        far[held[xp.sort(second)]] *= -1e3
        one, other = (each.model_.conformal.parts[0] for each in (est, fitted(y=far)))
        assert np.array_equal(one.functions["spread"].coef, other.functions["spread"].coef)
        assert np.array_equal(
            one.functions["spread"].target_scale, other.functions["spread"].target_scale
        )
        assert not np.array_equal(one.scores, other.scores)

    def test_the_ridge_of_the_spread_does_not_hang_on_that_of_the_function(self, monkeypatch):
        tried = []
        real = refits.Refit.fit_targets

        def fit_targets(self, data, targets, penalty):
            tried.append(penalty)
            return real(self, data, targets, penalty)

        monkeypatch.setattr(refits.Refit, "fit_targets", fit_targets)
        fitted(penalty=1e-9)
        assert tuple(tried) == spread.SPREAD_PENALTIES[: len(tried)]
        assert 3 <= len(tried) < len(spread.SPREAD_PENALTIES)

    @pytest.mark.parametrize("kind", ["numbers", "classes"])
    def test_held_back_rows_have_no_say_in_an_encoding(self, kind):
        """Levels of a column become means of the targets, without those of held-out rows."""
        rng = np.random.default_rng(0)
        level = np.array([f"level {i}" for i in rng.integers(0, 250, 300)])
        table = {"x": X[:, 0], "level": level}
        y = Y if kind == "numbers" else np.where(Y > 0, "up", "down")
        estimator = KernelRidge if kind == "numbers" else KernelRidgeClassifier
        est = estimator(**PLAIN, conformal="split")
        _, held = hold_out(300, est._draws())
        other = y.copy()
        other[held] = 1e3 if kind == "numbers" else "up"
        predicted = []
        for targets in (y, other):
            given = pa.table(table | {"y": targets})
            est.fit(given, "y")
            means = est.model_.encoding.describe()["level"]
            values = est.predict if kind == "numbers" else est.decision_function
            predicted.append(values(given))
        assert "mean" in means
        np.testing.assert_array_equal(*predicted)

    def test_one_row_of_each_class_stays(self):
        classes = np.zeros(300, np.int64)
        for seed in range(30):
            classes[:] = 0
            _, held = hold_out(300, RandomStream(seed))
            classes[held[:2]] = 1  # all of them would be held back
            learn, rest = hold_out(300, RandomStream(seed), classes)
            assert (classes[learn] == 1).sum() == 1
            assert len(learn) == 241
            assert np.array_equal(xp.sort(np.concatenate([learn, rest])), np.arange(300))

    def test_half_of_them_choose_and_half_have_scores(self):
        est = fitted()
        assert est.model_.conformal.count == 30
        assert fitted("cv+").model_.conformal.count == 300

    def test_rows_that_choose_the_spread_have_no_scores(self, monkeypatch):
        seen = {}

        def choose(refit, learned, judges, draws):
            seen["choose"] = judges[0].numbers

        def scale(errors, held, spread_model):
            seen["score"] = held.numbers
            return real(errors, held, spread_model)

        real = split.scale_errors
        monkeypatch.setattr(split, "choose_spread", choose)
        monkeypatch.setattr(split, "scale_errors", scale)
        _, held = hold_out(300, fitted()._draws())
        assert np.array_equal(xp.sort(np.concatenate([seen["choose"], seen["score"]])), held)

    def test_the_pieces_are_those_of_the_definition(self, monkeypatch):
        """Halves, logarithms, the ridge that was chosen and its scores, put together by hand."""
        kept = {}

        def fit_targets(self, data, targets, penalty):
            kept["targets"], kept["rows"] = targets, data.rows
            return real(self, data, targets, penalty)

        real = refits.Refit.fit_targets
        monkeypatch.setattr(refits.Refit, "fit_targets", fit_targets)
        monkeypatch.setattr(spread, "SPREAD_PENALTIES", (1e-3,))
        est = fitted(solver="direct", landmarks=None)
        part = est.model_.conformal.parts[0]
        learn, held = (index for index in hold_out(300, est._draws()))
        draws = est._draws()
        _, second = (xp.sort(p) for p in xp.chunk(draws.permutation(60), 2))
        halves = [xp.sort(p) for p in xp.chunk(draws.permutation(240), 2)]
        kernel, scaled = est.model_.kernel, est.model_.standardizer
        rows = (X - scaled.mean) / scaled.scale
        off = np.empty(240)
        for mine, rest in (halves, halves[::-1]):
            same = KernelRidge(
                kernel, penalty=1e-4 * 240 / 120, standardize=False, standardize_target=True,
                landmarks=None, solver="direct",
            ).fit(rows[learn][rest], Y[learn][rest])  # fmt: skip
            off[mine] = np.abs(Y[learn][mine] - same.predict(rows[learn][mine]))
        expected = np.log(off + ERROR_FLOOR * off.mean())
        np.testing.assert_allclose(kept["targets"][:, 0], expected, rtol=1e-6)
        g = KernelRidge(
            kernel, penalty=1e-3, standardize=False, standardize_target=True, landmarks=None,
            solver="direct",
        ).fit(rows[learn], expected)  # fmt: skip
        s = np.exp(g.predict(rows[held][second]))
        scores = np.sort(np.abs(Y[held] - est.predict(X[held]))[second] / s)
        np.testing.assert_allclose(part.scores[:, 0], scores, rtol=1e-5)
        q = scores[math.ceil(31 * 0.9) - 1]
        half = q * np.exp(g.predict((NEW - scaled.mean) / scaled.scale))
        f = est.predict(NEW)
        np.testing.assert_allclose(
            est.predict_interval(NEW), np.column_stack([f - half, f + half]), rtol=1e-5
        )

    def test_without_a_method_rows_of_the_training_are_held_back_later(self):
        est = fitted(None)
        assert est.model_.conformal is None
        before = est.predict(NEW)
        ends = est.predict_interval(NEW)
        np.testing.assert_array_equal(est.predict(NEW), before)
        part = est.model_.conformal.parts[0]
        assert len(part.functions["values"].centers) == 240
        np.testing.assert_allclose(ends.mean(axis=1), part.functions["values"].predict(NEW)[:, 0])
        np.testing.assert_array_equal(est.predict_interval(NEW), ends)

    @pytest.mark.parametrize("method", [None, pytest.param("cv+", marks=pytest.mark.slow)])
    def test_landmarks_are_none_of_the_rows_with_scores(self, method):
        est = fitted(method, landmarks=150, solver="direct")
        est.predict_interval(NEW)
        scaled = est.model_.standardizer
        rows = (X - scaled.mean) / scaled.scale
        for part in est.model_.conformal.parts:
            centers = next(part.functions["values"].centers.blocks(150))[1]
            near = xp.cdist(rows, centers)
            used = near.min(axis=1) < 1e-9
            assert used.sum() == 150
        if method is None:
            _, held = hold_out(300, est._draws())
            assert not used[held].any()

    @pytest.mark.parametrize("method", METHODS)
    def test_fits_are_stopped_as_early_as_that_of_the_model(self, method, monkeypatch):
        """A solver that needs no penalty is the same again, for as many iterations."""
        seen = []
        real = refits.fit

        def fit(settings, data, **more):
            seen.append((settings.solver, settings.max_iter, float(settings.penalty)))
            return real(settings, data, **more)

        monkeypatch.setattr(refits, "fit", fit)
        est = fitted(method, penalty=0, solver="eigenpro2", early_stopping=True, patience=2)
        assert share_inside(est.predict_interval(NEW)) > 0.75
        assert est.best_iteration_ < 100
        own = [one for one in seen if one[0] == "eigenpro2"]
        assert len(own) >= 2
        assert all(most < 100 and penalty == 0 for _, most, penalty in own)
        assert all(penalty > 0 for solver, _, penalty in seen if solver != "eigenpro2")

    def test_landmarks_are_numbered_among_all_rows(self):
        est = fitted(landmarks=30)
        centers = next(est.model_.centers.blocks(30))[1]
        scaled = est.model_.standardizer
        expected = (X[est.landmark_index_] - scaled.mean) / scaled.scale
        np.testing.assert_allclose(centers, expected, rtol=1e-6)

    def test_landmarks_are_numbered_where_more_rows_are_held_out(self):
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
        est = KernelRidge(
            **PLAIN, landmarks=30, early_stopping=True, solver="falkon", conformal="split"
        ).fit(table, "y")
        centers = next(est.model_.centers.blocks(30))[1]
        scaled = est.model_.standardizer
        expected = (X[est.landmark_index_] - scaled.mean) / scaled.scale
        np.testing.assert_allclose(centers, expected, rtol=1e-6)


class TestSettings:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        "settings",
        [
            {"landmarks": 30}, {"standardize": "quantile"}, {"cells": 100}, {"loss": "huber"},
            {"metric": np.array([1.0, 0.1])}, {"kernel": "linear"},
        ],
        ids=["landmarks", "quantiles", "cells", "huber", "metric", "linear"],
    )  # fmt: skip
    def test_every_fit_has_them(self, method, settings):
        assert 0.8 < share_inside(fitted(method, **settings).predict_interval(NEW)) <= 1

    @pytest.mark.slow
    def test_a_search_has_them(self):
        X, y = noisy(400)
        for method in (None, "split", "cv+"):
            est = KernelRidgeCV(budget=600_000, conformal=method, random_state=0).fit(X, y)
            assert 0.8 < share_inside(est.predict_interval(NEW)) <= 1
        labels = np.where(y > 0, "up", "down")
        est = KernelRidgeClassifierCV(budget=600_000, conformal="split", random_state=0)
        sets = est.fit(X, labels).predict_set(NEW)
        assert sets.shape == (2000, 2)

    def test_several_targets_have_their_own(self):
        Z = np.column_stack([Y, 100 * Y[::-1]])
        ends = fitted(y=Z).predict_interval(NEW)
        assert ends.shape == (2000, 2, 2)
        assert np.diff(ends[:, 1]).mean() > 50 * np.diff(ends[:, 0]).mean()

    @pytest.mark.parametrize("method", METHODS)
    def test_awkward_rows(self, method):
        cases = {
            "one feature": (X[:, :1], Y),
            "float32": (X.astype(np.float32), Y.astype(np.float32)),
            "twice": (np.repeat(X[:150], 2, axis=0), np.repeat(Y[:150], 2)),
            "offset": (X, 1e6 + Y),
            "constant": (X, np.ones(300)),
        }
        for name, (rows, y) in cases.items():
            ends = fitted(method, rows, y).predict_interval(rows)
            assert np.isfinite(ends).all(), name
            assert share_inside(ends, y) > 0.85, name

    def test_rows_of_weight_zero_are_not_there(self):
        weights = np.where(np.arange(300) < 100, 0.0, 2.0)
        far = Y + np.where(np.arange(300) < 100, 1e3, 0.0)
        settings = PLAIN | {"conformal": "split"}
        one = KernelRidge(**settings).fit(X, far, sample_weight=weights)
        other = KernelRidge(**settings).fit(X[100:], Y[100:])
        np.testing.assert_allclose(one.predict_interval(NEW), other.predict_interval(NEW))

    def test_a_file_larger_than_blocks(self, tmp_path):
        import pyarrow.parquet as pq

        rows, y = noisy(2000)
        pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": y}), tmp_path / "t.parquet")
        est = KernelRidge(**PLAIN, landmarks=50, conformal="split", memory_limit="60MB")
        ends = est.fit(str(tmp_path / "t.parquet"), "y").predict_interval(
            pa.table({"a": NEW[:, 0], "b": NEW[:, 1]})
        )
        assert share_inside(ends) == pytest.approx(0.9, abs=0.05)


class TestKept:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("settings", [{}, {"landmarks": 30}, {"cells": 100}])
    def test_a_file_has_them(self, method, settings, tmp_path):
        est = fitted(method, **settings)
        ends = est.predict_interval(NEW)
        est.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict_interval(NEW), ends)
        np.testing.assert_array_equal(loaded.predict(NEW), est.predict(NEW))
        KernelModel.load(tmp_path / "m")

    @pytest.mark.slow
    def test_so_has_that_of_an_average_and_of_classes(self, tmp_path):
        rows, y = noisy(400)
        est = KernelRidgeCV(budget=3_000_000, conformal="cv+", random_state=0).fit(rows, y)
        est.save(tmp_path / "m")
        np.testing.assert_array_equal(
            gramian.load(tmp_path / "m").predict_interval(NEW), est.predict_interval(NEW)
        )
        est = KernelRidgeClassifier(**PLAIN, conformal="split").fit(rows, y > 0)
        est.save(tmp_path / "c")
        np.testing.assert_array_equal(
            gramian.load(tmp_path / "c").predict_set(NEW), est.predict_set(NEW)
        )

    def test_centers_are_written_once(self, tmp_path):
        fitted(landmarks=100).save(tmp_path / "with")
        fitted(None, landmarks=100).save(tmp_path / "without")
        more = (tmp_path / "with").stat().st_size - (tmp_path / "without").stat().st_size
        assert more < 100 * 8 + 30 * 8 + 2500

    def test_copies_have_them(self):
        est = fitted()
        ends = est.predict_interval(NEW)
        for other in (copy.deepcopy(est), pickle.loads(pickle.dumps(est))):
            np.testing.assert_array_equal(other.predict_interval(NEW), ends)
        assert clone(est).conformal == "split"

    def test_a_new_fit_has_its_own(self):
        est = fitted()
        before = est.predict_interval(NEW)
        after = est.fit(X, 10 * Y).predict_interval(NEW)
        np.testing.assert_allclose(after, 10 * before, rtol=1e-6)


class TestRefusals:
    @pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, "0.9", None, math.nan])
    def test_levels_are_shares(self, level):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            fitted().predict_interval(NEW, level)

    def test_unknown_methods(self):
        with pytest.raises(
            ValueError, match=r"'cqr', 'cv\+' or 'split', not 'splits'; did you mean"
        ):
            fitted("splits")

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="at least 20 rows of positive weight"):
            fitted("split", X[:19], Y[:19])

    def test_too_few_scores_give_infinite_ends(self):
        est = fitted()
        with pytest.warns(
            UserWarning,
            match=r"30 held-out rows are too few for a level of 0.99, which requires 99:",
        ):
            ends = est.predict_interval(NEW, 0.99)
        np.testing.assert_array_equal(ends, [[-np.inf, np.inf]] * 2000)

    def test_models_without_rows(self, tmp_path):
        est = fitted(None)
        est.save(tmp_path / "m")
        for other in (gramian.load(tmp_path / "m"), copy.deepcopy(est)):
            with pytest.raises(ValueError, match="fit with conformal='split'"):
                other.predict_interval(NEW)

    def test_several_quantiles(self):
        with pytest.raises(ValueError, match="its quantiles are intervals already; give one level"):
            fitted(loss=Quantile((0.1, 0.9)), landmarks=20)

    def test_warm_starts(self):
        est = KernelRidge(**PLAIN, warm_start=True, conformal="split")
        with pytest.raises(ValueError, match="cannot be combined with warm_start=True"):
            est.fit(X, Y)

    def test_rows_in_parts(self):
        est = KernelRidge(**PLAIN, landmarks=20, solver="eigenpro3", conformal="split")
        with pytest.raises(ValueError, match="partial_fit holds back no rows"):
            est.partial_fit(X, Y)
