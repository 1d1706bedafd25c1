"""KernelRidgeClassifier: codes, labels of every kind, weights of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from plain import PLAIN
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge as TheirKernelRidge
from sklearn.linear_model import RidgeClassifier

from gramian import KernelModel, KernelRidgeClassifier
from gramian.callbacks import Validate

IRIS, SPECIES = load_iris(return_X_y=True)
X, PLACE = IRIS[::2], SPECIES[::2]
NEW, NEW_PLACE = IRIS[1::2], SPECIES[1::2]
LABELS: dict[str, np.ndarray] = {
    "strings": np.array(["setosa", "a longer name", "ü"]),
    "integers": np.array([-5, 0, 10**12]),
    "numbers": np.array([-1.0, 0.0, 7.0]),
}


def kernel(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.exp(-cdist(x, z, "sqeuclidean") / 2)


class TestCodes:
    def test_of_three_classes(self):
        est = KernelRidgeClassifier(
            lengthscale=1.0, penalty=1e-2, standardize=False, kernel="gaussian"
        ).fit(X, PLACE)
        codes = np.where(PLACE[:, None] == np.arange(3), 1.0, -0.5)  # a row sums to zero
        system = kernel(X, X) + 1e-2 * len(X) * np.eye(len(X))
        expected = kernel(NEW, X) @ np.linalg.solve(system, codes)
        np.testing.assert_allclose(est.decision_function(NEW), expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(est.predict(NEW), expected.argmax(axis=1))
        np.testing.assert_allclose(est.decision_function(NEW).sum(axis=1), 0, atol=1e-9)

    def test_of_two_classes(self):
        y = PLACE > 0
        est = KernelRidgeClassifier(
            lengthscale=1.0, penalty=1e-2, standardize=False, kernel="gaussian"
        ).fit(X, y)
        other = TheirKernelRidge(alpha=1e-2 * len(X), kernel="rbf", gamma=0.5)
        expected = other.fit(X, np.where(y, 1.0, -1.0)).predict(NEW)
        assert est.decision_function(NEW).shape == (len(NEW),)
        np.testing.assert_allclose(est.decision_function(NEW), expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(est.predict(NEW), expected > 0)

    def test_a_linear_kernel_is_a_ridge_classifier(self):
        centered, new = X - X.mean(axis=0), NEW - X.mean(axis=0)
        other = RidgeClassifier(alpha=0.1 * len(X), fit_intercept=False).fit(centered, PLACE > 1)
        est = KernelRidgeClassifier("linear", penalty=0.1, standardize=False, lengthscale="median")
        est.fit(centered, PLACE > 1)
        expected = other.decision_function(new)
        np.testing.assert_allclose(est.decision_function(new), expected, rtol=1e-8)


class TestLabels:
    @pytest.mark.parametrize("kind", LABELS)
    @pytest.mark.parametrize("landmarks", [None, 20])
    def test_they_come_back(self, kind, landmarks, tmp_path):
        labels = LABELS[kind]
        est = KernelRidgeClassifier(landmarks=landmarks, random_state=0, **PLAIN).fit(
            X, labels[PLACE]
        )
        np.testing.assert_array_equal(est.classes_, np.sort(labels))
        assert est.predict(NEW).dtype == labels.dtype
        assert est.score(NEW, labels[NEW_PLACE]) > 0.9
        est.model_.save(tmp_path / "model")
        loaded = KernelModel.load(tmp_path / "model")
        assert loaded.predict_labels(NEW) == est.predict(NEW).tolist()

    @pytest.mark.parametrize("as_input", [list, pd.Series, lambda y: y.astype(object)])
    def test_strings_in_any_box(self, as_input):
        labels = LABELS["strings"]
        est = KernelRidgeClassifier(**PLAIN).fit(X, as_input(labels[PLACE]))
        assert set(est.predict(NEW)) == set(labels)
        assert est.score(NEW, as_input(labels[NEW_PLACE])) > 0.9

    def test_categories(self):
        y = pd.Series(pd.Categorical.from_codes(PLACE, categories=["a", "b", "c"]))
        assert set(KernelRidgeClassifier(**PLAIN).fit(X, y).predict(NEW)) == {"a", "b", "c"}

    def test_booleans(self):
        est = KernelRidgeClassifier(**PLAIN).fit(X, PLACE > 0)
        assert est.classes_.dtype == est.predict(NEW).dtype == bool
        assert est.model_.classes == (False, True)
        assert est.score(NEW, NEW_PLACE > 0) > 0.9

    def test_a_column_is_a_warning_of_scikit_learn(self):
        with pytest.warns(UserWarning, match="column-vector y"):
            KernelRidgeClassifier(**PLAIN).fit(X, PLACE[:, None])

    def test_numbers_that_are_no_labels(self):
        with pytest.raises(ValueError, match="Unknown label type"):
            KernelRidgeClassifier(**PLAIN).fit(X, X[:, 0])

    def test_one_class(self):
        with pytest.raises(ValueError, match=r"one class only, \['a'\].*at least two classes"):
            KernelRidgeClassifier(**PLAIN).fit(X, np.full(len(X), "a"))

    def test_one_class_with_weight(self):
        with pytest.raises(ValueError, match=r"one class only, \[1\], in rows of positive weight"):
            KernelRidgeClassifier(**PLAIN).fit(X, PLACE, sample_weight=PLACE == 1)


class TestWeights:
    @pytest.mark.parametrize("settings", [{}, {"landmarks": X[::5], "tol": 1e-12}])
    def test_a_weight_per_class_is_a_weight_per_row(self, settings):
        by_class = {0: 1.0, 1: 5.0, 2: 0.25}
        est = KernelRidgeClassifier(
            lengthscale=1.0, penalty=1e-2, **({"kernel": "gaussian"} | settings)
        )
        by_row = est.fit(X, PLACE, sample_weight=[by_class[i] for i in PLACE]).decision_function(
            NEW
        )
        est.set_params(class_weight=by_class)
        np.testing.assert_allclose(
            est.fit(X, PLACE).decision_function(NEW), by_row, rtol=1e-7, atol=1e-8
        )

    def test_they_multiply(self):
        weight = np.linspace(1, 2, len(X))
        est = KernelRidgeClassifier(class_weight={0: 1.0, 1: 3.0, 2: 1.0}, **PLAIN)
        both = est.fit(X, PLACE, sample_weight=weight).decision_function(NEW)
        product = weight * np.where(PLACE == 1, 3.0, 1.0)
        one = (
            KernelRidgeClassifier(**PLAIN)
            .fit(X, PLACE, sample_weight=product)
            .decision_function(NEW)
        )
        np.testing.assert_allclose(both, one, rtol=1e-8, atol=1e-9)

    def test_balanced_classes_count_the_same(self):
        rare = np.concatenate([np.flatnonzero(PLACE == 0), np.flatnonzero(PLACE == 1)[:3]])
        est = KernelRidgeClassifier(
            class_weight="balanced", penalty=0.1, kernel="gaussian", lengthscale="median"
        ).fit(X[rare], PLACE[rare])
        counts = np.bincount(PLACE[rare])
        weight = (len(rare) / (2 * counts))[PLACE[rare]]
        other = KernelRidgeClassifier(penalty=0.1, kernel="gaussian", lengthscale="median").fit(
            X[rare], PLACE[rare], sample_weight=weight
        )
        np.testing.assert_allclose(
            est.decision_function(NEW), other.decision_function(NEW), rtol=1e-8, atol=1e-9
        )

    @pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 1.0, 2: 0.0}, None])
    def test_a_class_without_weight_is_left_out(self, class_weight):
        est = KernelRidgeClassifier(class_weight=class_weight, **PLAIN)
        weight = None if class_weight else (PLACE < 2).astype(float)
        est.fit(X, PLACE, sample_weight=weight)
        np.testing.assert_array_equal(est.classes_, [0, 1])
        two = KernelRidgeClassifier(**PLAIN).fit(X[PLACE < 2], PLACE[PLACE < 2])
        np.testing.assert_allclose(
            est.decision_function(NEW), two.decision_function(NEW), rtol=1e-8, atol=1e-9
        )


class TestValidation:
    @pytest.mark.parametrize("kind", LABELS)
    def test_the_callback_takes_labels(self, kind):
        labels = LABELS[kind]
        validate = Validate(NEW, labels[NEW_PLACE])
        est = KernelRidgeClassifier(landmarks=20, random_state=0, callbacks=[validate], **PLAIN)
        est.fit(X, labels[PLACE])
        error = np.mean(est.predict(NEW) != labels[NEW_PLACE])
        assert est.history_[-1]["valid_error"] == pytest.approx(error)
        codes = np.where(NEW_PLACE[:, None] == np.argsort(np.argsort(labels))[None], 1.0, -0.5)
        rmse = np.sqrt(((est.decision_function(NEW) - codes) ** 2).mean())
        if kind != "strings":  # whose order is another
            assert est.history_[-1]["valid_rmse"] == pytest.approx(rmse, rel=1e-9)

    def test_two_classes(self):
        y: Any = np.where(PLACE > 0, "yes", "no")
        validate = Validate(NEW, np.where(NEW_PLACE > 0, "yes", "no"))
        est = KernelRidgeClassifier(callbacks=[validate], **PLAIN).fit(X, y)
        error = np.mean(est.predict(NEW) != validate.y)
        assert est.history_[-1]["valid_error"] == pytest.approx(error)

    def test_a_label_that_was_not_there_in_training(self):
        validate = Validate(NEW, np.full(len(NEW), 9))
        with pytest.raises(ValueError, match="labels must be classes seen in training, not 9"):
            KernelRidgeClassifier(callbacks=[validate], **PLAIN).fit(X, PLACE)


def test_a_failed_fit_keeps_the_classes():
    est = KernelRidgeClassifier(**PLAIN).fit(X, PLACE)
    with pytest.raises(ValueError, match="one class only"):
        est.fit(X[:, :2], np.zeros(len(X)))
    assert est.score(NEW, NEW_PLACE) > 0.9


def test_warm_start():
    est = KernelRidgeClassifier(landmarks=20, warm_start=True, random_state=0, **PLAIN).fit(
        X, PLACE
    )
    expected = est.decision_function(NEW)
    assert est.fit(X, PLACE).n_iter_ <= 2  # the second where the start is just beyond tol
    np.testing.assert_allclose(est.decision_function(NEW), expected, atol=1e-4)
    assert est.fit(X, PLACE > 0).decision_function(NEW).ndim == 1  # other classes: from the start
