"""Wide sparse rows: landmarks stay sparse, and everything is as with dense ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import KernelRidge, KernelRidgeClassifier, NystromTransformer, _sparse, kernels
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.model import load_model
from gramian.operators import KernelOperator

RNG = np.random.default_rng(3)
N, D = 240, 60
DENSE = np.where(RNG.random((N, D)) < 0.1, RNG.uniform(-0.5, 0.5, (N, D)), 0.0)
DENSE[7] = DENSE[9]
DENSE[11] = 0.0
X = scipy.sparse.csr_array(DENSE)
Y = X @ RNG.standard_normal(D) + 0.1 * RNG.standard_normal(N)
KERNELS = {
    "gaussian": kernels.Gaussian(1.5),
    "laplacian": kernels.Laplacian(2.0),
    "matern52": kernels.Matern52(2.0),
    "linear": kernels.Linear(),
    "polynomial": kernels.Polynomial(2.0),
    "sum": 2.0 * kernels.Gaussian(1.5) + kernels.Linear(),
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 60 features are wide."""
    monkeypatch.setattr("gramian._sparse.rows.WIDE_FEATURES", 20)
    monkeypatch.setattr("gramian.data.rows.array.WIDE_FEATURES", 20)


def operators(
    kernel: kernels.Kernel, dtype: type, columns: slice
) -> tuple[KernelOperator, KernelOperator]:
    """Return the same operator of sparse and of dense rows, on the reference engine."""
    sparse, dense = X.astype(dtype), DENSE.astype(dtype)
    rows = as_rows(sparse)
    assert rows.width < D
    return (
        KernelOperator(kernel, rows, as_rows(sparse[columns]), "torch"),
        KernelOperator(kernel, dense, dense[columns], "torch"),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_products_are_those_of_dense_rows(kernel, dtype):
    K, dense = operators(kernel, dtype, slice(0, 50))
    each = 2e-5 if dtype is np.float32 else 1e-10
    if kernel.kinked and dtype is np.float64:  # of equal rows r² is rounding, and r its root
        each = 4 * np.finfo(dtype).eps ** 0.5
    close = {"rtol": 0, "atol": each * N}
    v, u = RNG.standard_normal((50, 2)), Y[:, None]
    assert_close(K @ v, dense @ v, **close)
    assert_close(K.T @ u, dense.T @ u, **close)
    assert_close(K.normal(v), dense.normal(v), **close)
    assert_close(K.normal(None, targets=u), dense.normal(None, targets=u), **close)
    assert_close(K.dense(), dense.dense(), rtol=0, atol=close["atol"] / N)
    assert K.rows.sparse


def test_the_diagonal_is_exact():
    rows = as_rows(X)
    K = KernelOperator(kernels.Laplacian(2.0), rows, rows, "torch")
    assert bool((xp.diagonal(K.dense()) == 1).all())
    assert bool((K.diag() == 1).all())


def test_columns_that_rows_do_not_share_are_left_out():
    left = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [0, 5, 59], [0, 2, 3]), shape=(2, 60))
    right = scipy.sparse.csr_array(([4.0, 5.0], [5, 7], [0, 2, 2]), shape=(2, 60))
    known = _sparse.Columns(_sparse.of_scipy(right))
    a, b = known.of(_sparse.of_scipy(left)), known.rows
    assert a.shape == b.shape == (2, 2)
    assert len(xp.entries(a)) == 1
    expected = (left @ right.T).toarray()
    assert np.array_equal(_sparse.product(a, _sparse.transpose_sparse(b)), expected)


def test_the_median_is_that_of_dense_rows():
    kernel = kernels.Gaussian("median")
    found = kernel.resolve(_sparse.of_scipy(X))
    expected = kernel.resolve(DENSE)
    assert found.lengthscale == pytest.approx(expected.lengthscale, rel=1e-9)
    same = kernel.resolve(_sparse.of_scipy(scipy.sparse.csr_array(np.ones((3, 40)))))
    assert same.lengthscale == 1.0


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "auto"])
@pytest.mark.parametrize(
    "settings",
    [
        {"landmarks": 60, "solver": "falkon"},
        {"landmarks": 60, "solver": "direct"},
        {"landmarks": "bless", "solver": "falkon"},
        {"landmarks": "recursive_rls", "solver": "falkon"},
        {"solver": "direct"},
        {"solver": "pcg"},
        {"solver": "askotch"},
        {"landmarks": 60, "penalty": "auto"},
    ],
    ids=lambda s: "-".join(f"{v}" for v in s.values()),
)
def test_fits_are_those_of_dense_rows(kernel, settings, tmp_path: Path):
    settings = {
        "penalty": 1e-3,
        "standardize": False,
        "random_state": 0,
        "engine": "torch",
    } | settings
    settings |= {"lengthscale": 1.0} if kernel == "linear" else {}
    found = KernelRidge(kernel, **settings).fit(X, Y)
    expected = KernelRidge(kernel, **settings).fit(DENSE, Y)
    assert found.model_.centers.sparse
    said = expected.predict(DENSE)
    error = 0.02 if kernel == "auto" or settings.get("solver") == "askotch" else 1e-3
    error = 0.05 if settings.get("landmarks") in ("bless", "recursive_rls") else error
    assert np.abs(found.predict(X) - said).mean() < error * np.std(said)
    np.testing.assert_allclose(found.predict(DENSE), found.predict(X), atol=1e-8)
    found.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.centers.sparse
    np.testing.assert_array_equal(again.predict(X)[:, 0], found.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"landmarks": 50, "solver": "eigenpro3"}, "EigenPro3 makes centers dense.*60 features"),
        ({"landmarks": 50, "solver": "sketchysaga"}, "SketchySAGA makes centers dense"),
        ({"solver": "eigenpro2"}, "EigenPro2 makes centers dense"),
        ({"landmarks": "kmeans"}, "landmarks of KMeans are dense, .* sparse rows of 60"),
    ],
)
def test_what_makes_centers_dense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge("gaussian", standardize=False, **settings).fit(X, Y)


