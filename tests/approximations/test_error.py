"""The norms of K - F F' against dense ones, held in memory or not."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import NystromTransformer, RandomFourierFeatures, kernels, nystrom_error
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import (
    FourierMap,
    NystromMap,
    frobenius_error,
    sampled_error,
    spectral_error,
    trace_error,
)
from gramian.approximations.error import _Difference
from gramian.operators import KernelOperator

N = 150
KERNEL = kernels.Gaussian(1.0)
NORMS = {"spectral": 2, "frobenius": "fro", "trace": "nuc"}


def points() -> np.ndarray:
    return RandomStream(0).standard_normal((N, 3), np.float64)


def maps() -> dict:
    X = points()
    rng = RandomStream(0)
    return {
        "nystrom": NystromMap.build(KERNEL, X[:20]),
        "many": NystromMap.build(KERNEL, X[:120]),
        "fourier": FourierMap.build(KERNEL, 3, 50, rng=rng),
    }


def dense(features) -> np.ndarray:
    X = points()
    F = features.apply(X)
    return KERNEL(X, X) - F @ F.T


def operator() -> KernelOperator:
    X = points()
    return KernelOperator(KERNEL, X, X)


@pytest.fixture(params=[True, False], ids=["held", "streamed"])
def held(request, monkeypatch):
    """Run with the features in memory, and as if they did not fit."""
    if not request.param:
        of = _Difference.of

        def streamed(K, features):
            return _Difference(of(K, features).K, features, None)

        monkeypatch.setattr(_Difference, "of", streamed)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("which", ["nystrom", "many", "fourier"])
def test_products_alone_give_the_norms(which):
    features, rng = maps()[which], RandomStream(0)
    E = dense(features)
    spectral = float(np.linalg.norm(E, 2))
    found = spectral_error(operator(), features, rng=rng)
    assert found <= spectral * (1 + 1e-9) + 1e-13
    assert found == pytest.approx(spectral, rel=1e-2, abs=1e-13)
    assert frobenius_error(operator(), features) == pytest.approx(float(xp.norm(E)), rel=1e-9)


@pytest.mark.parametrize("which", ["nystrom", "many"])
def test_the_trace_is_the_nuclear_norm_of_a_projection(which):
    features = maps()[which]
    expected = float(np.linalg.norm(dense(features), "nuc"))
    assert trace_error(operator(), features) == pytest.approx(expected, rel=1e-7)


def test_the_trace_of_waves_is_refused():
    with pytest.raises(ValueError, match="negative eigenvalues"):
        trace_error(operator(), maps()["fourier"])


@pytest.mark.parametrize("norm", list(NORMS))
@pytest.mark.parametrize("which", ["nystrom", "fourier"])
def test_a_sample_of_all_rows_is_exact_and_a_smaller_one_no_larger(norm, which):
    features = maps()[which]
    expected = float(np.linalg.norm(dense(features), NORMS[norm]))
    for size in (N, N + 1):
        rng = RandomStream(1)
        assert sampled_error(operator(), features, norm, size, rng=rng) == pytest.approx(expected)
    rng = RandomStream(1)
    assert 0 < sampled_error(operator(), features, norm, 40, rng=rng) <= expected


def test_a_sample_that_does_not_fit_is_refused():
    K = KernelOperator(KERNEL, points(), points(), memory_bytes=1000)
    with pytest.raises(ValueError, match="sample=None"):
        sampled_error(K, maps()["nystrom"], "spectral", 100, rng=RandomStream(0))


def test_kernel_evaluations_are_counted():
    K = operator()
    frobenius_error(K, maps()["nystrom"])
    assert K.meter.evaluations == N * N


def test_no_error_is_no_error():
    X = points()
    features = NystromMap.build(KERNEL, X)
    rng = RandomStream(0)
    assert spectral_error(operator(), features, rng=rng) < 1e-11
    assert frobenius_error(operator(), features) < 1e-10
    assert abs(trace_error(operator(), features)) < 1e-10


def test_float32_rows_are_measured_in_float64():
    X = xp.cast(points(), np.float32)
    features = NystromMap.build(KERNEL, xp.to_float64(X)[:120])
    K = KernelOperator(KERNEL, X, X)
    F = features.apply(xp.to_float64(X))
    E = KERNEL(xp.to_float64(X), xp.to_float64(X)) - F @ F.T
    assert frobenius_error(K, features) == pytest.approx(float(xp.norm(E)), rel=1e-6)


# --- the public function ---------------------------------------------------------------------


def test_landmarks_points_maps_and_transformers_are_all_understood(tmp_path):
    X = points()
    array = X
    by_points = nystrom_error(KERNEL, array, array[:20])
    assert nystrom_error(None, array, maps()["nystrom"]) == pytest.approx(by_points, rel=1e-2)
    transformer = NystromTransformer(KERNEL, landmarks=array[:20]).fit(array)
    assert nystrom_error(None, array, transformer) == pytest.approx(by_points, rel=1e-2)
    waves = RandomFourierFeatures(KERNEL, n_components=20, random_state=0).fit(array)
    assert nystrom_error(KERNEL, array, waves, "frobenius") > nystrom_error(
        KERNEL, array, array[:20], "frobenius"
    )
    assert nystrom_error("gaussian", array, 20, "trace", lengthscale=1.0, random_state=0) > 0


def test_the_same_random_state_the_same_number():
    X = points()
    first, again, other = (nystrom_error("gaussian", X, 9, random_state=s) for s in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gaussian", 5, "operator"), "unknown norm"),
        (("gaussain", 5, "trace"), "unknown kernel"),
        (("gaussian", maps()["nystrom"], "trace"), "kernel=None"),
        (("gaussian", 2.5, "trace"), "landmarks must be .* not 2.5"),
    ],
)
def test_refusals_are_in_words(arguments, message):
    kernel, landmarks, norm = arguments
    with pytest.raises(ValueError, match=message):
        nystrom_error(kernel, points(), landmarks, norm)


def test_features_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="X has 2 features, but the given map is for rows of 3"):
        nystrom_error(None, points()[:, :2], maps()["nystrom"])
