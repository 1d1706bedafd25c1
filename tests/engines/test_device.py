"""Everything that is kept on a device: on a GPU, or where there is none on a pretended one.

Tensors of the pretended device keep their numbers on the host, and refuse what a GPU refuses:
operations with tensors of the host, and being read as an array. So a solver that makes a vector in
the wrong place fails here as it would on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from plain import PLAIN
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from gramian import (
    KernelModel,
    KernelRidge,
    KernelRidgeClassifier,
    kernels,
    landmarks,
    losses,
    solvers,
)
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, Validate
from gramian.data import ArrayRows, RowSource
from gramian.fitting.plans import calibration
from gramian.fitting.plans.memory import FitSize
from gramian.fitting.plans.placement import Placement
from gramian.operators import KernelOperator, TiledEngine
from gramian.problems import FullProblem, LossProblem, NystromProblem
from gramian.solvers import Falkon, Solver, State, max_iterations, solve

REAL = torch.cuda.is_available()
DEVICE = torch.device("cuda" if REAL else "meta")
"""The GPU, or the one device whose tensors torch makes without a driver."""

MOVING = ("aten::_to_copy", "aten::copy_", "aten::_local_scalar_dense")
INDEXING = ("aten::index.Tensor", "aten::index_put_", "aten::_index_put_impl_")
"""The operations that may have arguments on two devices; row numbers may be of the host."""


class Pretended(Tensor):
    """A tensor that says it is on the device, and holds its numbers on the host."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> Any:
        made = Tensor._make_wrapper_subclass(
            cls, numbers.size(), strides=numbers.stride(), dtype=numbers.dtype, device=DEVICE,
            storage_offset=numbers.storage_offset(),
        )  # fmt: skip
        made.numbers = numbers
        return made

    def __init__(self, numbers: Tensor) -> None:
        pass

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


class Pretending(TorchDispatchMode):
    """Inside, tensors that are made on or moved to the device are pretended to be there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute with the numbers; the result is on the device if the arguments are, or if asked."""
    flat, spec = tree_flatten((args, kwargs))
    mine = [type(value) is Pretended for value in flat]
    # numbers are wrapped as tensors without dimensions, which may meet any device
    others = [
        isinstance(v, Tensor) and v.ndim > 0 and not m for v, m in zip(flat, mine, strict=True)
    ]
    name = func.name()
    if name in INDEXING:
        values = args[2] if "put" in name else args[0]
        if any(mine) and not (mine[0] and (type(values) is Pretended or values.ndim == 0)):
            raise RuntimeError(f"{name}: what is indexed, or the values, are elsewhere")
    elif any(mine) and any(others) and name not in MOVING:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device")
    asked = kwargs.get("device")
    there = any(mine) if asked is None else torch.device(asked) == DEVICE
    if "copy_" in name and not name.startswith("aten::_to_copy"):
        there = mine[0]
    plain = [value.numbers if m else value for value, m in zip(flat, mine, strict=True)]
    plain = [torch.device("cpu") if isinstance(v, torch.device) else v for v in plain]
    args, kwargs = tree_unflatten(plain, spec)
    known = {id(value.numbers): value for value, m in zip(flat, mine, strict=True) if m}

    def wrapped(value: Any) -> Any:
        if not there or not isinstance(value, Tensor):
            return value
        return known[id(value)] if id(value) in known else Pretended(value)

    return tree_map(wrapped, func(*args, **kwargs))


