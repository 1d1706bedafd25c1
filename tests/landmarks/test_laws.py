"""The samplers against what their papers say: exact expectations, and recursions written out.

At sizes where only a share of the rows are candidates, some of them twice.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Bless, BlessR, RecursiveRLS, Squeak
from gramian.landmarks.leverage.bless import PathSelector
from gramian.landmarks.leverage.scores import Dictionary
from gramian.operators import KernelOperator

GAUSSIAN = kernels.Gaussian(1.0)


def points(n: int) -> np.ndarray:
    X = RandomStream(0).standard_normal((n, 2), np.float64)
    X[: n // 10] *= 4
    return X


def operator(X: np.ndarray, kernel: kernels.Kernel = GAUSSIAN) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernel, rows, rows)


def seeded(seed: int) -> RandomStream:
    return RandomStream(seed)


def scores(X: np.ndarray, J: np.ndarray, copies: np.ndarray, penalty: float) -> np.ndarray:
    """Return eq. (3) of the BLESS paper for all rows of X, from rows J with A = diag(copies)."""

    def k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / 2)

    shift, K = len(X) * penalty, k(X, X[J])
    inner = np.linalg.solve(k(X[J], X[J]) + shift * np.diag(copies), K.T)
    return (1 - (K * inner.T).sum(axis=1)) / shift


def mean_is(samples: np.ndarray, expected: float | np.ndarray) -> bool:
    """Return whether means over the first dimension are as expected, to 4.5 standard errors."""
    error = samples.std(axis=0) / len(samples) ** 0.5
    return bool((np.abs(samples.mean(axis=0) - expected) <= 4.5 * error + 1e-12).all())


class TestBlessWithReplacement:
    """One level from nothing: K_ii alike, so that R candidates are alike, M draws among them."""

    N, R, M, PENALTY = 20, 17, 10, 0.3  # 5 / 0.3 candidates, 2.9 / 0.3 draws, both rounded up

    def draws(self, X: np.ndarray, kernel: kernels.Kernel, count: int) -> np.ndarray:
        """Return 1 / copies of each row, zero if it was not drawn."""
        K, kappa2 = operator(X, kernel), 1.0
        out = np.zeros((count, len(X)), np.float64)
        for seed in range(count):
            level = Bless(penalty=self.PENALTY, oversampling=2.9).level(
                K, kappa2, Dictionary.empty(), self.PENALTY, 1, seeded(seed)
            )
            out[seed, level.dictionary.index] = 1 / level.dictionary.copies
        return out

    def test_every_row_is_drawn_as_often_and_weighs_as_much_as_the_law_says(self):
        drawn = self.draws(points(self.N), GAUSSIAN, 400)
        # times t of R candidates are a row, binomially; each draw takes it with t / R
        t = np.arange(self.R + 1)
        likely = [math.comb(self.R, int(i)) for i in t] * (1 / self.N) ** t
        likely = likely * (1 - 1 / self.N) ** (self.R - t)
        kept = 1 - (1 - t / self.R) ** self.M
        size = self.N * float(likely @ kept)
        assert mean_is(xp.to_float64(drawn > 0).sum(axis=1), size)
        assert mean_is(drawn, 1.0)
        # and a weight is 1 / (R / n · probability / t) for some t
        weights = t[1:] * self.N / self.R / kept[1:]
        gap = np.abs(drawn[drawn > 0][:, None] - weights).min(axis=1)
        assert float(gap.max()) < 1e-9
        assert bool((drawn > 1.01 * weights[0]).any())  # some were candidates twice

    def test_unequal_scores(self):
        X = np.linspace(0.2, 1.0, self.N, dtype=np.float64)[:, None]
        assert mean_is(self.draws(X, kernels.Linear(), 400), 1.0)


@pytest.mark.parametrize("kind", [Bless, BlessR])
class TestPathOfScores:
    def exact(self, X: np.ndarray, penalty: float) -> float:
        values = np.linalg.eigvalsh(GAUSSIAN(X, X)).clip(min=0)
        return float((values / (values + len(X) * penalty)).sum())

    def test_weights_with_m_count_all_rows_where_few_are_candidates(self, kind):
        X = points(3000)
        K, norms, sums = operator(X), np.square(X).sum(axis=1), []
        some = Dictionary.uniform(np.arange(0, 3000, 100), 0.01)
        for seed in range(40):
            J = kind(m=12)._exactly(K, 1.0, some, 0.1, 12, seeded(seed)).dictionary
            assert len(J) == 12
            sums.append(np.stack([(1 / J.copies).sum(), (norms[J.index] / J.copies).sum()]))
        assert K.meter.evaluations < 40 * 30 * 3000 / 2  # about 1,024 rows are scored by 30
        assert mean_is(
            np.stack(sums), xp.to_float64(np.array([3000.0, float(norms.sum())], dtype=np.float32))
        )

    def test_scores_of_a_level_are_at_its_own_penalty(self, kind):
        X, every = points(150), Dictionary.uniform(np.arange(150))
        K, path = operator(X), kind(penalty=1e-2, oversampling=4)
        level = path.level(K, 1.0, every, 1e-2, 1, seeded(0))
        assert level.effective_dimension == pytest.approx(self.exact(X, 1e-2), rel=1e-9)
        last = path._exactly(K, 1.0, every, 2e-2, 20, seeded(0))
        assert last.penalty == 2e-2
        assert last.effective_dimension == pytest.approx(self.exact(X, 2e-2), rel=1e-9)

    def test_each_level_is_scored_from_the_one_before(self, kind, monkeypatch):
        X, penalties, sizes = points(150), [], []
        original = kind.level

        def level(self: PathSelector, K, kappa2, previous, penalty, least, rng):
            penalties.append(penalty)
            sizes.append(len(previous))
            return original(self, K, kappa2, previous, penalty, least, rng)

        monkeypatch.setattr(kind, "level", level)
        path = kind(penalty=1e-2).select_path(operator(X), rng=seeded(0))
        assert penalties == [one.penalty for one in path]
        assert sizes == [0] + [len(one.dictionary) for one in path[:-1]]


class TestRecursion:
    def test_probabilities_are_three_halves_of_the_scores_from_half_of_the_rows(self):
        # delta = 0.9 ends the recursion at 192 log(1 / 0.9) = 20.2 rows
        X, penalty = points(40), 2e-2
        chosen = RecursiveRLS(penalty=penalty, oversampling=1.5, delta=0.9).select(
            operator(X), rng=seeded(4)
        )
        half = xp.sort(seeded(4).permutation(40)[:20])
        by_half = np.clip(scores(X, half, np.ones(20), penalty), 0, 1)
        p = np.minimum(1, 1.5 * np.minimum(1, 1.5 * by_half))
        copies = Dictionary.of(chosen, 40).copies
        assert_close(copies, p[chosen.index], rtol=1e-8, atol=0)
        assert bool((copies < 1).any())
        assert chosen.effective_dimension == pytest.approx(by_half.sum())


class TestSqueak:
    PENALTY, FACTOR, CHUNK = 2e-2, 2.0, 25

    def reference(self, X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rows, probabilities, and whether the min of the algorithm ever mattered."""
        rng, J, p, mattered = seeded(seed), np.empty(0, int), np.empty(0), False
        for start in range(0, len(X), self.CHUNK):
            J = np.concatenate([J, np.arange(start, start + self.CHUNK)])
            p = np.concatenate([p, np.ones(self.CHUNK)])
            wanted = self.FACTOR * scores(X, J, p, self.PENALTY)[J]
            mattered |= bool(((wanted > 1.01 * p) & (p < 1)).any())
            smaller = np.minimum(p, wanted)
            u = rng.random(len(J), np.float64)
            J, p = J[u < smaller / p], smaller[u < smaller / p]
        return J, p, mattered

    def test_the_recursion_of_the_paper(self):
        X, mattered = points(100), False
        squeak = Squeak(penalty=self.PENALTY, oversampling=self.FACTOR, chunk=self.CHUNK)
        for seed in range(3):
            J, p, here = self.reference(X, seed)
            found = squeak.sample(operator(X), self.PENALTY, rng=seeded(seed)).dictionary
            assert found.index.tolist() == J.tolist()
            assert_close(found.copies, p, rtol=1e-8, atol=0)
            mattered |= here
        assert mattered
