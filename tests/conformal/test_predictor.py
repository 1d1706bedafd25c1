"""Intervals and sets from scores: order statistics, and refusals of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramian.conformal import CalibratedPart, ConformalPredictor, make
from gramian.conformal.parts import prediction_sets, set_scores


class Constant:
    """A model of one value for each row."""

    def predict(self, rows, **settings):
        return np.zeros((len(rows), 1), np.float64)


def predictor(scores: np.ndarray) -> ConformalPredictor:
    return ConformalPredictor(make("split"), (CalibratedPart(scores),))


class TestQuantiles:
    @pytest.mark.parametrize(
        ("level", "half"), [(0.5, 3.0), (0.6, 4.0), (0.8, 5.0), (0.84, math.inf), (0.01, 1.0)]
    )
    def test_are_those_of_the_theorem(self, level, half):
        """Of five scores and one new one each rank has the same chance."""
        scores = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=np.float64)
        made = predictor(scores)
        ends = made.intervals(Constant(), range(3), level)
        np.testing.assert_array_equal(ends[:, 0], [[-half, half]] * 3)
        assert made.least_level() == 5 / 6

    def test_of_folds_they_are_order_statistics_of_bounds(self):
        rng = np.random.default_rng(0)
        folds = [np.sort(rng.exponential(size=(n, 1)), axis=0) for n in (4, 5)]

        class Values(Constant):
            def __init__(self, number):
                self.number = number

            def predict(self, rows, **settings):
                return np.full((len(rows), 1), float(self.number), dtype=np.float64)

        parts = tuple(
            CalibratedPart(scores, {"values": Values(k)}) for k, scores in enumerate(folds)
        )
        made = ConformalPredictor(make("cv+"), parts)
        ends = made.intervals(Constant(), range(2), 0.8)
        low = np.sort(np.concatenate([k - scores[:, 0] for k, scores in enumerate(folds)]))
        high = np.sort(np.concatenate([k + scores[:, 0] for k, scores in enumerate(folds)]))
        # of n = 9: the floor(10 * 0.2) = second smallest, the ceil(10 * 0.8) = eighth smallest
        np.testing.assert_allclose(ends[0, 0], [low[1], high[7]])
        assert np.isinf(made.intervals(Constant(), range(2), 0.95)).all()

    def test_scores_of_classes_are_likelier_ones_and_half_of_their_own(self):
        chances = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.5, 0.2, 0.3]], dtype=np.float32)
        found = set_scores(chances, np.array([2, 0, 1]))
        np.testing.assert_allclose(found, [[0.75], [0.25], [0.9]], rtol=1e-6)

    def test_sets_end_with_the_quantile(self):
        scores = np.linspace(0.1, 0.9, 9, dtype=np.float64)[:, None]
        chances = np.array([[0.1, 0.6, 0.3], [0.95, 0.03, 0.02]], dtype=np.float64)
        made = predictor(scores)
        assert prediction_sets(made.parts, [chances], 0.9).tolist() == [
            [False, True, True],
            [True, False, False],
        ]
        assert prediction_sets(made.parts, [chances], 0.6).tolist() == [
            [False, True, False],
            [True, False, False],
        ]
        assert prediction_sets(made.parts, [chances], 0.95).all()

    @pytest.mark.parametrize("scores", [[[2.0], [1.0]], [[-1.0]], [[math.nan]], [1.0]])
    def test_scores_increase(self, scores):
        with pytest.raises(ValueError, match="scores must"):
            predictor(np.array(scores, dtype=np.float64))

    def test_scores_of_quantiles_may_be_negative(self):
        scores = np.array([[-1.0], [2.0]], dtype=np.float64)
        assert ConformalPredictor(make("cqr"), (CalibratedPart(scores),)).count == 2
