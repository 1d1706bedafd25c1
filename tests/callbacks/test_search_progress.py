"""What a search says while it works, and the gain of each step."""

from __future__ import annotations

import math
import pickle
import time
from typing import Any

import numpy as np
import pytest
from clock import wait_until
from sklearn.base import clone

from gramian import KernelRidgeCV
from gramian.callbacks import SearchBar, SearchLines
from gramian.search import Gain, Recipe, Trial, gains

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = np.sin(2 * X[:, 0])


def trial(step: str, loss: float, rounds: int = 0, **more: Any) -> Trial:
    recipe = Recipe("laplacian", rounds=rounds)
    losses = more.pop("losses", ((1e-3, 2 * loss), (1e-4, loss)))
    return Trial(step, recipe, 1e-4, loss, losses, None, 0.5, more.pop("elapsed", 1.0), 10)


class TestGains:
    TRIALS = (
        trial("screen", 0.64),
        trial("screen", 0.81),
        trial("metric", 0.49),
        trial("metric", 0.36, rounds=1, elapsed=3.0),
        trial("metric", 0.40, rounds=2, elapsed=3.5),
        trial("kernel", 0.38, rounds=1),
        trial("fit", 0.09, rounds=1),
        trial("average", 0.0225, rounds=1, losses=()),
        trial("refit", math.nan, rounds=1, losses=()),
    )

    def test_shares_of_the_error_step_by_step(self):
        found = gains(self.TRIALS)
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


class TestLines:
    def test_what_is_tried_and_gained(self):
        lines = SearchLines(print)
        assert lines.line() == "reading"
        lines.stage("encoding")
        assert lines.line() == "encoding"
        for one in TestGains.TRIALS:
            lines(one)
            if one.step == "metric" and one.recipe.rounds == 1:
                assert lines.line() == (
                    "learning a metric, trial 4: laplacian, 1 medians, standard inputs, metric of "
                    "round 1, M^0.5, error 0.6; screen 0.8, sample 0.7 (12.5 % less), metric 0.6 "
                    "(14.3 % less)"
                )
        assert lines.line().startswith("fitting held-out rows, too, trial 9: laplacian")
        assert "error" not in lines.line()

    def test_a_line_now_and_then_within_the_context(self):
        said: list[str] = []
        lines = SearchLines(said.append, every_seconds=0.01)
        with lines:
            lines(trial("screen", 0.25))
            wait_until(lambda: len(said) >= 2)
        count = len(said)
        assert said[-1].endswith("error 0.5; screen 0.5, 0 s")
        time.sleep(0.05)
        assert len(said) == count

    def test_in_a_search(self):
        lines = SearchLines(print)
        KernelRidgeCV(budget=1e5, callbacks=[lines], random_state=0).fit(X, Y)
        assert lines.line().startswith("fitting held-out rows, too, trial ")
        assert ", fit " in lines.line()


class TestBar:
    def test_a_line_for_each_step_that_is_done(self, capsys):
        bar = SearchBar(20.0)
        with bar:
            for one in TestGains.TRIALS:
                bar(one)
        said = capsys.readouterr().err
        for text in ("screen 0.8", "metric 0.6 (14.3 % less)", "average 0.15 (50.0 % less)"):
            assert said.count(text) == 1, text

    def test_silent_outside_of_the_context(self, capsys):
        bar = SearchBar()
        bar.stage("reading")
        bar(trial("screen", 0.25))
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("callback", [SearchBar(9.0), SearchLines(print)])
def test_callbacks_can_be_cloned_and_pickled(callback):
    est = KernelRidgeCV(callbacks=[callback])
    with callback:
        again = pickle.loads(pickle.dumps(clone(est)))
    again.callbacks[0](trial("screen", 0.25))
    assert again.callbacks[0].__getstate__().keys() == callback.__getstate__().keys()
