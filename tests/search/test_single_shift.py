"""The system of a single shift: its solution, whatever preconditions it, and that it is reached."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.kernels import Kernel, Laplacian
from gramian.operators import KernelOperator
from gramian.paths import FullPath
from gramian.paths.sample import Sample
from gramian.preconditioners import BlockCholesky, BlockLowRank, InverseOfEach
from gramian.problems import FullProblem
from gramian.search import Clock
from gramian.search.all_rows import path_points as points
from gramian.search.all_rows.single_shift import path_of_one
from gramian.search.cells import cell_fit

N, SHIFT = 900, 0.05


def problem(
    kernel: Kernel, d: int, dtype: np.dtype = np.float64, *, weighted: bool = False
) -> FullProblem:
    X = RandomStream(0).standard_normal((N, d), np.float64)
    Y = np.stack([np.sin(X[:, 0]), np.square(X[:, -1]) + 5], axis=1)
    w = 0.5 + np.arange(N) % 3 if weighted else None
    rows = xp.cast(X, dtype)
    K = KernelOperator(kernel, rows, rows)
    return FullProblem(K, xp.cast(Y, dtype), SHIFT / N, None if w is None else xp.cast(w, dtype))


def solved(system: FullProblem) -> np.ndarray:
    X = xp.to_float64(system.K.rows.take(np.arange(N)))
    distances = xp.norm(X[:, None] - X[None], axis=2)
    w = np.ones(N, np.float32) if system.weights is None else system.weights
    ridge = np.diag(float(w.sum()) * system.penalty / xp.to_float64(w))
    kernel = system.K.kernel
    assert isinstance(kernel, Laplacian)
    entries = np.exp(-distances / float(kernel.lengthscale))
    return np.linalg.solve(entries + ridge, xp.to_float64(system.targets))


def path(system: FullProblem) -> FullPath:
    return path_of_one(system, rng=RandomStream(1), clock=Clock())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "lengthscale"), [(1, 0.01), (2, 1.0), (4, 50.0), (9, 0.1), (9, 5.0)])
def test_it_is_the_dense_solve(d, lengthscale, weighted, dtype):
    system = problem(Laplacian(lengthscale), d, dtype, weighted=weighted)
    stages = itertools.islice(path(system).stages(), 150)
    found = next(stage for stage in stages if float(stage.residual.max()) < 1e-6)
    expected = solved(system)
    atol = (1e-3 if dtype == np.float32 else 1e-5) * float(xp.norm(expected))
    assert_close(found.coef[0], expected, rtol=0, atol=atol)


def test_what_preconditions_it():
    wide, narrow = Laplacian(5.0), Laplacian(0.02)
    assert isinstance(path(problem(narrow, 2)).inverse, BlockCholesky)
    assert isinstance(path(problem(Laplacian(1.0), 2)).inverse, BlockLowRank)
    assert isinstance(path(problem(wide, 9)).inverse, InverseOfEach)
    assert isinstance(path(problem(narrow, 9)).inverse, BlockCholesky)


@pytest.fixture
def rough(monkeypatch) -> Sample:
    """A function of which the first iterates without a preconditioner know nothing."""
    X = RandomStream(0).random((N, 1), np.float64)
    Y = np.sin(300 * X)
    monkeypatch.setattr(cell_fit, "DIRECT_ROWS", 10)
    monkeypatch.setattr(cell_fit, "path_of_one", without_a_preconditioner)
    return Sample(X[50:], Y[50:], X[:50], Y[:50], None, None)


def loss(sample: Sample) -> float:
    rng = RandomStream(0)
    found = cell_fit.fit_cell(Laplacian(0.5), sample, 1e-3, clock=Clock(), left=math.inf, rng=rng)
    return sample.loss(found.values)


def test_iterations_go_on_where_the_first_ones_gain_nothing(rough, monkeypatch):
    assert loss(rough) < 0.05
    monkeypatch.setattr(points, "UNSETTLED_RESIDUAL", math.inf)  # as if it had settled at once
    assert loss(rough) > 0.4


def test_iterations_go_on_until_the_loss_falls_no_more(rough, monkeypatch):
    usual = loss(rough)
    monkeypatch.setattr(cell_fit, "MOST_ITERATIONS", 30)
    assert loss(rough) > 1.5 * usual


def without_a_preconditioner(system: FullProblem, **how: object) -> FullPath:
    class Identity:
        def __matmul__(self, g: np.ndarray) -> np.ndarray:
            return g

    return FullPath.with_inverse(system, Identity())
