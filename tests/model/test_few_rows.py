"""Predictions of few rows, as in services: the same bits as of many, whatever a model keeps."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from gramian import KernelModel, KernelRidge, kernels
from gramian._arrays import RandomStream
from gramian.data import QuantileMap, Standardizer, as_rows
from gramian.model import kernel_model
from gramian.operators import KernelOperator

M, D = 150, 4
NEW = RandomStream(1).standard_normal((60, D), np.float64)


def model(kernel: str = "gaussian", dtype: type = np.float64, t: int = 1) -> KernelModel:
    centers = RandomStream(0).standard_normal((M, D), np.float64)
    rows = as_rows(3 * centers + 1)
    standardizer = Standardizer.fit(rows)
    quantiles = QuantileMap.fit(standardizer.apply(rows), rng=RandomStream(2))
    return KernelModel(
        2.0 * kernels.make(kernel),
        np.abs(centers).astype(dtype),
        RandomStream(3).standard_normal((M, t), np.float64),
        standardizer=standardizer,
        quantiles=quantiles if kernel == "gaussian" else None,
        target_scale=np.full(t, 3.0),
        target_shift=np.full(t, -1.0),
    )


def from_operator(f: KernelModel, X: np.ndarray, engine: str = "auto") -> np.ndarray:
    """Return the predictions by an operator of these rows, which is not kept."""
    K = KernelOperator(f.kernel, f.prepare_rows(as_rows(X)), f.centers, engine)
    K = K.double() if f._shows_rounding(K) else K
    return (K @ f.coef) * f.target_scale + f.target_shift


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "l1_laplacian", "linear"])
def test_each_call_gives_the_bits_of_an_operator(kernel, dtype, engine):
    f = model(kernel, dtype, t=2)
    for count in (1, 2, 48, 49, 60, 1):
        X = NEW[:count].astype(dtype)
        expected = from_operator(f, X, engine)
        assert np.array_equal(f.predict(X, engine=engine), expected)
        assert np.array_equal(f.predict(X.copy(order="F"), engine=engine), expected)


def test_rows_of_another_type_do_not_disturb():
    f = model()
    double, single, sparse = NEW[:3], NEW[:3].astype(np.float32), scipy.sparse.csr_array(NEW[:3])
    raw = KernelModel(f.kernel, f.centers, f.coef)
    for _ in range(2):
        assert np.array_equal(f.predict(double), from_operator(f, double))
        assert np.array_equal(f.predict(single), from_operator(f, single))
        np.testing.assert_allclose(raw.predict(sparse), raw.predict(double), rtol=1e-12)


def test_rows_are_computed_in_their_own_type():
    f = KernelModel(kernels.Gaussian(1.0), NEW.astype(np.float32), np.ones((len(NEW), 1)))
    for X in (NEW[:3].astype(np.float32), NEW[:3], NEW[:3].astype(np.float32)):
        assert np.array_equal(f.predict(X), KernelOperator(f.kernel, X, f.centers) @ f.coef)


def test_rows_that_are_the_centers():
    f = KernelModel(kernels.Laplacian(1.0), NEW, np.ones((len(NEW), 1)))
    f.predict(NEW[:1])
    assert np.array_equal(
        f.predict(f.centers), KernelOperator(f.kernel, f.centers, f.centers) @ f.coef
    )


class TestWhatIsKept:
    def test_columns_are_packed_once(self, monkeypatch):
        f, calls = model(), []
        build = KernelModel._operator
        monkeypatch.setattr(KernelModel, "_operator", lambda *a: calls.append(1) or build(*a))
        for _ in range(3):
            f.predict(NEW[:1])
        assert len(calls) == 1

    def test_nothing_beyond_the_limit(self, monkeypatch):
        f = model()
        expected = f.predict(NEW)
        monkeypatch.setattr(kernel_model, "KEPT_BYTES", f._product_bytes - 1)
        other = model()
        assert np.array_equal(other.predict(NEW), expected)
        assert not other.__dict__.get("_kept_products")

    def test_no_more_than_two_kinds_of_rows(self):
        f = model()
        for memory in range(1 << 30, (1 << 30) + 5):
            f.predict(NEW[:1], memory_bytes=memory)
        assert 1 <= len(f.__dict__["_kept_products"]) <= 2

    def test_the_limit_is_for_all_cells(self, monkeypatch):
        y = np.sin(NEW[:, 0])
        est = KernelRidge(cells=15, lengthscale=1.0, penalty=1e-3, random_state=0).fit(NEW, y)
        f = est.model_
        assert f.cells is not None
        limit = f._product_bytes
        assert self.kept_in_cells(f, NEW) > 1
        monkeypatch.setattr(kernel_model, "KEPT_BYTES", limit - 1)
        other = replace(f)
        assert self.kept_in_cells(other, NEW) == 0
        assert np.array_equal(other.predict(NEW), f.predict(NEW))

    @staticmethod
    def kept_in_cells(f: KernelModel, X: np.ndarray) -> int:
        f.predict(X)
        cells = f.__dict__["_of_cells"].values()
        return sum(len(part.__dict__.get("_kept_products", ())) for part in cells)

    def test_a_pickle_has_none_of_it(self):
        f = model()
        before = pickle.dumps(f)
        expected = f.predict(NEW[:2])
        assert len(pickle.dumps(f)) <= len(before) + 100
        assert np.array_equal(pickle.loads(pickle.dumps(f)).predict(NEW[:2]), expected)


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_eight_threads_get_the_same_answers(engine):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads meet within a call, also in the first one
    try:
        for _ in range(5):
            f, start = model(), threading.Barrier(8)
            expected = [model().predict(NEW[i : i + 1], engine=engine) for i in range(len(NEW))]

            def answers(number, f=f, start=start):
                start.wait()
                order = np.random.default_rng(number).permutation(len(NEW))
                return [(i, f.predict(NEW[i : i + 1], engine=engine)) for i in order]

            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(answers, range(8)))
            assert all(np.array_equal(row, expected[i]) for rows in found for i, row in rows)
    finally:
        sys.setswitchinterval(interval)
