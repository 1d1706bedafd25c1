"""The gain of each step of a search."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from trials import TRIALS, trial

from gramian.search import Gain, gains
from gramian.search.gains import late_gain


class TestGains:
    def test_shares_of_the_error_step_by_step(self):
        found = gains(TRIALS)
        assert [one.step for one in found] == [
            "screen", "sample", "metric", "kernel", "fit", "average"
        ]  # fmt: skip
        assert [one.error for one in found] == pytest.approx([0.8, 0.7, 0.6, 0.6, 0.3, 0.15])
        assert found[0].gain is None
        assert [one.gain for one in found[1:]] == pytest.approx([1 / 8, 1 / 7, 0, 1 / 2, 1 / 2])
        assert [one.trials for one in found] == [2, 1, 2, 1, 1, 1]
        assert found[2].seconds == 3.5

    def test_a_step_that_is_worse_gains_nothing(self):
        assert gains([trial("screen", 0.25), trial("fit", 0.5)])[1] == Gain("fit", 1, 0.5, 0.0, 1.0)

    def test_other_scores_are_not_compared_with_squared_errors(self):
        scored = trial("fit", 0.04, losses=((1e-3, 0.3), (1e-4, 0.2)))
        found = gains([trial("screen", 0.25), scored])
        assert (found[1].error, found[1].gain) == (pytest.approx(0.2), None)

    def test_a_loss_that_is_no_number_is_left_out(self):
        assert gains([trial("screen", math.inf)]) == []


class TestLateGain:
    def test_the_fall_in_the_second_half_of_the_time(self):
        trials = [
            replace(trial("screen", loss), elapsed=elapsed)
            for loss, elapsed in ((4.0, 1.0), (1.0, 4.0), (2.0, 5.0), (0.25, 7.0), (0.3, 8.0))
        ]
        assert late_gain(trials) == pytest.approx(0.5)
        assert late_gain(trials[:3]) == pytest.approx(0.5)
        assert late_gain(trials[:1] + trials[2:3]) == pytest.approx(1 - math.sqrt(0.5))

    def test_a_search_that_has_ended_falls_no_more(self):
        trials = [replace(trial("fit", 1.0), elapsed=float(i)) for i in range(1, 5)]
        assert late_gain(trials) == 0

    def test_nothing_to_compare(self):
        scored = trial("fit", 0.04, losses=((1e-3, 0.3), (1e-4, 0.2)))
        for trials in ([], [trial("refit", math.nan)], [scored], [trial("fit", 0.5)]):
            assert late_gain(trials) is None
