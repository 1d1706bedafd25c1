"""Ridge leverage scores: closed forms, and the approximation where it is exact."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from close import assert_close

import gramian
from gramian import _arrays as xp
from gramian import kernels, landmarks
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks.leverage.exact_rls import exact_scores
from gramian.landmarks.leverage.scores import Dictionary, Scorer, own_scores
from gramian.operators import KernelOperator

METHODS = ["bless", "bless_r", "recursive_rls", "squeak", "two_pass", "uniform"]


def points(n: int = 200, d: int = 3) -> np.ndarray:
    X = RandomStream(0).standard_normal((n, d), np.float64)
    X[: n // 10] *= 4  # a few rows of high leverage
    return X


def operator(X, kernel=None) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernels.Gaussian(1.0) if kernel is None else kernel, rows, rows)


def by_definition(X: np.ndarray, penalty: float, kernel=None) -> np.ndarray:
    K = (kernel or kernels.Gaussian(1.0))(xp.to_float64(X), xp.to_float64(X))
    ridge = len(X) * penalty * np.eye(len(X), dtype=K.dtype)
    return xp.diagonal(np.linalg.solve(K + ridge, K))


class TestExact:
    @pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0])
    @pytest.mark.parametrize("n", [1, 2, 200, 700])  # the inverse is squared 512 rows at a time
    def test_definition(self, n, penalty):
        X = points(n)
        found = exact_scores(operator(X), penalty)
        assert_close(found, by_definition(X, penalty), rtol=0, atol=1e-10)

    def test_float32_rows_are_scored_in_float64(self):
        X = xp.cast(points(), np.float32)
        found = exact_scores(operator(X), 1e-5)
        assert_close(found, by_definition(X, 1e-5), rtol=0, atol=1e-9)

    def test_equal_rows_share_one(self):
        found = exact_scores(operator(np.ones((50, 2), np.float64)), 0.1)
        assert_close(found, np.full_like(found, 1 / (50 * 1.1)))

    def test_rows_far_apart_have_none_in_common(self):
        X = 1e3 * np.arange(20.0, dtype=np.float64)[:, None]
        found = exact_scores(operator(X), 0.1)
        assert_close(found, np.full_like(found, 1 / (1 + 20 * 0.1)))

    def test_tight_clusters_share_one_each(self):
        X = 1e-8 * points(1000)
        X[:10] += 100.0
        found = exact_scores(operator(X), 1e-9)
        assert_close(
            found[:10].mean(), xp.to_float64(np.array(0.1, dtype=np.float32)), rtol=1e-3, atol=0
        )
        assert_close(found[10:].mean(), xp.to_float64(np.array(1 / 990)), rtol=1e-3, atol=0)

    def test_memory_is_checked_before_work(self):
        K = operator(points())
        with pytest.raises(ValueError, match=r"200 rows need 320 kB, but memory_limit allows 1 kB"):
            exact_scores(K, 1e-3, "1kB")
        assert K.meter.evaluations == 0


class TestScorer:
    @pytest.mark.parametrize(
        "kernel", [kernels.Gaussian(1.0), kernels.Linear() + kernels.Matern32(2.0)]
    )
    @pytest.mark.parametrize("penalty", [1e-5, 1e-2])
    def test_all_rows_with_weight_one_are_exact(self, kernel, penalty):
        X = points()
        scorer = Scorer.build(operator(X, kernel), Dictionary.uniform(np.arange(200)), penalty)
        assert_close(scorer(), by_definition(X, penalty, kernel), rtol=1e-7, atol=1e-9)
        index = np.array([3, 50, 199])
        assert_close(scorer(index), scorer()[index])

    def test_no_rows_give_the_bound(self):
        K = operator(points(), kernels.Linear())
        norms = np.square(points()).sum(axis=1)
        found = Scorer.build(K, Dictionary.empty(), 0.01)()
        assert_close(found, (norms / (200 * 0.01)).clip(max=1.0))

    def test_a_repeated_row_is_one_with_half_the_copies(self):
        X = points(30)
        twice = Dictionary(
            np.array([4, 4, 7]), xp.to_float64(np.array([0.5, 0.5, 0.2], dtype=np.float32))
        )
        merged = Dictionary(
            np.array([4, 7]), xp.to_float64(np.array([0.25, 0.2], dtype=np.float32))
        )
        K = operator(X)
        assert_close(
            Scorer.build(K, twice, 1e-3)(), Scorer.build(K, merged, 1e-3)(), rtol=1e-9, atol=0
        )

    def test_own_rows_need_no_others(self):
        K, index = operator(points()), np.arange(0, 200, 7)
        J = Dictionary(index, np.random.default_rng(0).random(len(index)) + 0.01)
        found = own_scores(K, K.rows.take(index), J.copies, 1e-3)
        assert_close(found, Scorer.build(K, J, 1e-3)(index), rtol=1e-8, atol=1e-12)

    def test_duplicates_and_a_tiny_penalty_do_not_raise(self):
        X = np.tile(points(20), (5, 1))
        J = Dictionary.uniform(np.arange(100), 1e-12)
        found = Scorer.build(operator(X), J, 1e-14)()
        assert bool(((found >= 0) & (found <= 1)).all())

    def test_scores_fall_with_the_penalty(self):
        K, J = operator(points()), Dictionary.uniform(np.arange(0, 200, 4), 0.25)
        some = [Scorer.build(K, J, penalty)() for penalty in (1e-5, 1e-4, 1e-3, 1e-2)]
        assert all(bool((a >= b - 1e-12).all()) for a, b in itertools.pairwise(some))


class TestApproximation:
    @pytest.mark.parametrize("method", METHODS)
    def test_within_a_factor_of_the_exact_ones(self, method):
        X, penalty = points(1500), 2e-3
        exact = by_definition(X, penalty)
        ratio = np.concatenate(
            [
                gramian.leverage_scores(
                    kernels.Gaussian(1.0), X, penalty, method, random_state=seed
                )
                / exact
                for seed in range(3)
            ]
        )
        assert 0.95 <= ratio.mean() <= 1.15
        assert np.quantile(ratio, 0.05) >= 0.6
        assert np.quantile(ratio, 0.95) <= 1.6

    @pytest.mark.parametrize("method", ["exact", *METHODS])
    def test_the_effective_dimension(self, method):
        X, penalty = points(1500), 2e-3
        found = gramian.effective_dimension(
            kernels.Gaussian(1.0), X, penalty, method, random_state=0
        )
        expected = float(by_definition(X, penalty).sum())
        assert found == pytest.approx(expected, rel=1e-8 if method == "exact" else 0.12)

    def test_few_rows_are_exact_by_default(self, monkeypatch):
        X, penalty = points(300), 2e-3
        exact = by_definition(X, penalty)
        dimension = gramian.effective_dimension(kernels.Gaussian(1.0), X, penalty)
        assert dimension == pytest.approx(float(exact.sum()), rel=1e-8)
        scores = gramian.leverage_scores(kernels.Gaussian(1.0), X, penalty)
        np.testing.assert_allclose(scores, exact, rtol=1e-6)
        monkeypatch.setattr("gramian.estimators.leverage.EXACT_ROWS", 299)
        beyond, bless = (
            gramian.effective_dimension(kernels.Gaussian(1.0), X, penalty, method, random_state=0)
            for method in ("auto", "bless")
        )
        assert beyond == bless != dimension

    def test_aliases(self):
        X = points(300)
        by = {
            name: gramian.leverage_scores("gaussian", X, 1e-2, name, random_state=1)
            for name in ("exact", "exact_rls", "recursive", "recursive_rls")
        }
        np.testing.assert_allclose(by["exact"], by["exact_rls"], rtol=1e-9)
        np.testing.assert_allclose(by["recursive"], by["recursive_rls"], rtol=1e-9)

    def test_a_selector_may_be_given(self):
        X = points(300)
        found = gramian.leverage_scores(
            kernels.Gaussian(1.0), X, 1e-2, landmarks.Uniform(300), random_state=0
        )
        np.testing.assert_allclose(found, by_definition(X, 1e-2), rtol=1e-7)

    def test_any_source(self, tmp_path):
        X = points(300) * (points(300) > 0)
        np.save(tmp_path / "x.npy", X)
        table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=37)
        sources = [
            np.load(tmp_path / "x.npy", mmap_mode="r"),
            tmp_path / "x.parquet",
            scipy.sparse.csr_array(X),
            X.tolist(),
        ]
        for method in ("exact", *METHODS):
            here = gramian.leverage_scores("matern32", X, 1e-2, method, random_state=3)
            for source in sources:
                there = gramian.leverage_scores("matern32", source, 1e-2, method, random_state=3)
                np.testing.assert_allclose(here, there, rtol=1e-7)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": "kmeans"}, "method must be auto, exact"),
            ({"penalty": 0.0}, "penalty must be positive and finite, not 0.0"),
            ({"X": np.array([[1.0], [np.nan]])}, "NaN"),
            ({"kernel": "gausian"}, "unknown kernel 'gausian'"),
            ({"kernel": "rbf"}, "did you mean gaussian"),
            ({"method": landmarks.KMeans(2)}, "need landmarks that are rows"),
        ],
    )
    def test_refusals(self, change, message):
        given = {"kernel": "gaussian", "X": np.eye(5), "penalty": 1e-3, "random_state": 0} | change
        with pytest.raises(ValueError, match=message):
            gramian.leverage_scores(**given)
