"""Twenty time series: a Gaussian process against ETS and the last season, repeated."""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.lib.timing import set_blas_threads
from gramian import GaussianProcess
from gramian.kernels import seasonal

from ..lib.results import Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from ..lib.timing import clock

TITLES = SERIES, SUMMARY = "Series", "All series"
HELD_SEASONS = 2
LEVEL, NORMAL_QUANTILE = 0.9, 1.645
QUICK_SERIES = 2

NOTES = f"""\
The last {HELD_SEASONS} seasons of each of 20 series are held out: 24 months, 8 quarters or 14 days.
They were evaluated once; the kernel and its starts were chosen by the two seasons before, of 12
to 16 of the series. Series have at most 20 years, or 52 weeks. One thread; CPU seconds of all fits
of a method and its forecast.

- process: `GaussianProcess(seasonal("step", {{"season": period}}))` of values or of their
  logarithms, whichever has the larger likelihood in units of the values: two fits.
- ETS: `statsmodels.tsa.exponential_smoothing.ets.ETSModel` with the smallest AICc of all errors,
  trends and seasons that it allows: 6 fits, and 15 of positive values. Steps without a value are
  interpolated.
- naive: the value of a season ago, plus and minus 1.645 deviations of seasonal differences, times
  the root of the number of seasons ahead.
- MASE: mean absolute error over the mean absolute seasonal difference of the training part; 90 %:
  share of held-out values within the interval; width: its mean over that unit. Smallest error:
  share of the series."""