@pytest.mark.slow
def test_classes_and_features():
    y = np.where(Y > 0, "up", "down")
    settings = {"lengthscale": 1.5, "landmarks": 60, "standardize": False, "random_state": 0}
    found = KernelRidgeClassifier("gaussian", engine="torch", **settings).fit(X, y)
    expected = KernelRidgeClassifier("gaussian", engine="torch", **settings).fit(DENSE, y)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(DENSE), atol=1e-3)
    logistic = KernelRidgeClassifier("gaussian", engine="torch", loss="logistic", **settings)
    assert logistic.fit(X, y).score(X, y) > 0.8
    some = {"kernel": "gaussian", "lengthscale": 1.5, "landmarks": 40, "random_state": 0}
    F = NystromTransformer(**some).fit(X).transform(X)
    G = NystromTransformer(**some).fit(DENSE).transform(DENSE)
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-6)


PARTS = 0.5 * kernels.Gaussian(1.5).on(range(40)) * kernels.make("chi_squared").on([3, 50])


@pytest.mark.parametrize("penalty", [1e-3, "auto"])
def test_kernels_of_some_columns(penalty):
    rows, dense = abs(X), abs(DENSE)
    settings = {"penalty": penalty, "standardize": False, "random_state": 0, "engine": "torch"}
    found = KernelRidge(PARTS + kernels.Linear(), landmarks=60, **settings).fit(rows, Y)
    expected = KernelRidge(PARTS + kernels.Linear(), landmarks=60, **settings).fit(dense, Y)
    assert found.model_.centers.sparse
    assert found.penalty_ == pytest.approx(expected.penalty_, rel=1e-6)
    np.testing.assert_allclose(found.predict(rows), expected.predict(dense), atol=1e-3)


def test_many_columns_of_sparse_rows_are_refused():
    with pytest.raises(ValueError, match="sparse; use at most 512 columns"):
        KernelRidge(kernels.Gaussian(1.0).on(range(600)), landmarks=9).fit(
            scipy.sparse.csr_array((20, 700)), Y[:20]
        )


@pytest.mark.parametrize("lengthscale", [np.linspace(1, 2, D), "auto"])
def test_a_penalty_is_chosen_by_the_features_of_rows(lengthscale):
    kernel = "tanimoto" if isinstance(lengthscale, str) else kernels.Gaussian(lengthscale)
    rows, dense = abs(X), abs(DENSE)
    found = KernelRidge(kernel, landmarks=60, standardize=False, random_state=0).fit(rows, Y)
    expected = KernelRidge(kernel, landmarks=60, standardize=False, random_state=0).fit(dense, Y)
    assert found.penalty_ == pytest.approx(expected.penalty_, rel=1e-6)
    np.testing.assert_allclose(found.predict(rows), expected.predict(dense), atol=2e-3)


@pytest.mark.parametrize("name", ["l1_laplacian", "chi_squared", "periodic", "haversine"])
def test_kernels_of_dense_rows_alone_say_so(name):
    with pytest.raises(ValueError, match=r"needs dense rows|takes 2 features"):
        KernelRidge(name, landmarks=20, standardize=False).fit(abs(X), Y)


def test_memory_maps_of_a_matrix_are_read_where_they_are(tmp_path: Path):
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    for part, values in parts.items():
        np.save(tmp_path / f"{part}.npy", values)
    maps = {part: np.load(tmp_path / f"{part}.npy", mmap_mode="r") for part in parts}
    matrix = scipy.sparse.csr_array(tuple(maps.values()), shape=X.shape)
    rows = as_rows(matrix)
    assert np.shares_memory(rows._matrix.data, maps["data"])
    assert np.shares_memory(rows._matrix.indices, maps["indices"])
    settings = {"lengthscale": 1.0, "landmarks": 60, "penalty": 1e-3, "random_state": 0}
    found = KernelRidge("linear", **settings).fit(matrix, Y)
    np.testing.assert_array_equal(
        found.predict(matrix), KernelRidge("linear", **settings).fit(X, Y).predict(X)
    )
