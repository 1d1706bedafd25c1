"""The weight of trees by held-out predictions."""

from __future__ import annotations

import pytest
import torch

from gramian.fitting.held_out.values import HeldValues
from gramian.fitting.search.blend import KERNEL_WEIGHTS, SearchTrees, blend_held_out
from gramian.model import Trees

NO_TREES = Trees(("",), torch.zeros(1), torch.ones(1), features=1)
SCALE = torch.ones(1).double()
TRUTH = torch.randn(400, 1, generator=torch.Generator().manual_seed(0)).double()
NOISE = torch.randn(400, 1, generator=torch.Generator().manual_seed(1)).double()


def weight_of(kernel_values, tree_values, **changes):
    settings = {"scale": SCALE, "score": None} | changes
    trees = SearchTrees(NO_TREES, tree_values)
    return blend_held_out(HeldValues(kernel_values, TRUTH), trees, **settings)


def test_the_right_one_has_all_weight():
    assert weight_of(TRUTH, NOISE) is None
    best = weight_of(NOISE, TRUTH)
    assert (best.weight, best.loss) == (0, 0)
    assert torch.equal(best.held_values.values, TRUTH)


def test_equal_ones_need_no_trees():
    assert weight_of(NOISE, NOISE) is None


def test_weights_of_independent_errors():
    # Errors of variances 1 and 4: the best weights are 4 / 5 and 1 / 5.
    other = torch.randn(400, 1, generator=torch.Generator().manual_seed(2)).double()
    best = weight_of(TRUTH + NOISE, TRUTH + 2 * other)
    assert best.weight == pytest.approx(0.8, abs=0.1)
    expected = best.weight * NOISE + (1 - best.weight) * 2 * other
    assert best.loss == pytest.approx(float(expected.square().mean()))


def test_small_weights_of_trees_are_left_out():
    assert min(1 - weight for weight in KERNEL_WEIGHTS if weight < 1) == pytest.approx(0.1)
    assert {0.0, 1.0} <= set(KERNEL_WEIGHTS)


def test_only_rows_of_both_choose():
    best = weight_of(NOISE, TRUTH[:100])
    assert best.weight == 0
    assert len(best.held_values.values) == 100


def test_a_score_of_the_user_chooses():
    def far(values, truth, weights):
        return -float((values - truth).abs().mean())

    assert weight_of(TRUTH, NOISE, score=far).weight == 0


def test_a_gain_below_its_standard_error_is_none():
    # One row of 400 has all of the difference.
    outlier = TRUTH + 0.1 * NOISE
    outlier[7] += 30
    trees = TRUTH + 0.2 * NOISE.roll(1)
    assert weight_of(outlier, trees) is None

    def score(values, truth, weights):
        return float((values - truth).square().mean())

    assert weight_of(outlier, trees, score=score).weight < 0.1
    outlier[::20] += 7
    assert weight_of(outlier, trees).weight < 0.1