class PretendedRows(RowSource):
    """Rows whose blocks come to the device."""

    def __init__(self, rows: RowSource) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype
        self.random_access, self.sparse = rows.random_access, rows.sparse

    def blocks(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        return ((rows, xp.to_device(block, DEVICE)) for rows, block in self.rows.blocks(size))

    def take(self, index: Tensor) -> Tensor:
        return xp.to_device(self.rows.take(index), DEVICE)


class DeviceEngine(TiledEngine):
    """Torch tiles on the device."""

    def __init__(self) -> None:
        super().__init__(device=str(DEVICE), tile_bytes=1 << 12)

    def check(self) -> None:
        if REAL:
            super().check()

    def device_bytes(self) -> int:
        return 1 << 30

    def free_bytes(self) -> int:
        return self.device_bytes()

    def feed(self, rows: RowSource) -> RowSource:
        return super().feed(rows) if REAL else PretendedRows(rows)


@pytest.fixture(autouse=True)
def pretending(monkeypatch) -> Iterator[None]:
    if REAL:
        yield
        return

    def on_the_host_first(make: Any) -> Any:
        return lambda values, dtype=None, device=None: make(values, dtype=dtype).to(device)

    for name in ("tensor", "as_tensor"):  # which go to a device out of sight of dispatch
        monkeypatch.setattr(torch, name, on_the_host_first(getattr(torch, name)))
    with Pretending():
        yield


@pytest.mark.slow
def test_the_device_refuses_what_a_gpu_refuses():
    there = torch.ones(3).to(DEVICE)
    for wrong in (lambda: there + torch.ones(3), lambda: torch.ones(3)[there > 0]):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    assert float((there + 1).sum()) == 6
    assert there[torch.tensor([0, 2])].device.type == DEVICE.type
    assert torch.equal(there.cpu(), torch.ones(3))


N, M = 90, 12
CASES = [
    pytest.param(
        name,
        kind,
        id=f"{name}-{kind.__name__}",
        marks=() if name in ("direct", "falkon") else pytest.mark.slow,
    )
    for name in solvers.names()
    for kind in solvers.make(name).problem_types
]
VARIANTS: dict[str, Solver[Any, Any]] = {
    "falkon, refined": solvers.Falkon(refine=True),
    "pcg, nystrom": solvers.PCG("nystrom", rank=20),
    "pcg, greedy": solvers.PCG("greedy", rank=20),
    "askotch, nystrom": solvers.ASkotch(block=40, rank=10, block_solver="nystrom"),
    "askotch, fixed": solvers.ASkotch(block=40, blocks="fixed", block_solver="nystrom", rank=10),
    "eigenpro3, delayed": solvers.EigenPro3(projection="delayed", batch=30, subsample=50),
    "eigenpro3, inexact": solvers.EigenPro3(projection="inexact", batch=30, subsample=50),
    "sketchysaga, rows": solvers.SketchySAGA(ridge="rows", batch=16, rank=10),
}


def solved(solver: Solver[Any, Any], kind: type, where: str, resume: bool = False) -> np.ndarray:
    """Return the coefficients after a few iterations, with rows and vectors where they are told."""
    rng = RandomStream(0)
    X = rng.standard_normal((N, 3), np.float32)
    y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
    weights = rng.random(N, np.float32) + np.float32(0.5)
    device = "cpu" if where == "host" else DEVICE
    rows = ArrayRows(xp.to_device(X, device) if where == "resident" else X)
    engine = TiledEngine(threads=1) if where == "host" else DeviceEngine()
    K = KernelOperator(kernels.Gaussian(1.5), rows, rows, engine)
    targets, weights = xp.to_device(y, device), xp.to_device(weights, device)
    if kind is FullProblem:
        problem = FullProblem(K, targets, 1e-3, weights)
    elif kind is LossProblem:
        loss, at = losses.Huber(0.5), ArrayRows(xp.to_device(X[: 2 * M : 2], device))
        offset = xp.to_device(loss.constant(y, np.ones(N)), device)
        K = KernelOperator(K.kernel, rows, at, engine)
        problem = LossProblem(K, targets, 1e-3, weights, loss=loss, offset=offset)
    else:
        problem = NystromProblem.at(K, np.arange(0, 2 * M, 2), targets, 1e-3, weights)
    result = solve(problem, solver, stop=[max_iterations(2)])
    if resume:
        again = State(1, xp.to_host(result.state.coef))
        result = solve(problem, solver, stop=[max_iterations(2)], state=again)
    assert xp.is_tensor(result.state.coef) == (where != "host")
    return xp.to_host(result.state.coef)


@pytest.mark.parametrize("where", ["resident", pytest.param("streamed", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_each_solver_keeps_its_vectors_there(name, kind, where):
    solver = solvers.make(name)
    expected, found = (solved(solver, kind, place, resume=True) for place in ("host", where))
    assert np.linalg.norm(found - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name):
    solver = VARIANTS[name]
    kind = solver.problem_types[0]
    expected, found = (solved(solver, kind, place) for place in ("host", "resident"))
    assert np.linalg.norm(found - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["resident", "streamed"])
@pytest.mark.parametrize("name", landmarks.names())
def test_each_selector_works_with_matrices_there(name, where):
    X = RandomStream(0).standard_normal((N, 3), np.float32)
    found = []
    for device in ("cpu", DEVICE):
        rows = ArrayRows(xp.to_device(X, device) if where == "resident" else X)
        engine = TiledEngine(threads=1) if device == "cpu" else DeviceEngine()
        K = KernelOperator(kernels.Gaussian(1.0), rows, rows, engine, device=device)
        chosen = landmarks.make(name, m=M).select(K, rng=RandomStream(1))
        assert xp.is_tensor(chosen.points) == (device != "cpu")
        assert isinstance(chosen.weight, np.ndarray)
        found.append(chosen)
    expected, chosen = found
    assert np.allclose(xp.to_host(chosen.points), expected.points, atol=1e-5)
    assert np.allclose(chosen.weight, expected.weight, rtol=1e-5)


# --- estimators -----------------------------------------------------------------------------------


def rows_and_targets(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((n, 3)).astype(np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def settings(engine: Any, **more: Any) -> dict[str, Any]:
    return {"engine": engine, "penalty": 1e-3, "lengthscale": 1.5, "random_state": 0, **more}


class Full(DeviceEngine):
    """A device without room for anything but blocks."""

    def device_bytes(self) -> int:
        return 1 << 20


FITS = {
    "falkon": {"landmarks": M},
    "falkon, bless": {"landmarks": "bless", "penalty": 1e-2},
    "falkon, auto": {"landmarks": landmarks.Bless(penalty=0.05), "penalty": "auto", "max_iter": 3},
    "direct": {},
    "pcg": {"solver": "pcg"},
    "eigenpro3": {"solver": "eigenpro3", "landmarks": M, "max_iter": 2, "penalty": 0.0},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:stopped after", "ignore:the smallest penalty")
class TestEstimators:
    @pytest.mark.parametrize(
        ("name", "engine"), [*((name, DeviceEngine) for name in FITS), ("falkon", Full)]
    )
    def test_a_fit_is_that_of_the_host(self, name, engine):
        X, y = rows_and_targets()
        weights = np.linspace(0.5, 1.5, len(y))
        told = []
        for where in (TiledEngine(threads=1), engine()):
            model = KernelRidge(**(PLAIN | settings(where, **FITS[name]))).fit(X, y, weights)
            assert isinstance(model.model_.coef, np.ndarray)
            assert isinstance(next(model.model_.centers.blocks(1))[1], np.ndarray)
            told.append(model.predict(X))
        assert np.abs(told[1] - told[0]).max() <= 1e-3

    def test_a_classifier_too(self):
        X, y = rows_and_targets()
        labels = np.digitize(y, [-0.5, 0.5])
        first, second = (
            KernelRidgeClassifier(**(PLAIN | settings(where, landmarks=M)))
            .fit(X, labels)
            .predict(X)
            for where in (TiledEngine(threads=1), DeviceEngine())
        )
        assert (first == second).mean() > 0.97

    def test_partial_fit_goes_on(self):
        X, y = rows_and_targets()
        given = {"solver": "eigenpro3", "landmarks": M, "penalty": 0.0}
        told = []
        for where in (TiledEngine(threads=1), DeviceEngine()):
            model = KernelRidge(**(PLAIN | settings(where, **given)))
            model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
            told.append(model.predict(X))
        assert np.abs(told[1] - told[0]).max() <= 1e-3

    @pytest.mark.parametrize("order", ["there and back", "back and there"])
    def test_checkpoints_and_models_are_read_elsewhere(self, order, tmp_path):
        X, y = rows_and_targets()
        engines = [DeviceEngine(), TiledEngine(threads=1)]
        first, second = engines if order == "there and back" else engines[::-1]
        # whose scores, and with them weights, end differently there
        given = {"landmarks": landmarks.RecursiveRLS(m=M), "tol": 0.0}
        whole = KernelRidge(**(PLAIN | settings(second, **given, max_iter=5))).fit(X, y)
        for engine, steps in ((first, 2), (second, 5)):
            callbacks = [Checkpoint(tmp_path / "state"), Validate(X, y)]
            fitted = KernelRidge(
                **(PLAIN | settings(engine, **given, max_iter=steps, callbacks=callbacks))
            ).fit(X, y)
        assert [row["iteration"] for row in fitted.history_] == [2, 3, 4, 5]
        assert np.abs(fitted.predict(X) - whole.predict(X)).max() <= 1e-4
        fitted.model_.save(tmp_path / "model")
        loaded = KernelModel.load(tmp_path / "model")
        for engine in engines:
            again = loaded.predict(X, engine=engine)[:, 0]
            assert np.abs(again - fitted.predict(X)).max() <= 1e-5

    def test_a_warm_start_goes_on_there(self):
        X, y = rows_and_targets()
        # A solver that has not converged after three iterations, as with a factor of all rows.
        solver = Falkon("landmarks")
        model = KernelRidge(
            **(PLAIN | settings("numpy", landmarks=M, max_iter=3, warm_start=True, solver=solver))
        ).fit(X, y)
        before = model.history_[-1]["rel_residual"]
        model.set_params(engine=DeviceEngine()).fit(X, y)
        assert model.history_[0]["rel_residual"] <= 1.1 * before

    def test_the_plan_tells_what_is_there(self, monkeypatch):
        once = calibration.measure_seconds
        monkeypatch.setattr(calibration, "measure_seconds", lambda work: once(work, budget=1e-9))
        monkeypatch.setattr(calibration, "DEVICE_SCALE", 1)
        X, _ = rows_and_targets()
        there = KernelRidge(**(PLAIN | settings(DeviceEngine(), landmarks=M))).plan(X)
        assert (there.device, there.memory_bytes < there.device_bytes) == (str(DEVICE), True)
        assert "of the device" in str(there)
        full = KernelRidge(**(PLAIN | settings(Full(), landmarks=M))).plan(X)
        assert (full.device, full.device_bytes > 0) == ("cpu", True)
        host = KernelRidge(**(PLAIN | settings(TiledEngine(threads=1), landmarks=M))).plan(X)
        assert (host.device, host.device_bytes) == ("cpu", 0)


@pytest.mark.slow
class TestPlacement:
    def test_what_fits_where(self):
        size = FitSize(n=1_000_000, d=100, t=1, m=1000, itemsize=4, full=False)

        class Sized(DeviceEngine):
            def __init__(self, size: int) -> None:
                super().__init__()
                object.__setattr__(self, "size", size)

            def device_bytes(self) -> int:
                return self.size

        for available, device, rows in ((10**7, "cpu", False), (3 * 10**8, str(DEVICE), False),
                                        (10**9, str(DEVICE), True)):  # fmt: skip
            where = Placement.of(Sized(available), Falkon(), size, None)
            assert (where.device, where.with_rows) == (device, rows)
            if device != "cpu":
                assert where.device_bytes + where.block_bytes <= available
                assert where.host_bytes == 0

    def test_a_limit_of_the_host_bounds_what_waits_to_be_sent(self):
        size = FitSize(n=10_000_000, d=1000, t=1, m=1000, itemsize=4, full=False)
        engine = DeviceEngine()
        where = Placement.of(engine, Falkon(), size, 200 << 20)
        assert where.device == str(DEVICE)
        assert where.bytes_with_blocks(engine, Falkon(), size)[0] <= 200 << 20
        assert where.host_blocks <= 100 << 20
        with pytest.raises(ValueError, match="raise the limit"):
            Placement.of(DeviceEngine(), Falkon(), size, 1 << 20)
