"""kernel="precomputed": the matrix of a kernel in place of rows, as in scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import sklearn.kernel_ridge
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import get_tags

from gramian import (
    KernelCCA,
    KernelKMeans,
    KernelModel,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    NystromTransformer,
    load,
)
from gramian.callbacks import Validate
from gramian.data import ArrayRows
from gramian.kernels import Gaussian
from gramian.landmarks import KMeans, RPCholesky, Uniform

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(-2, 2, (120, 3)), RNG.uniform(-2, 2, (30, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
PENALTY = 1e-4
PLAIN: dict[str, Any] = {"penalty": PENALTY, "standardize": False, "random_state": 0, "tol": 1e-10}


def gram(x: np.ndarray, z: np.ndarray = X) -> np.ndarray:
    return np.exp(-cdist(x, z, "sqeuclidean") / 2)


def matrix_fit(**settings: Any) -> KernelRidge:
    return KernelRidge("precomputed", **(PLAIN | settings)).fit(gram(X), Y)


@pytest.mark.parametrize("solver", ["auto", "direct", "pcg", "askotch"])
def test_is_what_scikit_learn_computes(solver):
    theirs = sklearn.kernel_ridge.KernelRidge(alpha=PENALTY * 120, kernel="precomputed")
    theirs.fit(gram(X), Y)
    est = matrix_fit(solver=solver, max_iter=2000)
    np.testing.assert_allclose(est.predict(gram(NEW)), theirs.predict(gram(NEW)), atol=2e-6)
    np.testing.assert_allclose(est.dual_coef_, theirs.dual_coef_, atol=1e-3)
    assert est.kernel_ == "precomputed"
    assert est.n_features_in_ == 120


def test_several_targets_weights_and_float32():
    both, weights = np.column_stack([Y, Y**2]), RNG.integers(0, 3, 120)
    est = KernelRidge("precomputed", **PLAIN).fit(gram(X), both, sample_weight=weights)
    seen = weights > 0
    K, W = gram(X[seen], X[seen]), np.diag(weights.sum() * PENALTY / weights[seen])
    coef = np.linalg.solve(K + W, both[seen])
    np.testing.assert_allclose(est.predict(gram(NEW)), gram(NEW, X[seen]) @ coef, atol=1e-8)
    assert not est.dual_coef_[~seen].any()
    narrow = KernelRidge("precomputed", **PLAIN | {"tol": 1e-6})
    narrow.fit(gram(X).astype(np.float32), Y)
    np.testing.assert_allclose(
        narrow.predict(gram(NEW)), matrix_fit().predict(gram(NEW)), atol=0.02
    )


@pytest.mark.parametrize("landmarks", [25, Uniform(25), RPCholesky(25), "recursive_rls"])
def test_landmarks_are_rows_of_the_matrix(landmarks):
    est = matrix_fit(landmarks=landmarks)
    index = est.landmark_index_
    K, G = gram(X, X[index]), gram(X[index], X[index])
    coef = np.linalg.solve(K.T @ K + 120 * PENALTY * G, K.T @ Y)
    np.testing.assert_allclose(est.predict(gram(NEW)), gram(NEW, X[index]) @ coef, atol=1e-5)
    assert set(np.flatnonzero(est.dual_coef_)) <= set(index)


def test_the_default_chooses_the_penalty_and_scales_the_target():
    far = 1000 + 50 * Y
    est = KernelRidge("precomputed", random_state=0).fit(gram(X), far)
    same = KernelRidge(
        Gaussian(1.0), random_state=0, lengthscale="median", standardize=False,
        standardize_target=True,
    ).fit(X, far)  # fmt: skip
    assert est.penalty_ == pytest.approx(same.penalty_)
    np.testing.assert_allclose(est.predict(gram(NEW)), same.predict(NEW), rtol=1e-6)
    assert est.score(gram(X), far) > 0.99


def test_classes_have_labels_and_probabilities(tmp_path):
    labels = np.array(["low", "high"])[(Y > 0).astype(int)]
    est = KernelRidgeClassifier("precomputed", random_state=0).fit(gram(X), labels)
    true = np.array(["low", "high"])[(np.sin(NEW[:, 0]) + NEW[:, 1] * NEW[:, 2] > 0).astype(int)]
    assert est.score(gram(NEW), true) > 0.8
    assert est.predict_proba(gram(NEW)).shape == (30, 2)
    est.save(tmp_path / "labels.model")
    again = load(tmp_path / "labels.model")
    np.testing.assert_array_equal(again.predict(gram(NEW)), est.predict(gram(NEW)))


def test_another_loss_and_early_stopping():
    est = matrix_fit(loss="huber", landmarks=40, tol=1e-6)
    assert est.score(gram(X), Y) > 0.95
    stopped = matrix_fit(solver="pcg", early_stopping=True)
    assert stopped.score(gram(X), Y) > 0.9


# --- scikit-learn --------------------------------------------------------------------------------


def test_cross_validation_takes_rows_and_columns():
    est = KernelRidge("precomputed", **PLAIN)
    assert get_tags(est).input_tags.pairwise
    assert not get_tags(est).input_tags.sparse
    assert not get_tags(KernelRidge()).input_tags.pairwise
    rows = KernelRidge(Gaussian(1.0), lengthscale="median", **PLAIN)
    got = cross_val_predict(est, gram(X), Y, cv=4)
    np.testing.assert_allclose(got, cross_val_predict(rows, X, Y, cv=4), atol=1e-7)
    assert (
        cross_val_score(KernelRidgeClassifier("precomputed", **PLAIN), gram(X), Y > 0).min() > 0.7
    )
    search = GridSearchCV(est, {"penalty": [1e-4, 1e3]}, cv=3).fit(gram(X), Y)
    assert search.best_params_ == {"penalty": 1e-4}


def test_copies_and_files_predict_and_hold_no_matrix(tmp_path):
    est = matrix_fit()
    stored = pickle.dumps(est)
    assert len(stored) < gram(X).nbytes / 4
    expected = est.predict(gram(NEW))
    np.testing.assert_array_equal(pickle.loads(stored).predict(gram(NEW)), expected)
    assert clone(est).kernel == "precomputed"
    est.save(tmp_path / "a.model")
    loaded = KernelModel.load(tmp_path / "a.model")
    np.testing.assert_allclose(loaded.predict(gram(NEW))[:, 0], expected, rtol=1e-12)


def test_the_plan_counts_what_a_solver_needs_beside_the_matrix():
    plan = KernelRidge("precomputed", penalty=0.1).plan(gram(X))
    assert (plan.solver, plan.kernel_evaluations, plan.landmarks) == ("direct", 120**2, None)
    assert KernelRidge("precomputed", landmarks=30).plan(gram(X)).landmarks == 30
    with pytest.raises(ValueError, match=r"dense square matrix .* shape \(30, 120\)"):
        KernelRidge("precomputed").plan(gram(NEW))
    with pytest.raises(ValueError, match="cells cannot be combined with kernel='precomputed'"):
        KernelRidge("precomputed", cells=50).check_memory(gram(X))
    with pytest.raises(ValueError, match="memory_limit"):
        KernelRidge("precomputed", solver="direct", memory_limit=1000).check_memory(gram(X))


@pytest.mark.parametrize("solver", ["direct", "pcg", "askotch", "falkon", "eigenpro2"])
def test_float32_matrices_go_with_each_solver(solver):
    est = KernelRidge(
        "precomputed",
        penalty=0.01, standardize=False, random_state=0, solver=solver, tol=1e-5, max_iter=2000,
        landmarks=60 if solver == "falkon" else None,
    )  # fmt: skip
    got = est.fit(gram(X).astype(np.float32), Y).predict(gram(NEW).astype(np.float32))
    index = np.arange(120) if est.landmark_index_ is None else est.landmark_index_
    K, G = gram(X, X[index]), gram(X[index], X[index])
    coef = np.linalg.solve(K.T @ K + 120 * 0.01 * G, K.T @ Y)
    np.testing.assert_allclose(got, gram(NEW, X[index]) @ coef, atol=2e-3)


# --- features ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_components_of_a_matrix_are_those_of_its_rows(dtype):
    tol = 1e-8 if dtype is np.float64 else 2e-4
    K, new = gram(X).astype(dtype), gram(NEW).astype(dtype)
    pca = KernelPCA(3, kernel="precomputed", landmarks=None).fit(K)
    same = KernelPCA(3, kernel=Gaussian(1.0), landmarks=None).fit(X)
    np.testing.assert_allclose(pca.transform(new), same.transform(NEW), atol=10 * tol)
    np.testing.assert_allclose(pca.eigenvalues_, same.eigenvalues_, rtol=tol)
    assert pca.transform(new).dtype == dtype
    assert pca.kernel_ == "precomputed"
    stored = pickle.dumps(KernelPCA(3, kernel="precomputed", landmarks=20, random_state=0).fit(K))
    assert len(stored) < K.nbytes / 4
    assert pickle.loads(stored).transform(new).shape == (30, 3)


def test_features_of_landmarks_come_from_their_columns():
    features = NystromTransformer(kernel="precomputed", n_components=30, random_state=0)
    F, new = features.fit_transform(gram(X)), features.transform(gram(NEW))
    Z = X[features.landmark_index_]
    expected = gram(X, Z) @ np.linalg.pinv(gram(Z, Z), rcond=1e-12) @ gram(Z, NEW)
    np.testing.assert_allclose(F @ new.T, expected, atol=1e-6)
    np.testing.assert_array_equal(features.components_, gram(Z))
    assert get_tags(features).input_tags.pairwise
    with pytest.raises(AttributeError, match="have no kernel, only its values"):
        _ = features.map_.kernel


def test_clusters_of_a_matrix_are_those_of_its_rows():
    ours = KernelKMeans(3, kernel="precomputed", landmarks=50, random_state=0).fit(gram(X))
    same = KernelKMeans(3, kernel=Gaussian(1.0), landmarks=50, random_state=0).fit(X)
    np.testing.assert_array_equal(ours.labels_, same.labels_)
    np.testing.assert_array_equal(ours.predict(gram(NEW)), same.predict(NEW))


@pytest.mark.parametrize(
    ("est", "match"),
    [
        (KernelPCA(2, fit_inverse_transform=True), "fit_inverse_transform=True requires rows"),
        (KernelPCA(2, lengthscale=2.0), "has no effect on kernel='precomputed'"),
        (NystromTransformer(landmarks=X[:5]), "are rows of its matrix"),
        (NystromTransformer(landmarks=KMeans(5)), "are rows of its matrix"),
    ],
)
def test_features_that_need_rows_are_refused(est, match):
    with pytest.raises(ValueError, match=match):
        est.set_params(kernel="precomputed").fit(gram(X))


@pytest.mark.parametrize("est", [KernelPCA(2), NystromTransformer(), KernelKMeans(2)])
def test_features_need_a_square_matrix_to_fit(est):
    with pytest.raises(ValueError, match="dense square matrix"):
        est.set_params(kernel="precomputed").fit(gram(NEW))
    fitted = est.fit(gram(X))
    with pytest.raises(ValueError, match=r"must have 120 columns, .* not shape \(30, 30\)"):
        fitted.transform(gram(NEW, NEW))


# --- where the matrix is -------------------------------------------------------------------------


@pytest.mark.parametrize("landmarks", [None, 30])
def test_a_memory_map_is_read_where_it_is(landmarks, tmp_path, monkeypatch):
    np.save(tmp_path / "gram.npy", gram(X))
    mapped = np.load(tmp_path / "gram.npy", mmap_mode="r")
    seen = []

    from gramian.fitting.inputs import kernel_matrix as precomputed

    def watched(rows):
        seen.append(original(rows))
        return seen[-1]

    original = precomputed._matrix
    monkeypatch.setattr(precomputed, "_matrix", watched)
    expected = matrix_fit(landmarks=landmarks, solver="auto").predict(gram(NEW))
    for given in (mapped, tmp_path / "gram.npy", gram(X)):
        est = KernelRidge("precomputed", landmarks=landmarks, **PLAIN).fit(given, Y)
        np.testing.assert_allclose(est.predict(gram(NEW)), expected, rtol=1e-8, atol=1e-10)
    assert np.shares_memory(seen[1], mapped)  # no copy


def test_a_table_of_a_matrix_is_read_whole(tmp_path):
    for name, K in (("gram", gram(X)), ("new", gram(NEW))):
        table = pa.table({f"k{j}": K[:, j] for j in range(120)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
    est = KernelRidge("precomputed", **PLAIN).fit(tmp_path / "gram.parquet", Y)
    got = est.predict(tmp_path / "new.parquet")
    np.testing.assert_allclose(got, matrix_fit().predict(gram(NEW)), atol=1e-9)


def test_rows_that_come_in_parts_are_put_together():
    class InParts(ArrayRows):
        def blocks(self, size):
            return super().blocks(min(size, 50))

    est = KernelRidge("precomputed", **PLAIN).fit(InParts(gram(X)), Y)
    np.testing.assert_allclose(est.predict(gram(NEW)), matrix_fit().predict(gram(NEW)), atol=1e-9)


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (gram(X)[:, :50], r"dense square matrix .* not a matrix of shape \(120, 50\)"),
        (scipy.sparse.csr_matrix(gram(X)), "(?i)sparse"),
        (gram(X, X[::-1]) + np.eye(120) * np.arange(120), "symmetric"),
        (gram(X) * np.arange(120), "symmetric matrix"),
        (-gram(X), "no negative number on its diagonal"),
    ],
)
def test_what_is_no_kernel_matrix_is_refused(given, match):
    with pytest.raises((ValueError, TypeError), match=match):
        KernelRidge("precomputed", **PLAIN).fit(given, Y)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"metric": "learned"}, "metric cannot be combined with kernel='precomputed'"),
        ({"cells": 50}, "cells cannot be combined with kernel='precomputed'"),
        ({"warm_start": True}, "warm_start cannot be combined with"),
        ({"centers_file": "a.npy"}, "centers_file cannot be combined with"),
        ({"callbacks": [Validate(X, Y)]}, "Validate cannot be combined with"),
        ({"landmarks": KMeans(5)}, "are rows of its matrix"),
        ({"landmarks": X[:5]}, "are rows of its matrix"),
        ({"standardize": True}, "leave standardize out"),
        ({"lengthscale": 2.0}, "has no effect on kernel='precomputed'"),
        ({"conformal": "split"}, "conformal='split' requires rows"),
    ],
)
def test_settings_that_need_rows_are_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        matrix_fit(**settings)


def test_new_rows_have_a_column_for_each_row_of_training():
    says = r"must have 120 columns, .* the 120 training rows, not shape \(30, 119\)"
    for new in (gram(NEW)[:, 1:], gram(NEW)[:, 1:], gram(NEW)[:, 1:].tolist()):
        with pytest.raises(ValueError, match=says):
            matrix_fit().predict(new)
    with pytest.raises(
        AttributeError, match=r"require the training rows.*kernel='precomputed' do not keep"
    ):
        _ = matrix_fit().gcv_
    with pytest.raises(ValueError, match="kernel='precomputed' is supported only by KernelRidge"):
        KernelRidge("precomputed", penalty=0.1, solver="eigenpro3").partial_fit(gram(X), Y)
    with pytest.raises(ValueError, match="kernel='precomputed' is supported only by KernelRidge"):
        KernelCCA(1, kernel="precomputed").fit(gram(X), gram(X))
    with pytest.raises(ValueError, match="gradients require rows of features"):
        matrix_fit().gradient(gram(NEW))
    with pytest.raises(AttributeError, match="feature_importances_ requires rows of features"):
        _ = matrix_fit().feature_importances_
    with pytest.raises(ValueError, match="not 'precomputed'"):
        KernelRidgeCV(kernel="precomputed").fit(gram(X), Y)
