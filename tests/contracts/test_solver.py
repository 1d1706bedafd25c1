"""What every solver must do: reach the closed form, resume exactly, never overwrite what it gave.

A new solver is tested by being registered. The closed forms are written with NumPy and SciPy alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from squares import with_squares

from gramian import _arrays as xp
from gramian import kernels, solvers
from gramian._arrays import RandomStream
from gramian.data import RowSource, as_rows
from gramian.engines.tiled_engine import TiledEngine
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, LossProblem, NystromProblem
from gramian.solvers import ProblemSize, Solver, State, max_iterations, solve, tolerance

N, M, D, T = 61, 13, 5, 3
PENALTY = 0.1

CASES = [
    pytest.param(name, kind, id=f"{name}-{kind.__name__}")
    for name in solvers.names()
    for kind in solvers.make(name).problem_types
]
every_solver = pytest.mark.parametrize(("name", "kind"), CASES)
exact_solver = pytest.mark.parametrize(
    ("name", "kind"), [case for case in CASES if solvers.make(case.values[0]).solves_exactly]
)

# Each kernel, and the same function without torch.
KERNELS: dict[str, tuple[kernels.Kernel, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "gaussian": (kernels.Gaussian(1.5), lambda x, z: np.exp(-cdist(x, z, "sqeuclidean") / 4.5)),
    "laplacian": (kernels.Laplacian(3.0), lambda x, z: np.exp(-cdist(x, z) / 3)),
    "l1": (kernels.L1Laplacian(4.0), lambda x, z: np.exp(-cdist(x, z, "cityblock") / 4)),
    "matern32": (kernels.Matern32(2.0), lambda x, z: matern32(cdist(x, z) / 2)),
    "polynomial": (
        kernels.Polynomial(degree=2, lengthscale=2.0),
        lambda x, z: (x @ z.T / 4 + 1) ** 2,
    ),
    "sum": (
        kernels.Gaussian(1.0) + 0.5 * kernels.Linear(),
        lambda x, z: np.exp(-cdist(x, z, "sqeuclidean") / 2) + 0.5 * x @ z.T,
    ),
}


def matern32(r: np.ndarray) -> np.ndarray:
    return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)


@dataclass(frozen=True)
class Data:
    """Rows, targets and points to predict at, in float64 but of the values of `dtype`."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def draw(cls, dtype: np.dtype = np.float64) -> Data:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((N + 20, D))
        y = np.stack([np.sin(X[:, 0]), X[:, 1] ** 2, X[:, 2] - X[:, 3]], axis=1)
        narrow = np.float32 if dtype == np.float32 else np.float64
        X = X.astype(narrow).astype(np.float64)
        return cls(X[:N], y[:N], X[N:])

    def closed_form(self, k: Callable[..., np.ndarray], kind: type) -> np.ndarray:
        """Predict the new points by solving the dense system."""
        w = np.ones(len(self.X)) if self.weights is None else self.weights
        shift = PENALTY * w.sum()
        if kind is FullProblem:
            A = k(self.X, self.X) + np.diag(shift / w)
            return k(self.new, self.X) @ np.linalg.solve(A, self.y)
        Z = self.X[:M]
        values, vectors = np.linalg.eigh(k(Z, Z))
        # least squares on the stack, which does not square the condition number
        ridge = np.sqrt(shift * values.clip(0))[:, None] * vectors.T
        stack = np.vstack([np.sqrt(w)[:, None] * k(self.X, Z), ridge])
        targets = np.vstack([np.sqrt(w)[:, None] * self.y, np.zeros((M, self.y.shape[1]))])
        coef = np.linalg.lstsq(stack, targets, rcond=1e-13)[0]
        return k(self.new, Z) @ coef


def problem_of(
    kind: type,
    data: Data,
    kernel: kernels.Kernel = KERNELS["gaussian"][0],
    *,
    dtype: np.dtype = np.float64,
    rows: RowSource | None = None,
    columns: slice = slice(None),
    **operator: Any,
) -> FullProblem | NystromProblem | LossProblem:
    rows = as_rows(xp.cast(data.X, dtype)) if rows is None else rows
    K = KernelOperator(kernel, rows, rows, **operator)
    targets = np.ascontiguousarray(data.y[:, columns])
    weights = None if data.weights is None else data.weights
    if kind is FullProblem:
        return FullProblem(K, targets, PENALTY, weights)
    at = NystromProblem.at(K, np.arange(M), targets, PENALTY, weights)
    return at if kind is NystromProblem else with_squares(at)


