"""The kernel of a time series: its columns, its forecasts, and their deviations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gramian import GaussianProcess
from gramian.kernels import hyperparameters, seasonal

STEPS = np.arange(132)
FRAME = pd.DataFrame({"year": 1990 + STEPS / 12, "month": STEPS % 12 + 1.0})
SALES = 5 + 0.05 * STEPS + 2 * np.sin(2 * np.pi * STEPS / 12) + np.cos(4 * np.pi * STEPS / 12)
SALES += 0.2 * np.random.default_rng(0).standard_normal(132)


def test_periods_stay_and_all_else_is_tuned():
    kernel = seasonal("year", {"month": 12, "weekday": 7})
    numbers = hyperparameters(kernel.with_names(["year", "month", "weekday"]))
    assert len(numbers) == 6  # trend, two seasons that change, rough part
    assert not any("period" in name for name in numbers)
    assert "period=12.0" in repr(kernel)
    assert "period=7.0" in repr(kernel)
    assert seasonal(0, {1: 12}) == seasonal("t", {"m": 12}).with_names(["t", "m"])


def test_the_time_is_no_season():
    with pytest.raises(ValueError, match=r"seasons must be other columns than the time.*copy"):
        seasonal("month", {"month": 12})


def test_a_forecast_goes_on_with_line_and_season_and_its_deviations_grow():
    process = GaussianProcess(seasonal("year", {"month": 12}), random_state=0)
    process.fit(FRAME[:96], SALES[:96])
    mean, std = process.predict(FRAME[96:], return_std=True)
    error = mean - SALES[96:]
    naive = SALES[84:96].tolist() * 3 - SALES[96:]
    assert np.abs(error).mean() < 0.4 * np.abs(naive).mean()
    assert (np.abs(error) <= 1.645 * std).mean() > 0.75
    assert std[-12:].mean() > std[:12].mean()
    np.testing.assert_allclose(process.kernel_.second.kernel.columns, [0])


@pytest.mark.parametrize("by_name", [True, False], ids=["table", "frame"])
def test_times_are_standardised_and_places_in_the_season_are_not(by_name):
    process = GaussianProcess(seasonal("year", {"month": 12}), noise=0.04, tune=False)
    if by_name:
        process.fit(FRAME.assign(sales=SALES), "sales")
    else:
        process.fit(FRAME, SALES)
    scaled = process.model_.standardizer
    np.testing.assert_allclose(scaled.mean, [FRAME["year"].mean(), 0.0])
    np.testing.assert_allclose(scaled.scale, [FRAME["year"].std(ddof=0), 1.0])
