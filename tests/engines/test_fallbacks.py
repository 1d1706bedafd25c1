"""Torch computes, on the same device and in as much memory, where an engine has no tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from plain import PLAIN
from sklearn.base import clone

from gramian import KernelModel, KernelPCA, KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Validate
from gramian.data import as_rows
from gramian.engines import MultiDeviceEngine, TiledEngine
from gramian.kernels import Kernel
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import State

LIMIT = 1 << 26


@dataclass(frozen=True)
class NoFloat64(TiledEngine):
    """An engine for float32 rows, with some memory of its own, as that of a GPU."""

    def covers(self, kernel: Kernel, *, dtype: np.dtype, sparse: bool) -> bool:
        return dtype == np.float32

    def device_bytes(self) -> int:
        return LIMIT


def draw(*shape: int) -> np.ndarray:
    return RandomStream(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1 << 30), (np.float64, LIMIT)])
def test_validation_keeps_the_limit_of_an_engine(dtype, limit, monkeypatch):
    seen = []

    def predict(self, X, *, engine, memory_bytes):
        seen.append((engine, memory_bytes))
        return computed(self, X, engine=engine, memory_bytes=memory_bytes)

    computed = KernelModel.predict
    monkeypatch.setattr(KernelModel, "predict", predict)
    x, y, coef = draw(40, 3), draw(40, 1), draw(40, 1)
    problem = FullProblem(KernelOperator(kernels.Gaussian(1.0), x, x, NoFloat64()), y, 1e-3)
    state = State(iteration=1, coef=coef, metrics={})
    Validate(xp.cast(draw(7, 3), dtype), draw(7, 1))(problem, state)
    assert seen == [(NoFloat64() if dtype == np.float32 else TiledEngine(), limit)]
    assert state.metrics["valid_rmse"] > 0


def test_only_an_inherited_engine_is_replaced():
    x = draw(20, 3)
    K = KernelOperator(kernels.Gaussian(1.0), x, x, NoFloat64())
    wide = replace(K, rows=as_rows(xp.to_float64(x)))
    assert (wide.engine, wide.meter) == (TiledEngine(), K.meter)
    assert xp.to_float64(wide.T[:5]).engine == TiledEngine()
    with pytest.raises(ValueError, match="has no tiles for rows in float64"):
        KernelOperator(K.kernel, xp.to_float64(x), x, NoFloat64(), meter=K.meter)
    with pytest.raises(ValueError, match="has no tiles for rows in float64"):
        replace(wide, engine=NoFloat64())


def test_preimages_of_float32_rows_are_learned_with_codes_in_float64():
    x = draw(40, 3)
    pca = KernelPCA(4, landmarks=20, fit_inverse_transform=True, random_state=0)
    expected = pca.fit(x).inverse_transform(pca.transform(x))
    asked = clone(pca).set_params(engine=NoFloat64()).fit(x)
    assert (asked.map_.engine, asked.preimage_.features.engine) == (NoFloat64(), TiledEngine())
    np.testing.assert_allclose(asked.inverse_transform(asked.transform(x)), expected, atol=1e-4)


def test_a_fit_in_float32_predicts_float64_rows():
    x = draw(60, 3)
    est = KernelRidge(landmarks=20, random_state=0, engine=NoFloat64(), **PLAIN).fit(x, x[:, 0])
    assert est.engine_ == NoFloat64()
    np.testing.assert_allclose(est.predict(x.astype(float)), est.predict(x), atol=1e-4)


@dataclass(frozen=True)
class OnGpu(NoFloat64):
    """The same, for rows that are dense, on a device that need not be there."""

    device: str = "cuda:1"

    def covers(self, kernel: Kernel, *, dtype: np.dtype, sparse: bool) -> bool:
        return dtype == np.float32 and not sparse


def test_a_refusal_names_the_cure():
    kernel = kernels.Gaussian(1.0)
    for engine in (OnGpu(), MultiDeviceEngine((OnGpu(), OnGpu()))):
        engine.require(kernel, dtype=np.float32, sparse=False)
        with pytest.raises(
            ValueError, match=r"in float64; pass rows in float32, .*='torch:cuda:1'"
        ):
            engine.require(kernel, dtype=np.float64, sparse=False)
        with pytest.raises(
            ValueError, match=r"for sparse rows; use engine='auto'.*='torch:cuda:1'"
        ):
            engine.require(kernel, dtype=np.float32, sparse=True)