def converged(problem: Any, name: str) -> np.ndarray:
    tol = 1e-12 if problem.K.dtype == np.float64 else 1e-6
    result = solve(problem, solvers.make(name), stop=[tolerance(tol), max_iterations(300)])
    return result.state.coef


def predicted(problem: Any, coef: np.ndarray, new: np.ndarray) -> np.ndarray:
    return problem.model(coef).predict(new)


def assert_same_function(actual: np.ndarray, expected: np.ndarray, rtol: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * np.abs(expected).max())


# Systems with this penalty have a condition number of at most some hundred, and an error of the
# solution of that times the rounding unit: sqrt(eps) leaves a margin in both precisions.
def accuracy(dtype: np.dtype) -> float:
    return xp.finfo(dtype).eps ** 0.5


@exact_solver
@pytest.mark.parametrize("kernel", KERNELS)
def test_reaches_the_closed_form(name, kind, kernel, dtype):
    ours, theirs = KERNELS[kernel]
    data = Data.draw(dtype)
    problem = problem_of(kind, data, ours, dtype=dtype)
    actual = predicted(problem, converged(problem, name), data.new)
    assert_same_function(actual, data.closed_form(theirs, kind), accuracy(dtype))


CONVERGED_ERROR = 5.0
"""Error of predictions, over the tolerance, of a solver that has converged.

Residuals of blocks, batches and tables were measured a little earlier.
"""


@exact_solver
@pytest.mark.parametrize("offset", [0.0, 20.0])
@pytest.mark.parametrize("tol", [5e-3, 1e-4])
def test_converged_at_a_tolerance_bounds_the_error_of_predictions(
    name, kind, tol, offset, monkeypatch
):
    """Each solver means the same: the error on the rows over the deviation of the target."""
    # A factor of all rows would leave an error of rounding, also that of the closed form.
    monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
    solver, data = solvers.make(name), Data.draw()
    loss = kind is LossProblem
    if loss and offset:
        pytest.skip("the constant function is part of these problems")
    data = Data(data.X, data.y + offset, data.X)  # predicted at the rows
    problem = problem_of(kind, data, KERNELS["matern32"][0])
    result = solve(problem, solver, stop=[tolerance(tol), max_iterations(2000)])
    assert result.reason == "converged"
    exact = data.closed_form(KERNELS["matern32"][1], kind)
    gap = predicted(problem, result.state.coef, data.X) - exact
    error = float((np.sqrt((gap**2).mean(axis=0)) / data.y.std(axis=0)).max())
    assert error <= CONVERGED_ERROR * tol
    if not (solver.closed_form or loss):
        assert error <= CONVERGED_ERROR * result.history[-1]["prediction_error"]


@every_solver
def test_the_start_comes_first(name, kind):
    problem = problem_of(kind, Data.draw())
    solver = solvers.make(name)
    states = list(islice(solver.iterate(problem), 3))
    assert all(type(state) is solver.state_type for state in states)
    if solver.closed_form:
        assert [state.iteration for state in states] == [0]
        return
    assert [state.iteration for state in states] == [0, 1, 2]
    assert not states[0].coef.any()


@every_solver
def test_a_plain_state_is_a_starting_point(name, kind):
    data = Data.draw()
    problem = problem_of(kind, data)
    solver = solvers.make(name)
    solution = converged(problem, name)
    first = next(solver.iterate(problem, State(0, solution)))
    # Going into preconditioned coordinates and back costs rounding.
    assert_same_function(
        predicted(problem, first.coef, data.new),
        predicted(problem, solution, data.new),
        1e-9,
    )
    if "rel_residual" in first.metrics:
        assert first.metrics["rel_residual"] < 1e-8
    if not solver.closed_form:
        with pytest.raises(ValueError, match="starting coefficients must have shape"):
            next(solver.iterate(problem, State(0, xp.copy(solution[:, :1]))))


@every_solver
def test_yielded_tensors_are_never_overwritten(name, kind, dtype):
    problem = problem_of(kind, Data.draw(dtype), dtype=dtype)
    yielded, copies = [], []
    for state in islice(solvers.make(name).iterate(problem), 15):
        yielded.append(state)
        copies.append(copy.deepcopy(state))
    for state, kept in zip(yielded, copies, strict=True):
        assert_bitwise(state, kept)


