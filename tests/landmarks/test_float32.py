"""Float32 rows are scored in float64: scores and samples equal those of float64 rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian import _linalg, kernels, landmarks
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks.leverage.scores import Dictionary, Scorer, gram, own_scores, spectrum
from gramian.operators import KernelOperator


def points(n: int = 120) -> np.ndarray:
    return RandomStream(0).standard_normal((n, 3), np.float32)


def operators() -> dict[str, KernelOperator]:
    X = points()
    sources = {
        "float32": as_rows(X),
        "float64": as_rows(xp.to_float64(X)),
        "sparse": as_rows(scipy.sparse.csr_array(X)),
    }
    return {k: KernelOperator(kernels.Gaussian(1.0), rows, rows) for k, rows in sources.items()}


@pytest.mark.parametrize("kind", ["float32", "sparse"])
class TestSameAsFloat64:
    def test_gram(self, kind):
        K = operators()
        found = gram(K[kind], K[kind].rows.take(np.arange(9)))
        assert found.dtype == np.float64
        expected = gram(K["float64"], xp.to_float64(points()[:9]))
        assert_close(found, expected, rtol=0, atol=1e-12)

    def test_scores_from_a_dictionary(self, kind):
        K, J = operators(), Dictionary.uniform(np.arange(0, 120, 3), 1 / 3)
        found, expected = (Scorer.build(K[k], J, 1e-3)() for k in (kind, "float64"))
        assert_close(found, expected, rtol=0, atol=1e-10)

    def test_scores_of_a_dictionary_by_itself(self, kind):
        K, J = operators(), Dictionary.uniform(np.arange(0, 120, 3), 1 / 3)
        found, expected = (
            own_scores(K[k], K[k].rows.take(J.index), J.copies, 1e-3) for k in (kind, "float64")
        )
        assert_close(found, expected, rtol=0, atol=1e-10)

    def test_spectrum(self, kind):
        K, J = operators(), Dictionary.uniform(np.arange(0, 120, 3), 1 / 3)
        found, expected = (spectrum(K[k], J).penalty_for(5.0, 1e-12) for k in (kind, "float64"))
        assert found == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("name", ["bless", "bless_r", "recursive_rls", "squeak", "two_pass"])
    def test_selections(self, kind, name):
        K = operators()
        found, expected = (
            landmarks.make(name, penalty=1e-2).select(K[k], rng=RandomStream(3))
            for k in (kind, "float64")
        )
        assert np.array_equal(found.index, expected.index)
        assert_close(found.weight, expected.weight, rtol=1e-8, atol=0)


def test_a_factorisation_in_place_refuses_float32():
    with pytest.raises(TypeError, match=r"a copy of a float32"):
        _linalg.cholesky_(np.eye(3, dtype=np.float32))
