"""Parameters by the names that other libraries have: which one of ours is meant."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pyarrow as pa
import pytest
from plain import PLAIN
from sklearn.base import clone

from gramian import KernelKMeans, KernelPCA, KernelRidge, KernelRidgeClassifier
from gramian.data import as_rows

GAMMA = r"KernelRidge has no parameter 'gamma'; use lengthscale: lengthscale = \(2 \* gamma\)"

WORDS = {
    "gamma": GAMMA,
    "alpha": "'alpha'; use penalty: penalty = alpha / n",
    "length_scale": "'length_scale'; use lengthscale",
    "n_components": "'n_components'; use landmarks: the number of centers",
    "lambda_": "'lambda_'; use penalty: per row",
    "reg": "'reg'; use penalty: per row",
    "C": r"'C'; use penalty: penalty = 1 / \(2 \* n \* C\)",
    "M": "'M'; use landmarks",
    "n_landmarks": "'n_landmarks'; use landmarks",
    "seed": "'seed'; use random_state$",
    "penalti": r"'penalti'; did you mean penalty\?",
}


@pytest.mark.parametrize("name", WORDS)
def test_synonyms_are_answered(name):
    with pytest.raises(TypeError, match=WORDS[name]):
        KernelRidge(**(PLAIN | {name: 1}))
    with pytest.raises(ValueError, match=WORDS[name]):
        KernelRidge(**PLAIN).set_params(**{name: 1})


def test_synonyms_of_other_estimators():
    with pytest.raises(TypeError, match="KernelRidgeClassifier has no parameter 'gamma'"):
        KernelRidgeClassifier(gamma=1)
    with pytest.raises(TypeError, match="KernelKMeans has no parameter 'gamma'"):
        KernelKMeans(3, gamma=1)
    assert KernelPCA(n_components=3).n_components == 3


def test_unknown_names_are_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'frobnicate'"):
        KernelRidge(frobnicate=1, **PLAIN)
    with pytest.raises(ValueError, match="Invalid parameter 'frobnicate'"):
        KernelRidge(**PLAIN).set_params(frobnicate=1)


def test_signature_copies_and_pickles_are_as_they_were():
    est = KernelRidge("laplacian", penalty=0.5, lengthscale="median")
    assert list(inspect.signature(KernelRidge).parameters)[:3] == [
        "kernel",
        "lengthscale",
        "penalty",
    ]
    for other in (clone(est), copy.deepcopy(est), pickle.loads(pickle.dumps(est))):
        assert other.get_params() == est.get_params()


def test_lists_of_features_are_cut():
    names = [f"pixel{i}" for i in range(50)]
    columns = np.random.default_rng(0).standard_normal((50, 30))
    table = pa.table(dict(zip(names, columns, strict=True)))
    est = KernelRidge(lengthscale=1.0, landmarks=5, kernel="gaussian", penalty=1e-6).fit(
        as_rows(table), columns[0] ** 2
    )
    for predict in (est.predict, est.model_.predict):
        with pytest.raises(ValueError, match=r"pixel19 and 30 more"):
            predict(as_rows(table.select(names[::-1])))
