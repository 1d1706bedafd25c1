"""Landmarks and scores of rows that are elsewhere: the same as from memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from remote import Remote

from gramian import (
    KernelCCA,
    KernelRidge,
    NystromTransformer,
    effective_dimension,
    leverage_scores,
)
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


def points(dtype: torch.dtype) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    return (torch.randn(N, D, generator=rng) * torch.tensor([1.0, 2.0, 3.0])).to(dtype)


def selected(selector: Selector, rows: object) -> Landmarks:
    K = KernelOperator(Gaussian(2.0), rows, rows, "torch")
    return selector.select(K, rng=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("selector", [*SELECTORS, *PATHS], ids=repr)
def test_landmarks_are_those_of_the_same_rows_in_memory(selector, dtype):
    X = points(dtype)
    rows = Remote.of(X)
    found, expected = selected(selector, rows), selected(selector, as_rows(X))
    assert rows.traffic.taken <= SELECTORS.get(selector, 20 * N)
    torch.testing.assert_close(found.points, expected.points, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found.weight, expected.weight, rtol=1e-6, atol=0)
    assert found.penalty == pytest.approx(expected.penalty, rel=1e-9)


def test_equal_rows_are_one_landmark():
    X = points(torch.float64)
    X[::2] = X[0]
    rows = Remote.of(X)
    found = selected(Uniform(900), rows)
    assert len(found.points) == len(found.points.unique(dim=0)) == N // 2 + 1


@pytest.mark.parametrize("method", ["bless", "bless_r", "recursive_rls", "two_pass", "uniform"])
def test_scores_and_their_sum(method):
    X, given = points(torch.float64), {"lengthscale": 2.0, "random_state": 0, "engine": "torch"}
    for function in (leverage_scores, effective_dimension):
        found = function("gaussian", Remote.of(X), 0.02, method, **given)
        expected = function("gaussian", X.numpy(), 0.02, method, **given)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_scores_of_a_kernel_that_is_not_stationary():
    X = points(torch.float64)
    given = {"random_state": 0, "engine": "torch"}
    found = leverage_scores(Linear(), Remote.of(X), 0.1, "two_pass", **given)
    expected = leverage_scores(Linear(), X.numpy(), 0.1, "two_pass", **given)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "name", sorted(name for name in selectors if not selectors[name].takes_remote)
)
def test_others_are_refused_before_work(name):
    rows = Remote.of(points(torch.float64))
    given = {"landmarks": selectors[name](m=10), "random_state": 0}
    with pytest.raises(ValueError, match="reads all rows many times"):
        KernelRidge("gaussian", lengthscale=2.0, penalty=0.1, **given).fit(rows, np.zeros(N))
    with pytest.raises(ValueError, match="reads all rows many times"):
        NystromTransformer("gaussian", lengthscale=2.0, **given).fit(rows)
    assert rows.traffic.taken == rows.traffic.passes == 0


def test_exact_scores_and_two_views_are_refused():
    X = points(torch.float64)
    rows = Remote.of(X)
    with pytest.raises(ValueError, match="ExactRLS reads all rows"):
        leverage_scores("gaussian", rows, 0.1, "exact", lengthscale=1.0)
    with pytest.raises(ValueError, match="Squeak reads all rows"):
        effective_dimension("gaussian", rows, 0.1, "squeak", lengthscale=1.0)
    for X_, y in ((rows, X.numpy()), (X.numpy(), rows)):
        with pytest.raises(ValueError, match="which rows on a cluster do not support"):
            KernelCCA().fit(X_, y)
    assert rows.traffic.taken == rows.traffic.passes == 0
