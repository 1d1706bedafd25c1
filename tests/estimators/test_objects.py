"""Kernels that are Python functions of two objects: strings of molecules, sets, rows of arrays."""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
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
)
from gramian.callbacks import Validate
from gramian.fitting.inputs.objects import CallCost, Calls

MOLECULES = {
    "CCc1nc(CO)n[nH]1": 7.06, "CCCCOCCC=O": 6.21, "CC#CC(C)(C)C1CC1": 8.3, "C#Cc1oncc1N": 4.86,
    "O=C1COCC2(CC2)N1": 7.21, "C#Cc1cccnc1O": 5.05, "Cc1cn[nH]c1C1CC1": 6.44, "COc1nccn1C": 6.68,
    "O=C1CC2=C(CCC2)C1": 5.9, "C#Cc1c(O)noc1N": 5.9, "CCCCOC1COC1": 8.66, "Cc1oc(N)nc1N": 5.88,
    "CCCc1c[nH]c(C)c1": 6.56, "Cc1nn(C=O)c(=O)o1": 6.1, "C#CCC(C)(C)C(C)C": 8.42,
    "CNc1nonc1C": 5.75, "Nc1occc1NC=O": 5.77, "CC1=CCc2ccnn21": 5.59, "COc1c(N)coc1C": 6.08,
    "O=CN1C=CC=CC=C1": 3.83, "Nc1cocc1C=O": 4.6, "COc1nc(N)co1": 6.22, "N#Cc1ccoc(=O)c1": 4.35,
    "NC1=NCc2[nH]ncc21": 6.14, "Nc1cccnc(=O)c1": 4.09, "OCCNc1nc[nH]n1": 6.11,
    "CCOC(CC)CC": 8.83, "NC1(c2nnon2)CC1": 5.29, "CC(=O)c1conc1C": 5.6, "O=C1C=C(CO)CCC1": 5.15,
    "CNC1=NCC(=O)N1C": 6.3, "C#CC(C#C)(C#N)OC": 7.05, "CC1(CCO)COC1": 8.55,
    "CN(C)c1cccn1C": 6.34, "O=CCOCC1(O)CC1": 6.04, "CC1=CCC(=O)NCC1": 6.64, "Nc1nc(C=O)no1": 5.09,
    "CN(C=O)c1ccc[nH]1": 6.44, "Cc1nc2nocc2o1": 5.76, "CCn1ncnc1N": 6.8, "C1=NCc2nocc2O1": 6.07,
    "CC(C)N1CCNC1=O": 7.92, "O=C1CCCC12CC2": 6.07, "Nc1ccc(OC=O)o1": 5.22, "c1ccc2occc2c1": 5.53,
    "Cc1oc(O)nc1O": 6.25, "Cn1ncc(OC=O)n1": 6.44, "CN(C=O)C1(C)CCC1": 7.21,
    "Cc1c[nH]c(=O)[nH]c1=O": 5.57, "O=CCCC1=CCOC1": 5.62, "Cc1cn(C=O)cc1N": 4.79,
    "O=CCOCCO": 6.22, "O=C1Cc2ncoc2C1": 5.7, "O=c1cc[nH]c(=O)cn1": 4.62, "Cc1cc(=O)oc(N)n1": 5.22,
    "N#CCC#CCO": 7.56,
}  # fmt: skip
"""Molecules of QM9 as SMILES, and the gap between their frontier orbitals in eV."""

SMILES, GAP = list(MOLECULES), np.array(list(MOLECULES.values()))
TRAIN, TEST = SMILES[:40], SMILES[40:]
PLAIN: dict[str, Any] = {"penalty": 1e-3, "standardize_target": True, "random_state": 0}


@cache
def substrings(text: str) -> Counter[str]:
    found = Counter(text[i : i + k] for k in (1, 2, 3) for i in range(len(text) - k + 1))
    norm = sum(value**2 for value in found.values()) ** 0.5
    return Counter({key: value / norm for key, value in found.items()})


