"""Subsets with known probabilities: each law against its count over many draws."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian.landmarks.leverage import sampling as sampling

DRAWS = 2000


def inclusions(draw, n: int) -> np.ndarray:
    """Return how often each of n numbers is drawn, in standard deviations from its expectation."""
    counts = np.zeros(n, np.float32)
    for _ in range(DRAWS):
        counts[draw()] += 1
    return counts / DRAWS


def close(found: np.ndarray, p: np.ndarray) -> bool:
    deviation = np.sqrt(p * (1 - p) / DRAWS).clip(min=1e-12)
    return bool((np.abs(found - p) <= 4.5 * deviation + 1e-12).all())


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 10), (200, 5), (200, 49), (10**9, 1000)])
def test_distinct_numbers_are_distinct_and_ordered(n, size, rng):
    drawn = sampling.draw_distinct(n, size, rng)
    assert len(drawn) == size
    assert bool((xp.diff(drawn) > 0).all())
    assert 0 <= int(drawn[0]) <= int(drawn[-1]) < n


@pytest.mark.parametrize(("n", "size"), [(12, 5), (40, 9)])  # by permutation, and by draws
def test_distinct_numbers_are_equally_likely(n, size, rng):
    found = inclusions(lambda: sampling.draw_distinct(n, size, rng), n)
    assert close(found, np.full((n,), size / n))


@pytest.mark.parametrize("probability", [0.05, 0.6, 1.0])
def test_thinning_keeps_each_with_its_probability(probability, rng):
    found = inclusions(lambda: sampling.draw_thinned(30, probability, rng), 30)
    assert close(found, np.full((30,), probability))


def test_multinomial_draws_follow_their_weights(rng):
    weight = np.array([0.0, 1.0, 3.0, 0.0, 6.0], dtype=np.float32)
    positions, probability = sampling.multinomial(weight, 100, rng)
    assert positions.tolist() == [1, 2, 4]
    expected = 1 - (1 - np.array([0.1, 0.3, 0.6], dtype=np.float64)) ** 100
    assert_close(probability, expected)
    found = inclusions(lambda: sampling.multinomial(weight, 2, rng)[0], 5)
    assert close(found, 1 - (1 - weight / 10) ** 2)


def test_multinomial_with_one_position_draws_it(rng):
    positions, probability = sampling.multinomial(np.array([0.0, 2.0], dtype=np.float32), 3, rng)
    assert positions.tolist() == [1]
    assert probability.tolist() == [1]


class TestProportional:
    @pytest.mark.parametrize("m", [1, 3, 17, 29])
    def test_proportional_up_to_one(self, m, rng):
        scores = rng.random(30, np.float64) ** 4
        p = sampling.proportional(scores, m)
        assert float(p.sum()) == pytest.approx(m, rel=1e-9)
        assert float(p.max()) <= 1
        ratio = (p / scores)[p < 1]
        assert float(ratio.max() - ratio.min()) <= 1e-6 * float(ratio.max())

    def test_all_rows(self):
        assert np.array_equal(
            sampling.proportional(np.zeros(4, np.float32), 4), np.ones(4, np.float32)
        )

    def test_no_scores_is_uniform(self):
        p = sampling.proportional(np.zeros(8, np.float64), 2)
        assert_close(p, np.full((8,), 0.25, dtype=np.float64))

    def test_fewer_positive_scores_than_rows_to_draw(self):
        scores = np.array([0.0, 1.0, 0.0, 0.5, 0.0], dtype=np.float64)
        p = sampling.proportional(scores, 3)
        assert_close(p, xp.to_float64(np.array([1 / 3, 1, 1 / 3, 1, 1 / 3])))


class TestSystematic:
    def test_exact_probabilities_and_a_fixed_size(self, rng):
        p = sampling.proportional(rng.random(20, np.float64) ** 3, 6)
        sizes = {len(sampling.systematic(p, rng)) for _ in range(50)}
        assert sizes == {6}
        assert close(inclusions(lambda: sampling.systematic(p, rng), 20), xp.cast(p, np.float32))

    def test_rows_are_distinct_where_probabilities_round_to_one(self, rng):
        p = np.array([1 - 1e-16, 1.0, 1 - 1e-12, 0.5, 0.5], dtype=np.float64)
        for _ in range(50):
            drawn = sampling.systematic(p, rng)
            assert len(np.unique(drawn)) == len(drawn) == 4

    def test_certain_rows_only(self, rng):
        assert sampling.systematic(np.ones(3, np.float64), rng).tolist() == [0, 1, 2]
