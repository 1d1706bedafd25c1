"""Kernel of a time series: trend, seasons that change, and a rough part."""

from __future__ import annotations

from collections.abc import Mapping

from .._messages.errors import ParameterError
from .base import Kernel
from .dot_product.polynomial import Linear
from .radial.gaussian import Gaussian
from .radial.matern import Matern32
from .radial.periodic import Periodic

SPAN_DEVIATIONS = 3.5
"""Length of a series in standard deviations of its times, which are evenly spaced."""

ROUGH_SHARE = 0.04
"""Starting lengthscale of the rough part, relative to the length of the series."""


def seasonal(time: int | str, seasons: Mapping[str, float] | Mapping[int, float]) -> Kernel:
    r"""Return a kernel of trend, seasons and rough part, for `GaussianProcess`.

    The sum of a straight line, a smooth trend (`Gaussian`), for each season a `Periodic` kernel
    times a smooth one, so that its shape changes slowly, and a rough part (`Matern32`).
    The likelihood tunes lengthscales and the variance of each term; periods stay as given.

    Parameters
    ----------
    time : int or str
        Column of the time, in any unit; estimators standardise it, and the starts suit that.
    seasons : mapping of columns to float
        Period of each season, in the unit of its column: ``{"month": 12}`` for months from 1 to 12,
        or for months counted on. Not the column of the time, which a season would leave
        unstandardised.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        If the column of the time has a season.

    References
    ----------
    .. [1] Rasmussen & Williams, *Gaussian processes for machine learning*, 2006, section 5.4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianProcess
    >>> from gramian.kernels import seasonal
    >>> month = np.arange(96.0)
    >>> sales = 0.1 * month + 3 * np.sin(2 * np.pi * month / 12)
    >>> X = np.column_stack([month, month])  # the time, and the place in the season
    >>> process = GaussianProcess(seasonal(0, {1: 12}), random_state=0).fit(X[:72], sales[:72])
    >>> print(f"R2 of two years ahead {process.score(X[72:], sales[72:]):.1f}")
    R2 of two years ahead 1.0
    """
    if time in seasons:
        expected = "other columns than the time"
        remedy = "give the kernel a copy of the column, such as the number of the month"
        raise ParameterError("seasons", dict(seasons), expected, remedy)
    smooth = Gaussian(SPAN_DEVIATIONS).on([time])
    kernel = Linear().on([time]) + smooth
    for column, period in seasons.items():
        kernel = kernel + smooth * Periodic(1.0, float(period)).on([column])
    return kernel + Matern32(ROUGH_SHARE * SPAN_DEVIATIONS).on([time])
