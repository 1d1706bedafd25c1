"""Kernel matrices that are a product of two factors: products with them compute no entry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.engines import TiledEngine
from gramian.kernels import Cosine, Gaussian, Linear
from gramian.operators import KernelOperator
from gramian.operators.factors import Factors

N, M, D = 90, 40, 33
BILINEAR = [Linear(1.7), Linear(), Cosine(), Linear(tuple(np.linspace(0.5, 2.0, D)))]


@pytest.mark.parametrize("name", kernels.names())
def test_a_bilinear_kernel_is_the_product_of_its_first_factors(name, rng):
    kernel = kernels.make(name, lengthscale=1.7)
    assert kernel.bilinear == (name in ("linear", "cosine"))
    if kernel.bilinear:
        x, z = (xp.to_float64(rng.random((k, 4), np.float32)) for k in (7, 5))
        left, right = kernel.prepare(x, "left")[0], kernel.prepare(z, "right")[0]
        assert_close(left @ right.T, kernel(x, z))


def test_sums_and_multiples_are_not_bilinear():
    assert not (Linear() + Gaussian()).bilinear
    assert not (Linear() * Linear()).bilinear
    assert not (2.0 * Linear()).bilinear


@pytest.fixture
def no_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to compute entries."""

    def refused(*args: object, **more: object) -> None:
        raise AssertionError("an entry was computed")

    for cls in (Linear, Cosine):
        monkeypatch.setattr(cls, "tile", refused)


