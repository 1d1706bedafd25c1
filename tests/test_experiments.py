"""Scores of candidates for the next experiment, against integrals and random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gramian.experiments import expected_improvement, upper_confidence_bound

CASES = [(0.0, 1.0, 0.5), (2.0, 0.3, -1.0), (-4.0, 0.5, 1.0), (1.0, 1e-3, 1.0)]


@pytest.mark.parametrize(("mean", "std", "best"), CASES)
def test_expected_improvement_is_the_integral_of_the_gain(mean, std, best):
    gain, _ = quad(lambda y: (y - best) * norm.pdf(y, mean, std), best, mean + 12 * std + 1e-9)
    found = expected_improvement([mean], [std], best)
    np.testing.assert_allclose(found, [max(gain, 0.0)], rtol=1e-6, atol=1e-20)


def test_without_a_deviation_the_gain_is_certain():
    found = expected_improvement([3.0, 1.0], [0.0, 0.0], best=2.0)
    assert found.tolist() == [1.0, 0.0]


def test_a_hopeless_candidate_is_worth_nothing_and_never_less():
    assert (expected_improvement(np.linspace(-80, -5, 50), np.ones(50), 0.0) >= 0).all()


def test_the_bound_is_the_mean_and_some_deviations():
    np.testing.assert_allclose(upper_confidence_bound([1.0, 2.0], [0.5, 0.0], 3.0), [2.5, 2.0])


@pytest.mark.parametrize("score", [expected_improvement, upper_confidence_bound])
@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        ([1.0, 2.0], [1.0], r"shape of mean, \(2,\), not .of shape \(1,\)"),
        ([1.0], [-1.0], "std at least 0"),
        ([np.nan], [1.0], "finite"),
    ],
)
def test_what_is_no_prediction_is_refused(score, mean, std, message):
    with pytest.raises(ValueError, match=message):
        score(mean, std, 1.0)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="best must be finite, not inf"):
        expected_improvement([1.0], [1.0], np.inf)
    with pytest.raises(ValueError, match="width must be positive and finite"):
        upper_confidence_bound([1.0], [1.0], 0.0)