@every_solver
def test_resuming_from_any_state_changes_nothing(name, kind, dtype):
    def fresh() -> Any:
        return problem_of(kind, Data.draw(dtype), dtype=dtype)

    states = list(islice(solvers.make(name).iterate(fresh()), 10))
    for k in range(0, len(states), 4):
        again = solvers.make(name).iterate(fresh(), copy.deepcopy(states[k]))
        for expected, actual in zip(states[k:], again, strict=False):
            assert_bitwise(actual, expected)


@every_solver
def test_solve_leaves_the_state_it_is_given_alone(name, kind):
    problem = problem_of(kind, Data.draw())
    state = solve(problem, solvers.make(name), stop=[max_iterations(2)]).state
    kept = copy.deepcopy(state)
    result = solve(problem, solvers.make(name), stop=[max_iterations(5)], state=state)
    assert_bitwise(state, kept)
    assert state.metrics == kept.metrics
    if not solvers.make(name).closed_form:
        assert [row["iteration"] for row in result.history] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        # many epochs to its limit: 4 seconds
        pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
        if case.values[0] == "eigenpro3"
        else case
        for case in CASES
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_targets_do_not_meet(name, kind, dtype):
    data = Data.draw(dtype)
    together = problem_of(kind, data, dtype=dtype)
    all_at_once = predicted(together, converged(together, name), data.new)
    for j in range(T):
        alone = problem_of(kind, data, dtype=dtype, columns=slice(j, j + 1))
        one = predicted(alone, converged(alone, name), data.new)
        assert_same_function(all_at_once[:, [j]], one, accuracy(dtype))


def memmap(X: np.ndarray, folder: Path) -> Any:
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def parquet(X: np.ndarray, folder: Path) -> Path:
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


SOURCES: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "columns first": lambda X, folder: np.asfortranarray(X),
    "memmap": memmap,
    "parquet": parquet,
    "sparse": lambda X, folder: scipy.sparse.csr_array(X),
}


@exact_solver
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_it_does_not_matter_where_rows_live(name, kind, source, kernel, tmp_path):
    data = Data.draw()
    rows = as_rows(SOURCES[source](data.X, tmp_path))
    problem = problem_of(kind, data, KERNELS[kernel][0], rows=rows)
    if solvers.make(name).needs_random_access and not rows.random_access:
        with pytest.raises(ValueError, match=r"random order.*gramian convert"):
            converged(problem, name)
        return
    actual = predicted(problem, converged(problem, name), data.new)
    expected = data.closed_form(KERNELS[kernel][1], kind)
    assert_same_function(actual, expected, accuracy(np.float64))


class InPieces(RowSource):
    """Rows that come in smaller blocks than was asked for, as those of a file may."""

    def __init__(self, X: np.ndarray, size: int) -> None:
        self.X, self.size = X, size
        self.shape, self.dtype = (X.shape[0], X.shape[1]), X.dtype

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self.X), min(size, self.size)):
            part = slice(start, min(start + min(size, self.size), len(self.X)))
            yield part, self.X[part]

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.X[index]


@exact_solver
@pytest.mark.parametrize(("size", "tile_bytes"), [(7, 512), (N - 1, 1 << 22)])
def test_block_sizes_do_not_matter(name, kind, size, tile_bytes, dtype):
    data = Data.draw(dtype)
    rows = InPieces(xp.cast(data.X, dtype), size)
    problem = problem_of(kind, data, rows=rows, engine=TiledEngine(tile_bytes=tile_bytes))
    actual = predicted(problem, converged(problem, name), data.new)
    expected = data.closed_form(KERNELS["gaussian"][1], kind)
    assert_same_function(actual, expected, accuracy(dtype))


@exact_solver
def test_a_whole_weight_is_a_repeated_row(name, kind):
    data = Data.draw()
    counts = np.random.default_rng(1).integers(1, 4, N)
    counts[:M] = 1  # the landmarks stay the first rows of both
    weighted = Data(data.X, data.y, data.new, counts.astype(float))
    repeated = Data(data.X.repeat(counts, axis=0), data.y.repeat(counts, axis=0), data.new)
    functions = []
    for version in (weighted, repeated):
        problem = problem_of(kind, version)
        functions.append(predicted(problem, converged(problem, name), data.new))
    assert_same_function(*functions, accuracy(np.float64))
    expected = repeated.closed_form(KERNELS["gaussian"][1], kind)
    assert_same_function(functions[0], expected, accuracy(np.float64))


