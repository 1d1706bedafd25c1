"""Fields of the calendar, and their cycles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..arrow_compute import pc

DAY = 86_400 * 10**6

CYCLES = {"month": 12, "day": 31, "weekday": 7, "hour": DAY}
"""Cycles by the length of one turn; that of the hour counts minutes and seconds, too."""


def local(values: np.ndarray, zone: str) -> np.ndarray:
    """Return microseconds since 1970 by the clocks of a time zone; none if it is empty."""
    if not zone:
        return values
    moments = pa.array(values, pa.timestamp("us", tz=zone))
    clocks: np.ndarray = pc.local_timestamp(moments).cast(pa.int64()).to_numpy()
    return clocks


def fields(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return year, and place in the year, month, week and day, all from 0 but the year.

    Parameters
    ----------
    values : ndarray of int64 of shape (b,)
        Microseconds since 1970.
    """
    days = values // DAY
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    return {
        "year": dates.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12,
        "day": (dates - months).astype(np.int64),
        "weekday": (days + 3) % 7,  # 1970 began on a Thursday; Monday is 0
        "hour": values - days * DAY,
    }


def cycle(name: str, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of a field of the calendar."""
    angle = field * (2 * np.pi / CYCLES[name])
    return np.sin(angle), np.cos(angle)