def spectrum(a: str, b: str) -> float:
    """The cosine of the counts of substrings up to three letters."""
    x, y = substrings(a), substrings(b)
    return sum(value * y[key] for key, value in x.items() if key in y)


class Counted:
    """The same, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, a: str, b: str) -> float:
        self.calls += 1
        return spectrum(a, b)


def gram(a: list[str], b: list[str]) -> np.ndarray:
    return np.array([[spectrum(x, z) for z in b] for x in a])


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch):
    """Calls that measure the speed are two, so that others can be counted."""
    monkeypatch.setattr("gramian.fitting.inputs.objects.MEASURED_CALLS", 2)


# --- regression and classification ---------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "pcg", "askotch"])
def test_strings_of_molecules_end_to_end(solver):
    est = KernelRidge(spectrum, solver=solver, tol=1e-10, max_iter=2000, **PLAIN)
    est.fit(TRAIN, GAP[:40])
    same = KernelRidge("precomputed", **PLAIN).fit(gram(TRAIN, TRAIN), GAP[:40])
    expected = same.predict(gram(TEST, TRAIN))
    np.testing.assert_allclose(est.predict(TEST), expected, atol=1e-6)
    np.testing.assert_allclose(est.dual_coef_, same.dual_coef_, atol=1e-4)
    assert est.objects_ == TRAIN
    error = np.abs(est.predict(TEST) - GAP[40:]).mean()
    assert error < 0.85 * np.abs(GAP[:40].mean() - GAP[40:]).mean()


def test_each_pair_is_called_once():
    counted = Counted()
    est = KernelRidge(counted, **PLAIN).fit(TRAIN, GAP[:40])
    assert counted.calls == 2 + 40 * 41 // 2
    est.predict(TEST)
    assert counted.calls == 2 + 40 * 41 // 2 + 16 * 40


def test_landmarks_save_calls_and_are_the_only_objects_kept():
    counted = Counted()
    est = KernelRidge(counted, landmarks=10, **PLAIN).fit(TRAIN, GAP[:40])
    assert counted.calls <= 2 + 40 * 10 - 10 * 9 // 2 + 30  # the diagonal of others
    assert est.objects_ == [TRAIN[i] for i in sorted(est.landmark_index_)]
    before = counted.calls
    got = est.predict(TEST)
    assert counted.calls == before + 16 * 10
    same = KernelRidge("precomputed", landmarks=10, **PLAIN).fit(gram(TRAIN, TRAIN), GAP[:40])
    np.testing.assert_allclose(got, same.predict(gram(TEST, TRAIN)), atol=1e-6)


@pytest.mark.parametrize("landmarks", [12, "rpcholesky", "recursive_rls"])
def test_selectors_and_falkon(landmarks):
    est = KernelRidge(spectrum, landmarks=landmarks, solver="falkon", **PLAIN).fit(TRAIN, GAP[:40])
    index = est.landmark_index_
    centers = [TRAIN[i] for i in index]
    K, G = gram(TRAIN, centers), gram(centers, centers)
    y = (GAP[:40] - GAP[:40].mean()) / GAP[:40].std()
    coef = np.linalg.solve(K.T @ K + 40 * 1e-3 * G, K.T @ y)
    expected = GAP[:40].mean() + GAP[:40].std() * gram(TEST, centers) @ coef
    np.testing.assert_allclose(est.predict(TEST), expected, atol=1e-3)


def test_penalty_is_chosen_targets_are_several_and_weights_count():
    est = KernelRidge(spectrum, random_state=0).fit(TRAIN, GAP[:40])
    same = KernelRidge("precomputed", random_state=0).fit(gram(TRAIN, TRAIN), GAP[:40])
    assert est.penalty_ == pytest.approx(same.penalty_)
    both, weights = np.column_stack([GAP, GAP**2])[:40], np.arange(40) % 3
    est = KernelRidge(spectrum, **PLAIN).fit(TRAIN, both, weights)
    same = KernelRidge("precomputed", **PLAIN).fit(gram(TRAIN, TRAIN), both, weights)
    np.testing.assert_allclose(est.predict(TEST), same.predict(gram(TEST, TRAIN)), rtol=1e-8)
    assert est.objects_ == [text for text, weight in zip(TRAIN, weights, strict=True) if weight]


def test_targets_of_zeros_keep_one_center():
    est = KernelRidge(spectrum, penalty=1e-3).fit(TRAIN, np.zeros(40))
    assert est.objects_ == TRAIN[:1]
    assert not est.predict(TEST).any()


def test_classes_of_molecules():
    labels = np.where(np.array(["1" in text for text in SMILES]), "ring", "chain")
    est = KernelRidgeClassifier(spectrum, random_state=0).fit(TRAIN, labels[:40])
    assert est.score(TEST, labels[40:]) > 0.9
    assert est.predict_proba(TEST).shape == (16, 2)
    assert set(est.predict(TEST)) == {"chain", "ring"}


@pytest.mark.parametrize("container", [tuple, np.array, pd.Series])
def test_objects_come_in_any_sequence(container):
    expected = KernelRidge(spectrum, **PLAIN).fit(TRAIN, GAP[:40]).predict(TEST)
    est = KernelRidge(spectrum, **PLAIN).fit(container(TRAIN), GAP[:40])
    np.testing.assert_array_equal(est.predict(container(TEST)), expected)


def test_objects_may_be_sets_or_rows_of_an_array():
    def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
        return len(a & b) / len(a | b)

    sets = [frozenset(text) for text in SMILES]
    est = KernelRidge(jaccard, **PLAIN).fit(sets[:40], GAP[:40])
    assert np.isfinite(est.predict(sets[40:])).all()
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = KernelRidge(
        lambda a, b: np.exp(-((a - b) ** 2).sum() / 2), penalty=1e-3, standardize_target=False
    )
    same = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3, standardize=False)
    np.testing.assert_allclose(
        rows.fit(X, X[:, 0]).predict(X), same.fit(X, X[:, 0]).predict(X), atol=1e-9
    )


# --- scikit-learn, copies and files --------------------------------------------------------------


def test_cross_validation_takes_objects():
    est = KernelRidge(spectrum, **PLAIN)
    assert not get_tags(est).input_tags.pairwise
    got = cross_val_predict(est, SMILES, GAP, cv=4)
    same = cross_val_predict(KernelRidge("precomputed", **PLAIN), gram(SMILES, SMILES), GAP, cv=4)
    np.testing.assert_allclose(got, same, atol=1e-8)
    search = GridSearchCV(est, {"penalty": [1e-3, 1e3]}, cv=3).fit(SMILES, GAP)
    assert search.best_params_ == {"penalty": 1e-3}


def test_a_function_that_pickles_makes_a_model_that_does(tmp_path):
    est = KernelRidge(spectrum, landmarks=10, **PLAIN).fit(TRAIN, GAP[:40])
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(again.predict(TEST), est.predict(TEST))
    assert clone(est).kernel is spectrum
    with pytest.raises(ValueError, match="a model file cannot contain a Python function"):
        est.save(tmp_path / "a.model")
    assert not list(tmp_path.iterdir())
    est.model_.save(tmp_path / "of_values.model")  # of the kernel with the objects that are kept
    of_values = KernelModel.load(tmp_path / "of_values.model")
    values = of_values.predict(gram(TEST, est.objects_))[:, 0]
    np.testing.assert_allclose(values, est.predict(TEST), rtol=1e-10)
    unnamed = KernelRidge(lambda a, b: spectrum(a, b), **PLAIN).fit(TRAIN, GAP[:40])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(unnamed)


def test_a_fit_to_rows_and_one_to_objects_leave_nothing_of_each_other():
    X = np.random.default_rng(0).normal(size=(40, 3))
    est = KernelRidge("gaussian", penalty=1e-3).fit(X, GAP[:40])
    est.set_params(kernel=spectrum).fit(TRAIN, GAP[:40])
    assert not hasattr(est, "n_features_in_")
    est.set_params(kernel="gaussian").fit(X, GAP[:40])
    assert est.predict(X).shape == (40,)


# --- what it costs -------------------------------------------------------------------------------


def test_the_cost_is_told_first(caplog, monkeypatch):
    monkeypatch.setattr("gramian.fitting.inputs.objects.MEASURED_CALLS", 50)
    with caplog.at_level(logging.WARNING, logger="gramian"):
        KernelRidge(spectrum, landmarks=10, **PLAIN).fit(TRAIN, GAP[:40])
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the kernel spectrum is a Python function, called for each pair: about")
    assert "about 355 calls" in line
    assert "per second (measured on a few pairs)" in line
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="gramian"):
        KernelPCA(2, kernel=spectrum, landmarks=None).fit(TRAIN)
    assert "about 820 calls" in caplog.text
    assert CallCost("k", 300, 100.0).seconds == 3.0


def test_long_predictions_say_so_first(caplog, monkeypatch):
    est = KernelRidge(spectrum, **PLAIN).fit(TRAIN, GAP[:40])
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="gramian"):
        est.predict(TEST)
        assert not caplog.records
        monkeypatch.setattr("gramian.fitting.inputs.objects.LONG_SECONDS", 0.0)
        est.predict(TEST)
    assert "about 640 calls" in caplog.text


def test_a_plan_counts_the_calls():
    quick = KernelRidge("precomputed", penalty=0.1).plan(gram(TRAIN, TRAIN))
    plan = KernelRidge(slow, penalty=0.1).plan(TRAIN)
    assert plan.kernel_evaluations == quick.kernel_evaluations == 1600
    assert plan.seconds > 820 * 1e-3
    few = KernelRidge(slow, penalty=0.1, landmarks=5).plan(TRAIN, GAP[:40])
    assert few.landmarks == 5
    assert few.seconds > (40 * 5 - 10) * 1e-3


def slow(a: str, b: str) -> float:
    """The same, taking a millisecond at least."""
    time.sleep(1e-3)
    return spectrum(a, b)


# --- features of objects -------------------------------------------------------------------------


def test_components_features_and_clusters_of_objects():
    new = gram(TEST, TRAIN)
    pca = KernelPCA(3, kernel=spectrum, landmarks=None).fit(TRAIN)
    same = KernelPCA(3, kernel="precomputed", landmarks=None).fit(gram(TRAIN, TRAIN))
    np.testing.assert_allclose(pca.transform(TEST), same.transform(new), atol=1e-8)
    nystrom = NystromTransformer(kernel=spectrum, landmarks=10, random_state=0).fit(TRAIN)
    assert nystrom.components_ == [TRAIN[i] for i in nystrom.landmark_index_]
    F = nystrom.transform(TEST)
    Z = nystrom.components_
    expected = gram(TEST, Z) @ np.linalg.inv(gram(Z, Z)) @ gram(Z, TEST)
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-8)
    groups = KernelKMeans(2, kernel=spectrum, landmarks=20, random_state=0).fit(TRAIN)
    np.testing.assert_array_equal(groups.predict(TRAIN), groups.labels_)
    again = pickle.loads(pickle.dumps(groups))
    np.testing.assert_array_equal(again.predict(TEST), groups.predict(TEST))


def test_features_of_landmarks_call_for_these_alone():
    counted = Counted()
    est = NystromTransformer(kernel=counted, landmarks=9, random_state=0).fit(TRAIN)
    before = counted.calls
    assert before <= 2 + 9 * 10 // 2 + 31  # the diagonal of others
    est.transform(TEST)
    assert counted.calls == before + 16 * 9


def test_entries_are_kept_in_either_order():
    counted = Counted()
    calls, every = Calls(counted, TRAIN), np.arange(40)
    first = np.array([3, 1])
    a = calls.block(every, first)
    assert counted.calls == 40 + 39
    b = calls.block(first, every)
    assert counted.calls == 40 + 39
    np.testing.assert_array_equal(a, b.T)
    np.testing.assert_array_equal(a, gram(TRAIN, [TRAIN[3], TRAIN[1]]))
    calls.diagonal(every)
    calls.diagonal(every)
    assert counted.calls == 40 + 39 + 38 == calls.calls


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda a, b: len(a) - len(b), r"symmetric, but <lambda> returned 5 for objects 0 and 20"),
        (lambda a, b: a + b, "must return a number, but <lambda> returned 'CC.* for objects 0 and"),
        (
            lambda a, b: None,
            "must return a number, but <lambda> returned None for objects 0 and 20",
        ),
        (
            lambda a, b: float("nan"),
            "finite numbers, but <lambda> returned nan for objects 0 and 20",
        ),
        (lambda a, b: -spectrum(a, b), "use a positive definite kernel"),
    ],
)
def test_what_is_no_kernel_is_refused(function, match):
    with pytest.raises(ValueError, match=match):
        KernelRidge(function, **PLAIN).fit(TRAIN, GAP[:40])


def test_errors_of_a_function_come_through():
    def broken(a: str, b: str) -> float:
        if a != b and "#" in a:
            raise RuntimeError("no triple bonds")
        return float(a == b)

    est = KernelRidge(spectrum, **PLAIN).fit(TRAIN, GAP[:40])
    before = est.predict(TEST)
    with pytest.raises(RuntimeError, match="no triple bonds"):
        est.set_params(kernel=broken).fit(TRAIN, GAP[:40])
    np.testing.assert_array_equal(est.set_params(kernel=spectrum).predict(TEST), before)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"metric": "learned"}, "metric cannot be combined with a kernel of objects"),
        ({"cells": 20}, "cells cannot be combined with a kernel of objects"),
        (
            {"callbacks": [Validate(TRAIN, GAP)]},
            "Validate cannot be combined with a kernel of objects",
        ),
        ({"lengthscale": 2.0}, "has no effect on a kernel of objects"),
        (
            {"landmarks": np.zeros((2, 2))},
            "landmarks of a kernel of objects are rows of",
        ),
        (
            {"conformal": "split"},
            "requires rows of features, which a kernel of objects does not have",
        ),
        ({"memory_limit": 10_000}, r"40 columns of 40 kernel values need 12\.8 kB"),
    ],
)
def test_settings_that_need_rows_are_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        KernelRidge(spectrum, **PLAIN | settings).fit(TRAIN, GAP[:40])


@pytest.mark.parametrize(
    ("objects", "kind", "match"),
    [
        ([], ValueError, "not an empty list"),
        (pd.DataFrame({"smiles": TRAIN}), TypeError, "for a table, give one of its columns"),
        ({text: 1 for text in TRAIN}, TypeError, "not of type dict"),
        ((text for text in TRAIN), TypeError, "not of type generator"),
        (TRAIN[1:], ValueError, "inconsistent numbers of samples"),
    ],
)
def test_what_is_no_list_of_objects_is_refused(objects, kind, match):
    with pytest.raises(kind, match=match):
        KernelRidge(spectrum, **PLAIN).fit(objects, GAP[:40])


def test_what_needs_features_is_refused():
    est = KernelRidge(spectrum, **PLAIN).fit(TRAIN, GAP[:40])
    with pytest.raises(
        ValueError, match="gradients require rows of features, which a kernel of objects"
    ):
        est.gradient(TEST)
    assert not hasattr(est, "feature_importances_")
    with pytest.raises(ValueError, match="require the training rows"):
        est.predict(TEST, return_std=True)
    with pytest.raises(ValueError, match="partial_fit requires rows, which a kernel of objects"):
        KernelRidge(spectrum, solver="eigenpro3", penalty=0.1).partial_fit(TRAIN, GAP[:40])
    with pytest.raises(ValueError, match="a function as kernel is supported only by KernelRidge"):
        KernelCCA(1, kernel=spectrum).fit(np.eye(5), np.eye(5))
    with pytest.raises(ValueError, match="kernel must be 'auto', a name"):
        KernelRidgeCV(kernel=spectrum).fit(np.eye(5), np.arange(5.0))
    with pytest.raises(TypeError, match="names columns, but X of type list"):
        KernelRidge(spectrum).fit(TRAIN, GAP[:40], columns=["a"])
