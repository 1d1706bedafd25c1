"""The weight of trees by held-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.fitting.held_out.validation import HeldValues
from gramian.fitting.search.blend import KERNEL_WEIGHTS, SearchTrees, blend_held_out
from gramian.model import Trees

NO_TREES = Trees(("",), np.zeros(1, np.float32), np.ones(1, np.float32), features=1)
SCALE = xp.to_float64(np.ones(1, np.float32))
TRUTH = xp.to_float64(RandomStream(0).standard_normal((400, 1), np.float32))
NOISE = xp.to_float64(RandomStream(1).standard_normal((400, 1), np.float32))


def weight_of(kernel_values, tree_values, **changes):
    settings = {"scale": SCALE, "score": None} | changes
    trees = SearchTrees(NO_TREES, tree_values)
    return blend_held_out(HeldValues(kernel_values, TRUTH), trees, **settings)


def test_the_right_one_has_all_weight():
    assert weight_of(TRUTH, NOISE) is None
    best = weight_of(NOISE, TRUTH)
    assert (best.weight, best.loss) == (0, 0)
    assert np.array_equal(best.held_values.values, TRUTH)


def test_equal_ones_need_no_trees():
    assert weight_of(NOISE, NOISE) is None


def test_weights_of_independent_errors():
    # Errors of variances 1 and 4: the best weights are 4 / 5 and 1 / 5.
    other = xp.to_float64(RandomStream(2).standard_normal((400, 1), np.float32))
    best = weight_of(TRUTH + NOISE, TRUTH + 2 * other)
    assert best.weight == pytest.approx(0.8, abs=0.1)
    expected = best.weight * NOISE + (1 - best.weight) * 2 * other
    assert best.loss == pytest.approx(float(np.square(expected).mean()))


def test_small_weights_of_trees_are_left_out():
    assert min(1 - weight for weight in KERNEL_WEIGHTS if weight < 1) == pytest.approx(0.1)
    assert {0.0, 1.0} <= set(KERNEL_WEIGHTS)


def test_only_rows_of_both_choose():
    best = weight_of(NOISE, TRUTH[:100])
    assert best.weight == 0
    assert len(best.held_values.values) == 100


def test_a_score_of_the_user_chooses():
    def far(values, truth, weights):
        return -float(np.abs(values - truth).mean())

    assert weight_of(TRUTH, NOISE, score=far).weight == 0


def test_a_gain_below_its_standard_error_is_none():
    # One row of 400 has all of the difference.
    outlier = TRUTH + 0.1 * NOISE
    outlier[7] += 30
    trees = TRUTH + 0.2 * np.roll(NOISE, 1)
    assert weight_of(outlier, trees) is None

    def score(values, truth, weights):
        return float(np.square(values - truth).mean())

    assert weight_of(outlier, trees, score=score).weight < 0.1
    outlier[::20] += 7
    assert weight_of(outlier, trees).weight < 0.1