@pytest.mark.parametrize("layout", ["dense", "sparse left", "sparse", "sparse, without compiled"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kernel", BILINEAR, ids=str)
def test_products_by_factors(kernel, threads, layout, dtype, rng, tol, monkeypatch, request):
    X, Z = (rng.standard_normal((k, D), np.float32) for k in (N, M))
    X[rng.random((N, D), np.float32) < 0.7], Z[rng.random((M, D), np.float32) < 0.9] = (
        0.0,
        0.0,
    )
    X[3], Z[5] = 0.0, 0.0
    K = kernel(xp.to_float64(X), xp.to_float64(Z))
    request.getfixturevalue("no_entries")
    if layout.endswith("compiled"):
        monkeypatch.setattr("gramian._sparse.products.load_compiled", lambda: None)
    if layout.startswith("sparse"):
        wide = 20 if layout != "sparse left" else 1000
        for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
            monkeypatch.setattr(f"{module}.WIDE_FEATURES", wide)
    rows, cols = (
        as_rows(
            xp.cast(u, dtype) if layout == "dense" else scipy.sparse.csr_array(xp.cast(u, dtype))
        )
        for u in (X, Z)
    )
    found = KernelOperator(kernel, rows, cols, TiledEngine(threads=threads))
    v, y, w = (xp.to_float64(rng.random((k, 2), np.float32)) for k in (M, N, N))
    w = w[:, 0]
    close = {"rtol": 1e-6, "atol": tol(dtype, 100 * N)}
    assert_close(found @ v, K @ v, **close)
    assert_close(found.normal(v), K.T @ (K @ v), **close)
    expected = K.T @ (w[:, None] * (K @ v - y))
    assert_close(found.normal(v, weights=w, targets=y), expected, **close)
    assert_close(found.normal(None, targets=y), -(K.T @ y), **close)


def test_the_symmetric_product(dtype, rng, tol, no_entries):
    x = xp.cast(rng.standard_normal((N, D), np.float32), dtype)
    v = xp.to_float64(rng.random((N, 2), np.float32))
    G = xp.to_float64(x) @ xp.to_float64(x).T / 1.7**2
    found = TiledEngine().symmetric(Linear(1.7), x, v)
    assert_close(found, G @ v, rtol=1e-6, atol=tol(dtype, 100 * N))


def test_as_many_targets_as_columns_are_multiplied_by_entries(no_entries, rng):
    x, z, v = (rng.standard_normal(shape, np.float32) for shape in ((N, D), (3, D), (3, 3)))
    with pytest.raises(AssertionError, match="an entry was computed"):
        TiledEngine().matvec(Linear(), x, z, v)
    assert TiledEngine().matvec(Linear(), x, z, v[:, :2]).shape == (N, 2)


def test_passes_over_wide_rows_have_many_in_a_block():
    from gramian.data.rows.base import default_block_size

    rows = as_rows(scipy.sparse.random_array((2000, 10**7), density=5e-6, rng=0, format="csr"))
    assert default_block_size(rows) > 1000


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kernel", BILINEAR, ids=str)
def test_kept_factors_are_those_of_the_pass(kernel, threads, dtype, rng, monkeypatch):
    for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
        monkeypatch.setattr(f"{module}.WIDE_FEATURES", 20)
    monkeypatch.setattr("gramian.operators.factors.READ_ROWS", 7)
    monkeypatch.setattr("gramian.operators.kernel_operator.default_threads", lambda: threads)
    X, Z = (xp.cast(rng.standard_normal((k, D), np.float32), dtype) for k in (N, M))
    X[rng.random((N, D), np.float32) < 0.7], Z[rng.random((M, D), np.float32) < 0.9] = (
        0.0,
        0.0,
    )
    X[3], Z[5] = 0.0, 0.0
    plain = KernelOperator(kernel, *(scipy.sparse.csr_array(u) for u in (X, Z)), "torch")
    kept = plain.with_factors(1 << 20)
    assert kept.factors is not None
    assert plain.factors is None
    assert plain.with_factors(900).factors is None  # they take more
    assert kept.T.factors is None
    v, y, w = (xp.to_float64(rng.random((k, 2), np.float32)) for k in (M, N, N))
    w = w[:, 0]
    calls = [{"v": v}, {"v": None, "targets": y}, {"v": v, "weights": w, "targets": y}]
    for call in calls:
        assert_close(kept.normal(**call), plain.normal(**call), rtol=1e-9, atol=1e-9)
    assert_close(kept @ v, plain @ v, rtol=1e-9, atol=1e-9)
    before = plain.meter.evaluations
    kept.normal(v)
    assert plain.meter.evaluations - before == N * M
    assert KernelOperator(kernel, X, Z, "torch").with_factors(1 << 20).factors is None
    assert KernelOperator(Gaussian(), plain.rows, plain.cols).with_factors(1 << 20).factors is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kernel", BILINEAR, ids=str)
def test_products_of_rows_with_themselves(kernel, threads, dtype, rng, monkeypatch, request):
    for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
        monkeypatch.setattr(f"{module}.WIDE_FEATURES", 20)
    monkeypatch.setattr("gramian.operators.factors.READ_ROWS", 7)
    monkeypatch.setattr("gramian.operators.kernel_operator.default_threads", lambda: threads)
    X = xp.cast(rng.standard_normal((N, D), np.float32), dtype)
    X[rng.random((N, D), np.float32) < 0.7], X[3], X[5] = 0.0, 0.0, X[4]
    rows = as_rows(scipy.sparse.csr_array(X))
    plain = KernelOperator(kernel, rows, rows, "torch")
    exact, v = (
        kernel(xp.to_float64(X), xp.to_float64(X)),
        xp.to_float64(rng.random((N, 2), np.float32)),
    )
    kept = plain.with_factors(1 << 20)
    assert kept.factors.left is kept.factors.right  # once in memory
    expected = plain @ v
    request.getfixturevalue("no_entries")
    assert_close(kept @ v, expected, rtol=1e-9, atol=1e-9)
    assert_close(
        xp.to_float64(kept @ xp.cast(v[:, 0], np.float32)), expected[:, 0], rtol=1e-6, atol=1e-5
    )
    assert_close(xp.to_float64(kept) @ v, exact @ v, rtol=1e-12, atol=1e-12)
    with pytest.raises(AssertionError, match="an entry was computed"):
        kept[np.arange(5), np.arange(5)].dense()  # what is derived has entries


@pytest.mark.parametrize("spare", [1 << 20, 100], ids=["kept", "no room"])
def test_a_fit_with_all_rows_keeps_factors(spare, monkeypatch, rng):
    X = rng.standard_normal((N, D), np.float32)
    X[np.abs(X) < 1] = 0.0
    y, asked, product = X.sum(axis=1) + 100, [], Factors.product
    settings = {"lengthscale": 1.0, "landmarks": None, "penalty": 1e-3, "standardize": False}
    expected = KernelRidge("linear", solver="direct", random_state=0, **settings).fit(X, y)
    for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
        monkeypatch.setattr(f"{module}.WIDE_FEATURES", 20)
    monkeypatch.setattr(Factors, "product", lambda *given: asked.append(0) or product(*given))
    monkeypatch.setattr("gramian.fitting.plans.solver_choice.spare_bytes", lambda *given: spare)
    rows = scipy.sparse.csr_array(X)
    found = KernelRidge("linear", solver="pcg", random_state=0, **settings).fit(rows, y)
    np.testing.assert_allclose(found.predict(rows), expected.predict(X), atol=1e-3)
    assert (len(asked) >= found.n_iter_) == (spare > 100)


@pytest.mark.parametrize("spare", [1 << 20, 100], ids=["kept", "no room"])
def test_a_fit_keeps_factors(spare, monkeypatch, rng):
    X = rng.standard_normal((N, D), np.float32)
    X[np.abs(X) < 1] = 0.0
    y, asked, normal = X.sum(axis=1), [], Factors.normal
    settings = {"lengthscale": 1.0, "landmarks": 20, "penalty": 1e-3, "standardize": False}
    expected = KernelRidge("linear", solver="direct", random_state=0, **settings).fit(X, y)
    for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
        monkeypatch.setattr(f"{module}.WIDE_FEATURES", 20)
    monkeypatch.setattr(Factors, "normal", lambda *given: asked.append(0) or normal(*given))
    monkeypatch.setattr("gramian.fitting.plans.solver_choice.spare_bytes", lambda *given: spare)
    rows = scipy.sparse.csr_array(X)
    found = KernelRidge("linear", solver="falkon", random_state=0, **settings).fit(rows, y)
    np.testing.assert_allclose(found.predict(rows), expected.predict(X), atol=1e-3)
    assert (len(asked) > found.n_iter_) == (spare > 100)
