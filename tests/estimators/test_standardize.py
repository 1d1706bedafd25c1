"""Standardisation in the fit: what it is equal to, what it keeps, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from plain import PLAIN
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import KernelModel, KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.callbacks import Validate
from gramian.data import Standardizer, as_rows
from gramian.landmarks import BlessR

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3)) * [1, 100, 0.01] + [0, 5e3, -2]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = 1e5 + 300 * np.sin(Z[:, 0]) + 100 * Z[:, 1] * Z[:, 2]
SETTINGS = [{}, {"landmarks": 20}, {"landmarks": X[:15]}, {"solver": "pcg", "max_iter": 400}]


def by_hand(**settings: Any) -> TransformedTargetRegressor:
    """The same from scikit-learn's parts."""
    plain = KernelRidge(
        **({"kernel": "gaussian", "lengthscale": "median"} | settings),
        standardize=False,
        penalty=1e-3,
        tol=1e-11,
        random_state=0,
    )
    return TransformedTargetRegressor(
        make_pipeline(StandardScaler(), plain), transformer=StandardScaler()
    )


def fitted(X: Any = X, y: Any = Y, **settings: Any) -> KernelRidge:
    return KernelRidge(
        **({"kernel": "gaussian", "lengthscale": "median"} | settings),
        penalty=1e-3,
        tol=1e-11,
        random_state=0,
    ).fit(X, y)


class TestEqualTo:
    @pytest.mark.parametrize("settings", SETTINGS)
    def test_scikit_learns_parts(self, settings: dict[str, Any]) -> None:
        inner = dict(settings)
        if not isinstance(settings.get("landmarks", 0), int):
            inner["landmarks"] = Z[:15]
        expected = by_hand(**inner).fit(X, Y).predict(X)
        np.testing.assert_allclose(fitted(**settings).predict(X), expected, rtol=1e-9)

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_float32_is_close_to_float64(self, settings: dict[str, Any]) -> None:
        narrow = fitted(X.astype(np.float32), Y, **settings).predict(X.astype(np.float32))
        spread = np.abs(narrow - fitted(**settings).predict(X)).max() / Y.std()
        assert spread < 2e-3

    def test_the_scale_of_the_data_does_not_matter(self) -> None:
        moved = fitted(3 * X - 7, 0.5 * Y + 2).predict(3 * X - 7)
        np.testing.assert_allclose(moved, 0.5 * fitted().predict(X) + 2, rtol=1e-9)

    def test_whole_weights_are_repeated_rows(self) -> None:
        counts = RNG.integers(0, 4, len(X))
        est = KernelRidge(penalty=1e-3, kernel="gaussian", lengthscale="median")
        weighted = est.fit(X, Y, sample_weight=counts).predict(X)
        repeated = est.fit(X.repeat(counts, axis=0), Y.repeat(counts)).predict(X)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-8)

    def test_classes_are_not_scaled_and_features_are(self) -> None:
        labels = np.where(Z[:, 0] > 0, "high", "low")
        est = KernelRidgeClassifier(penalty=1e-3, kernel="gaussian", lengthscale="median").fit(
            X, labels
        )
        plain = KernelRidgeClassifier(
            penalty=1e-3, standardize=False, kernel="gaussian", lengthscale="median"
        ).fit(Z, labels)
        np.testing.assert_allclose(est.decision_function(X), plain.decision_function(Z), rtol=1e-7)
        assert est.model_.target_scale is None


class TestTargets:
    @pytest.mark.parametrize("value", [0.1, 0.0, -1e30, 1e-30])
    @pytest.mark.parametrize("settings", SETTINGS)
    def test_a_constant_is_predicted_exactly(self, settings: dict[str, Any], value: float) -> None:
        y = np.full(len(X), value)
        assert np.array_equal(fitted(y=y, **settings).predict(X[:7] + 1), y[:7])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_one_of_two_may_be_constant(self, dtype: Any) -> None:
        y = np.stack([Y, np.full(len(Y), 0.3)], axis=1).astype(dtype)
        found = fitted(X.astype(dtype), y).predict(X.astype(dtype))
        assert np.array_equal(found[:, 1], y[:, 1])
        assert np.corrcoef(found[:, 0], Y)[0, 1] > 0.9

    def test_they_are_scaled_without_features_too(self) -> None:
        both, target, none = (
            fitted(standardize=s, standardize_target=t, lengthscale=200.0)
            for s, t in ((True, None), (False, True), (False, None))
        )
        assert both.model_.standardizer is not None
        assert target.model_.standardizer is None
        assert target.model_.target_shift is not None
        assert none.model_.target_shift is None
        assert target.score(X, Y) > 0.1 > -1 > none.score(X, Y)  # an offset of 400 deviations

    @pytest.mark.slow
    def test_the_path_of_penalties_is_in_their_units(self) -> None:
        settings = {"landmarks": BlessR(m=30), "random_state": 0}
        est = KernelRidge("gaussian", lengthscale="median", penalty="auto", **settings).fit(X, Y)
        assert est.path_ is not None
        ten = (
            KernelRidge("gaussian", lengthscale="median", penalty="auto", **settings)
            .fit(X, 10 * Y)
            .path_
        )
        for one, other in zip(est.path_, ten or [], strict=True):
            assert other["error"] == pytest.approx(100 * one["error"], rel=0.05)
            assert other["fold_errors"] == pytest.approx([other["error"]])
        assert Y.var() > min(row["error"] for row in est.path_) > 1e-6 * Y.var()