@exact_solver
def test_weights_reach_the_closed_form(name, kind, dtype):
    data = Data.draw(dtype)
    weights = np.random.default_rng(2).uniform(0.2, 3, N)
    data = Data(data.X, data.y, data.new, weights)
    problem = problem_of(kind, data, dtype=dtype)
    actual = predicted(problem, converged(problem, name), data.new)
    assert_same_function(actual, data.closed_form(KERNELS["gaussian"][1], kind), accuracy(dtype))


@pytest.mark.parametrize("name", solvers.names())
def test_a_problem_of_the_wrong_kind_is_refused_in_words(name):
    solver = solvers.make(name)
    for kind in {FullProblem, NystromProblem} - set(solver.problem_types):
        problem = problem_of(kind, Data.draw())
        with pytest.raises(ValueError, match=f"{type(solver).__name__} solves .*landmarks"):
            solve(problem, solver)
        assert problem.K.meter.evaluations == 0  # before any work


@every_solver
def test_sequential_rows_are_refused_by_those_who_jump(name, kind, tmp_path):
    data = Data.draw()
    problem = problem_of(kind, data, rows=as_rows(parquet(data.X, tmp_path)))
    solver = solvers.make(name)
    if solver.needs_random_access:
        with pytest.raises(ValueError, match=r"random order.*gramian convert"):
            solver.check(problem)
    else:
        solver.check(problem)


@dataclass(frozen=True)
class Jumping(Solver[Any, State]):
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem, NystromProblem)
    needs_random_access: ClassVar[bool] = True

    def iterate(
        self, problem: Any, state: State | None = None, *, rng: RandomStream | None = None
    ) -> Iterator[State]:
        yield State(0, np.zeros((problem.K.shape[1], problem.targets.shape[1]), np.float32))

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        return size.vector_bytes

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return 0

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return 0.0


def test_random_access_is_checked_before_any_work(tmp_path):
    data = Data.draw()
    sequential = problem_of(FullProblem, data, rows=as_rows(parquet(data.X, tmp_path)))
    with pytest.raises(ValueError, match=r"Jumping reads rows in random order, but ParquetRows"):
        solve(sequential, Jumping())
    assert solve(problem_of(FullProblem, data), Jumping()).reason == "converged"


@every_solver
def test_its_cost_is_stated_and_grows_with_the_problem(name, kind):
    solver, full = solvers.make(name), kind is FullProblem
    small, large = (ProblemSize(n, 5, 2, n if full else n // 4, 4, full) for n in (400, 4000))
    for cost in (
        solver.peak_bytes,
        lambda size: solver.evaluations(size, 10),
        lambda size: solver.operations(size, 10) + solver.bytes_read(size),
    ):
        assert 0 < cost(small) < cost(large)
    assert solver.peak_bytes(large, mapped=True) <= solver.peak_bytes(large)
    assert 0 <= solver.flexible_bytes(large, 1 << 26) <= 1 << 26
    assert solver.panel_bytes(large) >= 0
    if not solver.closed_form:
        assert solver.evaluations(large, 20) > solver.evaluations(large, 10)
        assert solver.steps(large, 20) >= 20


def test_a_solver_that_does_not_state_its_cost_is_none():
    class Silent(Solver[Any, State]):
        problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)

        def iterate(self, problem: Any, state: Any = None, *, rng: Any = None) -> Iterator[State]:
            yield State(0, np.zeros((1, 1), np.float32))

    with pytest.raises(TypeError, match="evaluations"):
        Silent()


def test_an_unknown_solver_is_told_the_names():
    with pytest.raises(
        ValueError, match=r"unknown solver 'falcon'; known: .*; did you mean falkon\?$"
    ):
        solvers.make("falcon")


@pytest.mark.parametrize("name", solvers.names())
def test_the_name_leads_back(name):
    assert solvers.name_of(solvers.make(name)) == name


def assert_bitwise(a: Any, b: Any) -> None:
    """Compare two states, nested states included, but for what `solve` notes in the metrics."""
    assert type(a) is type(b)
    for f in fields(a):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            assert np.array_equal(x, y), f.name
        elif is_dataclass(x):
            assert_bitwise(x, y)
        elif f.name != "metrics":
            assert x == y
