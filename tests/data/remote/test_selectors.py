"""Landmarks and scores of rows that are elsewhere: the same as from memory."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close
from remote import Remote

from gramian import (
    KernelCCA,
    KernelRidge,
    NystromTransformer,
    effective_dimension,
    leverage_scores,
)
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Gaussian, Linear
from gramian.landmarks import (
    Bless,
    BlessR,
    KMeans,
    Landmarks,
    RecursiveRLS,
    Selector,
    TwoPass,
    Uniform,
    selectors,
)
from gramian.operators import KernelOperator

N, D = 1500, 3

SELECTORS = {
    Uniform(40): 41,
    Uniform(penalty=0.01): 101,
    TwoPass(m=40): 160,
    RecursiveRLS(m=40): 2 * N,
    RecursiveRLS(penalty=0.01): 2 * N,
    RecursiveRLS(m=40, accelerated=True): 2 * N,
    KMeans(20): 20 * 20 + 1,
}
"""Selectors, and the most rows that they take; BLESS takes more than there are, from so few."""

PATHS = [Bless(m=40), Bless(penalty=0.01), BlessR(m=40), BlessR(penalty=0.01)]


def points(dtype: np.dtype) -> np.ndarray:
    rng = RandomStream(0)
    return xp.cast(
        rng.standard_normal((N, D), np.float32) * np.array([1.0, 2.0, 3.0], dtype=np.float32), dtype
    )


def selected(selector: Selector, rows: object) -> Landmarks:
    K = KernelOperator(Gaussian(2.0), rows, rows, "numpy")
    return selector.select(K, rng=RandomStream(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("selector", [*SELECTORS, *PATHS], ids=repr)
def test_landmarks_are_those_of_the_same_rows_in_memory(selector, dtype):
    X = points(dtype)
    rows = Remote.of(X)
    found, expected = selected(selector, rows), selected(selector, as_rows(X))
    assert rows.traffic.taken <= SELECTORS.get(selector, 20 * N)
    assert_close(found.points, expected.points, rtol=1e-6, atol=1e-9)
    assert_close(found.weight, expected.weight, rtol=1e-6, atol=0)
    assert found.penalty == pytest.approx(expected.penalty, rel=1e-9)


def test_equal_rows_are_one_landmark():
    X = points(np.float64)
    X[::2] = X[0]
    rows = Remote.of(X)
    found = selected(Uniform(900), rows)
    assert len(found.points) == len(np.unique(found.points, axis=0)) == N // 2 + 1


@pytest.mark.parametrize("method", ["bless", "bless_r", "recursive_rls", "two_pass", "uniform"])
def test_scores_and_their_sum(method):
    X, given = points(np.float64), {"lengthscale": 2.0, "random_state": 0, "engine": "numpy"}
    for function in (leverage_scores, effective_dimension):
        found = function("gaussian", Remote.of(X), 0.02, method, **given)
        expected = function("gaussian", X, 0.02, method, **given)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_scores_of_a_kernel_that_is_not_stationary():
    X = points(np.float64)
    given = {"random_state": 0, "engine": "numpy"}
    found = leverage_scores(Linear(), Remote.of(X), 0.1, "two_pass", **given)
    expected = leverage_scores(Linear(), X, 0.1, "two_pass", **given)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "name", sorted(name for name in selectors if not selectors[name].takes_remote)
)
def test_others_are_refused_before_work(name):
    rows = Remote.of(points(np.float64))
    given = {"landmarks": selectors[name](m=10), "random_state": 0}
    with pytest.raises(ValueError, match="reads all rows many times"):
        KernelRidge("gaussian", lengthscale=2.0, penalty=0.1, **given).fit(rows, np.zeros(N))
    with pytest.raises(ValueError, match="reads all rows many times"):
        NystromTransformer("gaussian", lengthscale=2.0, **given).fit(rows)
    assert rows.traffic.taken == rows.traffic.passes == 0


def test_exact_scores_and_two_views_are_refused():
    X = points(np.float64)
    rows = Remote.of(X)
    with pytest.raises(ValueError, match="ExactRLS reads all rows"):
        leverage_scores("gaussian", rows, 0.1, "exact", lengthscale=1.0)
    with pytest.raises(ValueError, match="Squeak reads all rows"):
        effective_dimension("gaussian", rows, 0.1, "squeak", lengthscale=1.0)
    for X_, y in ((rows, X), (X, rows)):
        with pytest.raises(ValueError, match="which rows on a cluster do not support"):
            KernelCCA().fit(X_, y)
    assert rows.traffic.taken == rows.traffic.passes == 0
