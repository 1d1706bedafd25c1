"""Nystrom and Fourier features: their inner products, whatever holds the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.approximations import FourierMap, Moments, NystromMap
from gramian.data import as_rows

N, D, M = 83, 3, 17

KERNELS = [
    kernels.Gaussian(1.3),
    kernels.Gaussian((0.7, 1.5, 3.0)),
    kernels.Laplacian(2.0),
    kernels.Laplacian((0.7, 1.5, 3.0)),
    kernels.L1Laplacian(2.0),
    kernels.L1Laplacian((0.7, 1.5, 3.0)),
    kernels.Matern12(1.5),
    kernels.Matern32(1.5),
    kernels.Matern52((0.7, 1.5, 3.0)),
    2.5 * kernels.Gaussian(1.0),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)

MIXED = [
    kernels.RationalQuadratic(1.5, alpha=0.7),
    kernels.RationalQuadratic((0.7, 1.5, 3.0), alpha=4.0),
    kernels.Gaussian(1.0) + 3.0 * kernels.Laplacian(2.0),
    kernels.Gaussian((0.7, 1.5, 3.0)) * kernels.L1Laplacian(2.0),
    kernels.Matern32(1.5).on([2, 0]) + 0.5 * kernels.Gaussian(1.0).on([1]),
    kernels.Gaussian(2.0) * (kernels.Matern12(1.0).on([1]) + kernels.RationalQuadratic(1.0)),
]


def points(n: int = N, d: int = D, dtype: np.dtype = np.float64) -> np.ndarray:
    return RandomStream(0).standard_normal((n, d), dtype)


def projected(kernel: kernels.Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """K_nm K_mm^+ K_mn, by a pseudo-inverse with a cut of its own."""
    K = kernel(xp.to_float64(X), xp.to_float64(Z))
    inverse = np.linalg.pinv(kernel(xp.to_float64(Z), xp.to_float64(Z)), rtol=1e-11, hermitian=True)
    return K @ inverse @ K.T


# --- Nystrom ---------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, M, N])
@pytest.mark.parametrize(
    "kernel",
    [*KERNELS, kernels.Polynomial(lengthscale=2.0, degree=2), kernels.RationalQuadratic(1.0)],
    ids=str,
)
def test_inner_products_are_the_nystrom_approximation(kernel, m, dtype):
    X = points(dtype=dtype)
    F = NystromMap.build(kernel, X[:m]).features(as_rows(X))
    assert F.dtype == dtype
    assert F.shape[0] == N
    assert F.shape[1] <= m
    F = xp.to_float64(F)
    scale = float(kernel.diag(X).max())
    atol = (2e-4 if dtype == np.float32 else 1e-7) * scale  # smooth kernels are cut at eps · m
    assert np.allclose(F @ F.T, projected(kernel, X, X[:m]), atol=atol, rtol=0)


def test_features_of_the_landmarks_give_their_kernel_matrix():
    X = points(M)
    kernel = kernels.Laplacian(1.0)  # well conditioned
    F = NystromMap.build(kernel, X).features(as_rows(X))
    assert np.allclose(F @ F.T, kernel(X, X), atol=1e-13)


def test_a_rank_keeps_the_leading_eigenpairs_of_the_landmarks():
    X = points()
    kernel = kernels.Gaussian(1.0)
    whole = NystromMap.build(kernel, X[:M])
    part = NystromMap.build(kernel, X[:M], rank=5)
    assert part.width == 5
    assert np.allclose(part.features(as_rows(X)), whole.features(as_rows(X))[:, :5])
    values = xp.flip(np.linalg.eigvalsh(kernel(X[:M], X[:M])), 0)[:5]
    own = part.features(as_rows(X[:M]))
    assert np.allclose(own.T @ own, np.diag(values), atol=1e-12)


def test_repeated_landmarks_add_no_features(dtype):
    X = points(dtype=dtype)
    twice = NystromMap.build(kernels.Laplacian(1.0), np.concatenate([X[:M], X[:M]]))
    once = NystromMap.build(kernels.Laplacian(1.0), X[:M])
    assert twice.width == once.width == M
    F, G = (xp.to_float64(f.features(as_rows(X))) for f in (twice, once))
    eps = xp.finfo(dtype).eps
    assert np.allclose(F @ F.T, G @ G.T, atol=1e3 * eps)


def test_a_kernel_that_is_zero_at_the_landmarks_has_zero_features():
    X = points()
    features = NystromMap.build(kernels.Linear(), np.zeros((3, D), np.float64))
    assert np.array_equal(features.features(as_rows(X)), np.zeros((N, 1), np.float64))


def test_float32_features_stay_accurate_where_the_landmarks_are_dependent():
    # Neighbours at 1e-3 lengthscales: without a cut, rounding errors come back a thousandfold.
    X = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    kernel = kernels.Gaussian(0.3)
    F = xp.to_float64(NystromMap.build(kernel, X).features(as_rows(X)))
    assert float(np.abs(F @ F.T - kernel(xp.to_float64(X), xp.to_float64(X))).max()) < 1e-4


@pytest.mark.parametrize("memory", [1 << 20, 1 << 28])
def test_blocks_do_not_change_the_features(memory):
    X = points(2000, 5)
    features = NystromMap.build(kernels.Gaussian(2.0), X[:30], engine="torch")
    whole = features.apply(X)
    assert np.allclose(features.features(as_rows(X), memory_bytes=1 << 28), whole)
    parts = [F for _, _, F in features.strips(as_rows(X), memory_bytes=1 << 28)]
    assert np.allclose(np.concatenate(parts), whole)


# --- Fourier ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, *MIXED], ids=str)
def test_random_waves_have_the_kernel_as_their_mean(kernel):
    X = points(12)
    K = kernel(X, X)
    draws = 40
    errors = []
    for size in (100, 10_000):
        mean = np.zeros_like(K)
        square = 0.0
        for seed in range(draws):
            rng = RandomStream(seed)
            F = FourierMap.build(kernel, D, size, rng=rng).features(as_rows(X))
            difference = F @ F.T - K
            square += float(np.square(difference).mean()) / draws
            mean += difference / draws
        scale = float(K.max())
        # A wave's product is within the scale, so that s / 2 of them average to sqrt(2 / s) of it.
        assert square**0.5 < scale * (2 / size) ** 0.5
        assert float(np.abs(mean).max()) < 5 * scale * (2 / (size * draws)) ** 0.5
        errors.append(square**0.5)
    assert 7 < errors[0] / errors[1] < 14  # like the root of the size, 10


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_an_odd_number_of_waves_is_unbiased_too(size):
    X = points(4)
    kernel = kernels.Gaussian(1.0)
    total = np.zeros((4, 4), np.float64)
    draws = 800
    for seed in range(draws):
        rng = RandomStream(seed)
        F = FourierMap.build(kernel, D, size, rng=rng).features(as_rows(X))
        assert F.shape == (4, size)
        total += F @ F.T
    assert np.allclose(total / draws, kernel(X, X), atol=5 * (2 / draws) ** 0.5)


def test_far_from_the_origin_float32_waves_keep_their_angles():
    X = points(20, dtype=np.float32) + 1000
    kernel = kernels.Gaussian(1.0)
    waves = FourierMap.build(kernel, D, 4000, rng=RandomStream(1))
    F = xp.to_float64(waves.features(as_rows(X)))
    exact = waves.features(as_rows(xp.to_float64(X)))
    assert np.allclose(F, exact, atol=1e-6)


@pytest.mark.parametrize("kernel", [kernels.Polynomial(), kernels.Gaussian() + kernels.Linear()])
def test_an_unknown_spectral_density_is_refused_in_words(kernel):
    with pytest.raises(ValueError, match="NystromTransformer works with any kernel"):
        FourierMap.build(kernel, D, 4, rng=RandomStream(0))


# --- both ------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["nystrom", "fourier"])
def test_every_source_gives_the_same_features(which, tmp_path, dtype):
    X = points(dtype=dtype)
    X[np.abs(X) < 0.5] = 0.0
    kernel = kernels.Gaussian(1.0)
    if which == "nystrom":
        features = NystromMap.build(kernel, X[:M])
    else:
        features = FourierMap.build(kernel, D, 10, rng=RandomStream(0))
    expected = features.features(as_rows(X))
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    for source in (
        tmp_path / "x.parquet",
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        scipy.sparse.csr_matrix(X),
    ):
        found = features.features(as_rows(source))
        assert found.dtype == dtype
        eps = xp.finfo(dtype).eps
        # an entry of the kernel is off by eps, a feature by that over the root of an eigenvalue
        assert np.allclose(found @ found.T, expected @ expected.T, atol=1e4 * eps)


@pytest.mark.parametrize("size", [1, 7, N])
def test_moments_of_blocks_are_those_of_all(size):
    X = points() + 1e4  # far from the origin: squares would lose half of the digits
    moments = Moments.of(X[i : i + size] for i in range(0, N, size))
    assert moments.count == N
    assert np.allclose(moments.mean, X.mean(axis=0))
    assert np.allclose(moments.scatter, np.cov(X.T) * (N - 1), rtol=1e-9)
