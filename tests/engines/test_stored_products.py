"""Entries that are kept: products are those of entries evaluated anew, and nothing is evaluated."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import Complement, as_rows
from gramian.kernels import Gaussian, L1Laplacian
from gramian.operators import KernelOperator, compiled_tiles, kept, triangle_entries
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import (
    PCG,
    ASkotch,
    EigenPro1,
    EigenPro2,
    Falkon,
    ProblemSize,
    max_iterations,
    solve,
    tolerance,
)

MANY = 1 << 40
KERNELS = [Gaussian(2.0), L1Laplacian(4.0)]


def rows(n: int, d: int = 5, dtype: np.dtype = np.float32, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), dtype)


def square(n: int = 700, **given) -> KernelOperator:
    X = as_rows(rows(n, **given))
    return KernelOperator(L1Laplacian(4.0), X, X)


def close(found: np.ndarray, expected: np.ndarray, dtype: np.dtype) -> None:
    off = xp.norm(xp.to_float64(found) - xp.to_float64(expected)) / xp.norm(xp.to_float64(expected))
    assert off <= (1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 30, 256, 257, 1700])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("t", [1, 3])
def test_products_of_rows_with_themselves(kernel, dtype, n, whole, t):
    X = as_rows(rows(n, dtype=dtype))
    K = KernelOperator(kernel, X, X)
    v = rows(n, t, dtype)
    held = K.keeping(MANY, whole=whole)
    assert K.meter.evaluations == (n * n if whole else triangle_entries(n))
    if not whole:
        assert triangle_entries(n) == sum(xp.size(strip) for strip in held.stored_entries.strips)
    found, u = (
        held @ v,
        held.normal(
            v, np.random.default_rng(0).random(n).astype(np.float32), rows(n, t, dtype, seed=1)
        ),
    )
    assert K.meter.evaluations == (n * n if whole else triangle_entries(n))
    assert found.dtype == dtype
    close(found, K.double().dense() @ xp.to_float64(v), dtype)
    assert u.shape == (n, t)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 40, 1500])
def test_normal_with_weights_and_targets(dtype, m):
    n = 600
    K = KernelOperator(Gaussian(2.0), rows(n, dtype=dtype), rows(m, dtype=dtype, seed=1))
    held, w, y = K.keeping(MANY), np.random.default_rng(0).random(n), rows(n, 2, dtype, seed=2)
    v = rows(m, 2, np.float64, seed=3)
    for given in ((v, None, None), (v, w, None), (v, w, y), (None, w, y), (None, None, y)):
        close(held.normal(*given), K.double().normal(*given), dtype)
    close(held @ v, K.double() @ v, dtype)
    close(held.T @ y, K.double().T @ xp.to_float64(y), dtype)
    close(held.T.normal(xp.to_float64(y)), K.double().T.normal(xp.to_float64(y)), dtype)


def test_some_rows_and_rows_that_are_left_out():
    K = square()
    some = RandomStream(1).permutation(700)[:90]
    held, v = K.keeping(MANY), rows(700, 2)
    before = K.meter.evaluations
    plain = K.double().dense()
    before = K.meter.evaluations
    close(held[some] @ v, plain[some] @ xp.to_float64(v), np.float32)
    close(held[some][5:9] @ v, plain[some[5:9]] @ xp.to_float64(v), np.float32)
    close(held[some].T @ v[:90], plain[:, some] @ xp.to_float64(v[:90]), np.float32)
    left = held.at(np.arange(0, 700, 2))
    close(left @ v, plain[::2] @ xp.to_float64(v), np.float32)
    out = replace(held, rows=Complement(held.rows, xp.sort(some)))
    stays = np.ones(700, np.bool_)
    stays[some] = False
    close(out @ v, plain[stays] @ xp.to_float64(v), np.float32)
    assert K.meter.evaluations == before


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (9, 15), (700, 17), (41, 4200), (530, 128)])
@pytest.mark.parametrize("t", [1, 3])
def test_compiled_products_and_those_of_torch(compiled, dtype, n, m, t):
    """Odd shapes, of groups of 8 rows, of vectors, and of sums that go on in float64."""
    if compiled and not compiled_tiles():
        pytest.skip("the compiled tiles are not installed")
    E, far = rows(n, m, dtype), as_rows(rows(n))
    held = kept.KeptMatrix(Gaussian(1.0), far, as_rows(rows(m)), E, compiled=compiled)
    v, y = rows(m, t, np.float64, seed=1), rows(n, t, dtype, seed=2)
    some = RandomStream(3).permutation(n)[: n // 2 + 1]
    for one, F in (
        (held, xp.to_float64(E)),
        (replace(held, row_index=some), xp.to_float64(E)[some]),
    ):
        w, u = RandomStream(4).random(len(F), np.float32), y[: len(F)]
        close(one.product(v), F @ v, dtype)
        close(
            one.normal(v, w, u),
            F.T @ (xp.to_float64(w)[:, None] * (F @ v - xp.to_float64(u))),
            dtype,
        )
        close(one.normal(None, None, u), -(F.T @ xp.to_float64(u)), dtype)
        turned = replace(one, turned=True)
        close(turned.product(xp.to_float64(u)), F.T @ xp.to_float64(u), dtype)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n", [1, 256, 300, 1700])
def test_a_triangle_compiled_and_by_torch(compiled, n):
    if compiled and not compiled_tiles():
        pytest.skip("the compiled tiles are not installed")
    K, v = square(n), rows(n, 3, np.float64)
    triangle = K.keeping(MANY, whole=False).stored_entries
    close(replace(triangle, compiled=compiled).product(v), K.double() @ v, np.float32)


@pytest.mark.parametrize("compiled", [None, True, False])
def test_no_vectors_have_no_products(compiled):
    X, Z = rows(30), rows(7)
    held = KernelOperator(Gaussian(2.0), X, Z).keeping(MANY).stored_entries
    held = replace(held, compiled=compiled)
    assert held.product(np.empty((7, 0), dtype=X.dtype)).shape == (30, 0)
    assert held.normal(
        np.empty((7, 0), dtype=X.dtype), None, np.empty((30, 0), dtype=X.dtype)
    ).shape == (7, 0)
    triangle = replace(square(300).keeping(MANY, whole=False).stored_entries, compiled=compiled)
    assert triangle.product(np.empty((300, 0), dtype=X.dtype)).shape == (300, 0)


@pytest.mark.skipif(not compiled_tiles(), reason="the compiled tiles are not installed")
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"start": -1}, "a range of rows"), ({"stop": 7}, "a range of rows"),
        ({"v": None}, "v must be there"),
        ({"v": np.ones((1, 4), np.float32)}, "as long as their rows"),
        ({"v": np.ones((1, 3))}, "of the dtype of the entries"),
        ({"numbers": np.array([0, 6])}, "numbers must be those of rows"),
        ({"numbers": np.array([-1, 2])}, "numbers must be those of rows"),
        ({"weights": np.ones(6, np.float32)}, "weights must be float64"),
        ({"targets": np.ones((5, 1))}, "of the right shape"),
        ({"products": np.ones((6, 2))}, "products must be float64, of the right shape"),
        ({"sums": np.ones((1, 4))}, "columns of the entries"),
    ],
)  # fmt: skip
def test_compiled_products_refuse_what_does_not_fit(bad, words):
    given = {
        "entries": np.ones((6, 3), np.float32), "numbers": None, "start": 0, "stop": 6,
        "v": np.ones((1, 3), np.float32),
        "weights": None, "targets": None, "products": np.empty((6, 1)), "sums": None,
        "t": 1, "chained": False,
    }  # fmt: skip
    if "numbers" in bad:
        given |= {"stop": 2, "products": np.empty((2, 1))}
    multiply = import_module("gramian.engines._native").multiply_stored
    multiply("best", **given)
    with pytest.raises(ValueError, match=words):
        multiply("best", **given | bad)


def test_other_matrices_are_evaluated():
    K = square()
    v = rows(700, 1)
    for held in (K.keeping(MANY), K.keeping(MANY, whole=False)):
        for other in (
            held.double(), held.against(rows(700)), replace(held, kernel=L1Laplacian(3.0)),
            replace(held, rows=as_rows(rows(9))), held[:, xp.flip(np.arange(700), 0)],
        ):  # fmt: skip
            assert other.stored_entries is None
        sharp = replace(K, kernel=L1Laplacian(3.0)).double()
        close(replace(held, kernel=L1Laplacian(3.0)) @ v, sharp @ xp.to_float64(v), np.float32)
    assert K.keeping(MANY, whole=False)[np.arange(5)].stored_entries is None


def test_only_what_fits_is_kept():
    K = square()
    assert K.keeping(4 * 700**2 - 1) is K
    assert K.keeping(4 * 700**2).stored_entries is not None
    need = 4 * triangle_entries(700)
    assert need < 4 * 700**2
    assert K.keeping(need - 1, whole=False) is K
    assert K.keeping(need, whole=False).stored_entries is not None


def test_numbers_of_rows_of_another_source_are_not_known():
    X = as_rows(rows(9))
    assert kept.numbers_in(X, as_rows(rows(9))) is None
    assert kept.numbers_in(X, Complement(as_rows(rows(9)), np.array([1]))) is None


SOLVERS = {
    "pcg": (PCG, {}), "askotch": (ASkotch, {"block": 100}),
    "eigenpro2": (EigenPro2, {"subsample": 100}), "eigenpro1": (EigenPro1, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SOLVERS, "falkon"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solvers_reach_the_same_from_fewer_evaluations(name, dtype):
    found, counts, n = [], [], 500
    y = rows(n, 2, np.float64, seed=5)
    for most in (0, MANY):
        K = square(n, dtype=dtype)
        if name == "falkon":
            problem = NystromProblem.at(K, np.arange(80), y, 1e-3)
            # A factor of all rows would leave too few iterations to store entries for.
            solver = Falkon("landmarks", store_bytes=most)
        else:
            make, given = SOLVERS[name]
            problem, solver = FullProblem(K, y, 1e-2), make(store_bytes=most, **given)
        stop = [tolerance(1e-9), max_iterations(12)]
        found.append(solve(problem, solver, stop=stop).state.coef)
        counts.append(K.meter.evaluations)
    assert counts[1] < (1.0 if name.startswith("eigenpro") else 0.6) * counts[0]
    off = xp.norm(found[0] - found[1]) / xp.norm(found[0])
    assert off < (1e-3 if dtype == np.float32 else 1e-8)


@pytest.mark.parametrize("make", [PCG, ASkotch, EigenPro2, EigenPro1, Falkon])
def test_where_it_pays_and_there_is_memory(make):
    solver = make()
    size = ProblemSize(n=5000, d=784, t=1, m=5000, itemsize=4, full=make is not Falkon)
    need = solver.entry_bytes(size)
    assert solver.kept_bytes(size) == 0
    assert solver.storing(size, need - 1) is solver
    assert solver.storing(replace(size, d=2), MANY) is solver
    assert solver.storing(replace(size, dense=False), MANY) is solver
    narrow, wide = solver.storing(size, need), solver.storing(size, MANY)
    assert (narrow.kept_bytes(size), wide.kept_bytes(size)) == (need, 2 * need)
    assert narrow.peak_bytes(size) == solver.peak_bytes(size) + need
    assert narrow.evaluations(size, 20) < solver.evaluations(size, 20)
    assert narrow.bytes_read(size) > solver.bytes_read(size)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_kernels_with_thin_factors_keep_no_entries(kernel):
    X = rows(3000, 64)
    # A factor of all rows would evaluate them once more.
    given: dict = {"landmarks": 200, "penalty": 1e-3, "solver": Falkon("landmarks")}
    est = KernelRidge(kernel, lengthscale=8.0, random_state=0, **given).fit(X, X[:, 0])
    evaluations = est.history_[-1]["kernel_evaluations"]
    assert (est.plan(X).kept_bytes > 0) == (kernel == "gaussian")
    assert kernel == "linear" or evaluations < 2 * 3000 * 200  # a pass, and among landmarks
