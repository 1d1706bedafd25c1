"""Kernels that take features as they are given: counts, degrees, hours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.kernels import Gaussian, Tanimoto

RNG = np.random.default_rng(0)
X = RNG.integers(0, 4, (60, 8)).astype(float)
Y = 50 + X[:, 0] * (X[:, 1] > 0) - 3 * X[:, 2]
PENALTY = 1e-3


def tanimoto(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    shared = x @ z.T
    return shared / ((x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - shared)


def by_hand(x: np.ndarray) -> np.ndarray:
    """Predict with features as they are, and a target of mean 0 and deviation 1."""
    K, y = tanimoto(X, X), (Y - Y.mean()) / Y.std()
    coef = np.linalg.solve(K + PENALTY * len(X) * np.eye(len(X)), y)
    return Y.mean() + Y.std() * (tanimoto(x, X) @ coef)


@pytest.mark.parametrize("kernel", ["tanimoto", Tanimoto(), Tanimoto(counts="product")], ids=str)
@pytest.mark.parametrize("inputs", ["auto", False], ids=["auto", "as they are"])
def test_rows_are_taken_as_they_are_and_targets_scaled(kernel, inputs):
    est = KernelRidge(
        kernel, penalty=PENALTY, lengthscale="median", standardize=inputs, standardize_target=True
    )
    np.testing.assert_allclose(est.fit(X, Y).predict(X[:9] + 1), by_hand(X[:9] + 1), rtol=1e-8)
    sparse = est.fit(scipy.sparse.csr_matrix(X), Y).predict(scipy.sparse.csr_matrix(X[:9] + 1))
    np.testing.assert_allclose(sparse, by_hand(X[:9] + 1), rtol=1e-8)


def test_the_default_chooses_a_penalty_and_nothing_of_features():
    est = KernelRidge("tanimoto", random_state=0).fit(X, Y)
    assert est.model_.standardizer is None
    assert est.model_.quantiles is None
    assert isinstance(est.kernel_, Tanimoto)


@pytest.mark.parametrize("inputs", [True, "quantile"])
def test_changing_such_features_is_refused(inputs):
    kernel = 2.0 * Tanimoto() + Gaussian()
    for est in (
        KernelRidge("tanimoto", standardize=inputs),
        KernelRidgeClassifier(kernel, standardize=inputs),
    ):
        with pytest.raises(ValueError, match=r"changes features that .*; leave standardize out"):
            est.fit(X, (Y > 50).astype(int))
    with pytest.raises(ValueError, match=r"a metric changes features that .*Tanimoto"):
        KernelRidge("tanimoto", metric=np.ones(8)).fit(X, Y)
    with pytest.raises(ValueError, match="leave standardize out"):
        KernelRidge("tanimoto", solver="eigenpro3", landmarks=5, standardize=inputs).partial_fit(
            X, Y
        )


def test_tables_of_counts_stay_counts():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({f"bit{k}": X[:, k] for k in range(8)})
    plain = {"penalty": PENALTY, "lengthscale": "median", "standardize_target": True}
    est = KernelRidge("tanimoto", **plain).fit(table, Y)
    np.testing.assert_allclose(est.predict(table), by_hand(X), rtol=1e-8)
    table = table.append_column("colour", pyarrow.array(["red", "blue", "red"] * 20))
    est.fit(table, Y)
    rows = est.model_.rows(table).take(np.arange(60))
    np.testing.assert_array_equal(rows[:, :8], X)


def test_inputs_are_not_compared_for_them():
    many = RNG.integers(0, 4, (1100, 3)).astype(float)  # beyond those that are left out one by one
    est = KernelRidge("tanimoto", landmarks=50, random_state=0).fit(many, many[:, 0] + many[:, 1])
    assert est.model_.quantiles is None


@pytest.mark.parametrize("name", ["tanimoto", "linear", "cosine"])
def test_a_search_maps_no_features_of_such_kernels(name):
    est = KernelRidgeCV(name, random_state=0).fit(X, Y)
    assert name in str(est.best_params_["kernel"]).lower()
    for part in est.model_.parts:
        assert part.quantiles is None
        assert part.metric is None
        assert (part.standardizer is None) == (name == "tanimoto")