@dataclass(frozen=True)
class Forecast:
    """Centre and interval of each step."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Series:
    """Training and held-out part of a series.

    Attributes
    ----------
    steps, values : ndarray of shape (n,)
    new_steps, new_values : ndarray of shape (h,)
    period : int
        Steps of a season.
    """

    name: str
    period: int
    steps: np.ndarray
    values: np.ndarray
    new_steps: np.ndarray
    new_values: np.ndarray

    @classmethod
    def of(cls, name: str, rows: pd.DataFrame) -> Series:
        """Hold out the last seasons of a series."""
        period = int(rows["period"].iloc[0])
        steps, values = rows["step"].to_numpy(np.int64), rows["value"].to_numpy(np.float64)
        is_held = steps > steps[-1] - HELD_SEASONS * period
        return cls(name, period, steps[~is_held], values[~is_held], steps[is_held], values[is_held])

    @property
    def without_gaps(self) -> np.ndarray:
        """The training values of all steps up to the first held-out season."""
        end = self.new_steps[-1] - HELD_SEASONS * self.period + 1
        return np.interp(np.arange(end), self.steps, self.values)

    @property
    def unit(self) -> float:
        """Mean absolute difference of values a season apart."""
        values = self.without_gaps
        return float(np.abs(values[self.period :] - values[: -self.period]).mean())

    @property
    def is_positive(self) -> bool:
        """Whether logarithms exist."""
        return bool((self.values > 0).all())


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("series", TITLES, NOTES, options)
    if (path := data_set(options.data, "series")) is None:
        return
    groups = list(pd.read_parquet(path).groupby("name", sort=False))
    for name, rows in groups[: QUICK_SERIES if options.quick else None]:
        series = Series.of(str(name), rows)
        for method, forecast in METHODS.items():
            if not tables.has(SERIES, series=name, method=method):
                tables.add(SERIES, measure(series, method, forecast))
    tables.replace(SUMMARY, summary(tables[SERIES]))


def measure(series: Series, method: str, forecast: Callable[[Series], Forecast]) -> Row:
    """Return scaled error, coverage and seconds of a method on a series."""
    with clock() as seconds, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ETS: candidates that do not converge
        found = forecast(series)
    truth = series.new_values
    return {
        "series": series.name,
        "period": series.period,
        "n": len(series.values),
        "method": method,
        "MASE": float(np.abs(found.mean - truth).mean() / series.unit),
        "90 %": float(np.mean((found.low <= truth) & (truth <= found.high))),
        "width": float((found.high - found.low).mean() / series.unit),
        "seconds": seconds.cpu,
    }


def summary(rows: list[Row]) -> list[Row]:
    """Return means and ranks of the methods."""
    data = pd.DataFrame(rows)
    errors = data.pivot(index="series", columns="method", values="MASE")
    wins = (errors.rank(axis=1) == 1).mean()
    means = data.groupby("method", sort=False)[["90 %", "width", "seconds"]].mean()
    return [
        {
            "method": method,
            "series": int(errors[method].count()),
            "mean MASE": float(errors[method].mean()),
            "median MASE": float(errors[method].median()),
            "smallest error": float(wins[method]),
            **{name: float(value) for name, value in means.loc[method].items()},
        }
        for method in means.index
    ]


def by_process(series: Series) -> Forecast:
    """Forecast by a Gaussian process of the values or of their logarithms."""
    kernel = seasonal("step", {"season": series.period})
    X, new = (
        pd.DataFrame({"step": steps, "season": steps % series.period}).astype(np.float64)
        for steps in (series.steps, series.new_steps)
    )
    fits = []
    for takes_logarithms in (False, True)[: 1 + series.is_positive]:
        y = np.log(series.values) if takes_logarithms else series.values
        process = GaussianProcess(kernel, random_state=0).fit(X, y)
        # The density of the values: of the scaled targets, over the slope of the map.
        slopes = len(y) * np.log(y.std()) + (y.sum() if takes_logarithms else 0.0)
        likelihood = process.log_marginal_likelihood_ - slopes
        fits.append((likelihood, takes_logarithms, process))
    _, takes_logarithms, process = max(fits, key=lambda fit: fit[0])
    mean, std = process.predict(new, return_std=True)
    ends = mean, mean - NORMAL_QUANTILE * std, mean + NORMAL_QUANTILE * std
    return Forecast(*(np.exp(end) if takes_logarithms else end for end in ends))


def by_smoothing(series: Series) -> Forecast:
    """Forecast by the exponential smoothing of statsmodels with the smallest AICc."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    values = pd.Series(series.without_gaps)
    kinds = ("add", "mul")[: 1 + series.is_positive]
    best = None
    for error, (trend, is_damped), season in itertools.product(
        kinds, ((None, False), ("add", False), ("add", True)), (None, *kinds)
    ):
        if error == "add" and season == "mul":
            continue  # unstable, and left out by R's ets, too
        model = ETSModel(
            values, error=error, trend=trend, damped_trend=is_damped, seasonal=season,
            seasonal_periods=series.period if season else None,
        )  # fmt: skip
        fit = model.fit(disp=False)
        if np.isfinite(fit.aicc) and (best is None or fit.aicc < best.aicc):
            best = fit
    if best is None:
        raise ValueError(f"no exponential smoothing fits {series.name}")
    ahead = HELD_SEASONS * series.period
    prediction = best.get_prediction(
        start=len(values), end=len(values) + ahead - 1, rng=0,
    ).summary_frame(alpha=1 - LEVEL)  # fmt: skip
    chosen = series.new_steps - len(values)
    return Forecast(*(prediction[c].to_numpy()[chosen] for c in ("mean", "pi_lower", "pi_upper")))


def by_last_season(series: Series) -> Forecast:
    """Forecast by the value of a season ago."""
    values, ahead = series.without_gaps, series.new_steps - len(series.without_gaps)
    mean = values[len(values) - series.period + ahead % series.period]
    differences = values[series.period :] - values[: -series.period]
    std = np.sqrt(np.mean(differences**2) * (1 + ahead // series.period))
    return Forecast(mean, mean - NORMAL_QUANTILE * std, mean + NORMAL_QUANTILE * std)


METHODS: dict[str, Callable[[Series], Forecast]] = {
    "process": by_process,
    "ETS": by_smoothing,
    "naive": by_last_season,
}