class TestSparse:
    def test_rows_stay_as_they_are(self) -> None:
        rows = scipy.sparse.random_array((90, 30), density=0.2, rng=RNG, format="csr")
        est, plain = (
            fitted(rows, Y, standardize=s, standardize_target=True) for s in (True, False)
        )
        np.testing.assert_array_equal(est.predict(rows), plain.predict(rows))
        assert est.model_.standardizer is None

    def test_points_for_dense_rows_may_be_sparse(self) -> None:
        est = fitted(landmarks=scipy.sparse.csr_array(X[:15]))
        np.testing.assert_allclose(est.predict(X), fitted(landmarks=X[:15]).predict(X), rtol=1e-9)


class TestHeldOutRows:
    @pytest.mark.parametrize("targets", [Y, np.stack([Y, 5 * X[:, 1]], axis=1)])
    def test_their_error_is_in_the_units_of_the_target(self, targets: np.ndarray) -> None:
        validate = Validate(X[60:], targets[60:])
        est = fitted(X[:60], targets[:60], callbacks=[validate])
        error = np.sqrt(np.mean((est.predict(X[60:]) - targets[60:]) ** 2))
        assert est.history_[-1]["valid_rmse"] == pytest.approx(error, rel=1e-6)
        assert validate.y is targets[60:] or np.shares_memory(validate.y, targets)


class TestGoingOn:
    def test_the_scaling_is_that_of_the_first_fit(self) -> None:
        est = KernelRidge(landmarks=20, warm_start=True, random_state=0, **PLAIN).fit(X, Y)
        first = est.model_.standardizer
        assert est.fit(X + 1e3, Y).model_.standardizer is first
        assert est.set_params(standardize=False).fit(X, Y).model_.standardizer is None

    def test_with_more_targets_they_are_scaled_anew(self, tmp_path: Any) -> None:
        est = KernelRidge(landmarks=20, warm_start=True, random_state=0, **PLAIN).fit(X, Y)
        two = est.fit(X, np.stack([Y, Y / 7], axis=1))
        assert two.model_.target_scale is not None
        assert two.model_.target_scale.shape == (2,)
        two.model_.save(tmp_path / "model")
        again = KernelModel.load(tmp_path / "model").predict(X)
        np.testing.assert_array_equal(again, two.predict(X))

    def test_more_rows_are_scaled_as_the_first(self) -> None:
        est = KernelRidge(
            landmarks=20,
            solver="eigenpro3",
            penalty=1e-6,
            random_state=0,
            kernel="gaussian",
            lengthscale="median",
        )
        est.partial_fit(X[:60], Y[:60])
        first = est.model_.standardizer
        assert est.partial_fit(X[60:], Y[60:]).model_.standardizer is first
        assert np.corrcoef(est.predict(X), Y)[0, 1] > 0.5


@pytest.mark.parametrize("name", ["standardize", "standardize_target"])
def test_flags_are_flags(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be True(,| or) False.*, not 'yes'"):
        KernelRidge(**(PLAIN | {name: "yes"})).fit(X, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighted_moments_are_those_of_repeated_rows(dtype: np.dtype) -> None:
    counts = RNG.integers(1, 5, len(X)).astype(float)
    rows = xp.cast(X, dtype)
    weighted = Standardizer.fit(as_rows(rows), size=7, weights=counts)
    repeated = Standardizer.fit(as_rows(np.repeat(rows, xp.cast(counts, np.int64), axis=0)))
    assert_close(weighted.mean, repeated.mean, rtol=1e-12, atol=0)
    assert_close(weighted.scale, repeated.scale, rtol=1e-11, atol=0)
