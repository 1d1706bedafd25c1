"""Dates, times and durations: elapsed time, and the calendar as far as held-out rows confirm it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...._messages.errors import Text
from ...rows import arrow_compute as pc
from ..gains import HeldOutGain
from ..kinds import LEAVE_OUT, Kind, column_kind
from ..moments import Summary
from ..saved import Saved
from ..settings import Settings
from ..values import microseconds
from .base import ColumnEncoding, Observer, Part, Seen, refuse
from .left_out import CONSTANT_COLUMN, EMPTY_COLUMN, Gaps, LeftOut

DATE_KINDS: tuple[Kind, ...] = ("date", "zoned date", "time", "duration")
SECOND_MICROSECONDS = 10**6


@dataclass(frozen=True, eq=False)
class Date(ColumnEncoding):
    """Encoding of dates: elapsed time and year, standardised, cycles, and columns of levels.

    Cycles are sine and cosine of a part of the calendar. Levels are columns of 0 and 1 for each
    weekday, month or hour, so that Saturday may differ from Sunday as much as from Monday.

    - `since`: kind of the column.
    - `zone`: time zone of the calendar; empty without one.
    - `mean`, `scale`: mean and scale of the elapsed seconds, and of the year if it varied in
      training.
    - `cycles`: the names among month, day, weekday and hour that varied in training and that help
      to predict held-out rows.
    - `gaps`: treatment of gaps: the median, in seconds, fills them.
    - `levels`: the names among weekday, month and hour whose levels have columns.
    """

    code: ClassVar[str] = "date"
    name: str
    since: Kind
    zone: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    cycles: tuple[str, ...]
    gaps: Gaps
    levels: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """The kind of dates."""
        return self.since

    @property
    def features(self) -> tuple[str, ...]:
        year = (f"{self.name} (year)",) if len(self.mean) > 1 else ()
        waves = [f"{self.name} ({c} {wave})" for c in self.cycles for wave in ("sin", "cos")]
        columns = [f"{self.name} ({c}={k})" for c in self.levels for k in LEVEL_NAMES[c]]
        return (f"{self.name} (elapsed)", *year, *waves, *columns, *self.gaps.mark(self.name))

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        values, gaps = _microseconds(column, self.name, part)
        self.gaps.note(gaps, self.name, part)
        # Filled before the calendar is computed, so that all features of a gap are of one moment.
        values = np.where(gaps, round(self.gaps.fill * SECOND_MICROSECONDS), values)
        # The calendar costs more than elapsed time, and is skipped where it gives no feature.
        is_calendar = self.cycles or self.levels or len(self.mean) > 1
        field_values = fields(local(values, self.zone)) if is_calendar else {}
        # The order of `mean` and `scale`: elapsed seconds, then the year.
        measured = [values / SECOND_MICROSECONDS]
        if len(self.mean) > 1:
            measured.append(field_values["year"])
        scaled = [
            (x - mean) / scale
            for x, mean, scale in zip(measured, self.mean, self.scale, strict=True)
        ]
        waves = [wave for name in self.cycles for wave in cycle(name, field_values[name])]
        columns = [level_columns(name, field_values[name]) for name in self.levels]
        return self.gaps.append_mark(np.column_stack([*scaled, *waves, *columns]), gaps)

    def describe(self) -> str:
        year = ["year"] if len(self.mean) > 1 else []
        *earlier_cycles, last = self.cycles or [""]
        cycles = [f"{', '.join(earlier_cycles)} and {last}" if earlier_cycles else last]
        as_cycles = " as cycles" if len(self.cycles) > 1 else " as a cycle" if self.cycles else ""
        zone = f" in {self.zone}" if self.zone else ""
        features_text = ", ".join(["elapsed", *year, *(cycles if self.cycles else [])])
        levels = f", levels of {' and '.join(self.levels)}" if self.levels else ""
        is_moment = self.since not in ("time", "duration")
        fill = self.gaps.fill
        median = str(np.datetime64(round(fill), "s")) if is_moment else f"{fill:.6g} s"
        gap = self.gaps.describe(median)
        return f"{_WORD_OF_KIND[self.since]}{zone}: {features_text}{as_cycles}{levels}{gap}"

    def to_dict(self) -> dict[str, Any]:
        numbers = {"mean": list(self.mean), "scale": list(self.scale), **self.gaps.to_dict()}
        about = {"name": self.name, "since": self.since, "zone": self.zone}
        levels = {"levels": list(self.levels)} if self.levels else {}
        return {**about, "cycles": list(self.cycles), **levels, **numbers}

    @classmethod
    def from_saved(cls, saved: Saved) -> Date:
        since = saved.one_of("since", DATE_KINDS)
        name, zone, cycles = saved.text("name"), saved.text("zone"), saved.texts("cycles")
        mean, scale = saved.numbers("mean"), saved.numbers("scale", positive=True)
        allowed = {"duration": (), "time": ("hour",)}.get(since, tuple(CYCLE_LENGTHS))
        if len(mean) != len(scale) or len(mean) not in ((1, 2) if "date" in since else (1,)):
            raise ValueError(f"mean and scale of the date '{name}' do not match")
        if unknown := set(cycles) - set(allowed):
            raise ValueError(f"the date '{name}' has the unknown cycles {', '.join(unknown)}")
        levels = saved.texts("levels") if saved.has("levels") else ()
        if unknown := set(levels) - (set(allowed) & set(LEVEL_NAMES)):
            raise ValueError(f"the date '{name}' has the unknown levels {', '.join(unknown)}")
        if bool(zone) != (since == "zoned date"):
            raise ValueError(f"the time zone of the date '{name}' is damaged")
        _check_zone(zone)
        gaps = Gaps.from_saved(saved)
        # The fill is later converted to microseconds in int64.
        if abs(gaps.fill) * SECOND_MICROSECONDS >= 2.0**63:
            raise ValueError(f"the median of the date '{name}' is damaged")
        return cls(name, since, zone, mean, scale, cycles, gaps, levels)


_WORD_OF_KIND: dict[Kind, str] = {
    "date": "date", "zoned date": "date", "time": "time of day", "duration": "duration"
}  # fmt: skip


def _check_zone(zone: str) -> None:
    try:
        # Now and not in the first prediction: a file may be moved to a machine without this zone.
        local(np.zeros(1, np.int64), zone)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(
            f"the time zone {zone!r:.40} is unknown on this machine ({error})"
        ) from error


def _microseconds(column: pa.Array, name: str, part: Part) -> tuple[np.ndarray, np.ndarray]:
    try:
        return microseconds(column)
    except OverflowError:
        # The row farthest from 1970 is named in the message: it is the one that overflowed.
        seconds = pc.abs(column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64()))
        is_latest = np.asarray(seconds.fill_null(0)) == pc.max(seconds).as_py()
        refuse(part, name, is_latest, "is more than 290,000 years from 1970", Text(LEAVE_OUT))
        raise


def _is_date(type_: pa.DataType) -> bool:
    is_timestamp = pa.types.is_timestamp(type_)
    return bool(pa.types.is_date(type_) or (is_timestamp and type_.tz is None))


@column_kind("date", "dates without a time zone", _is_date)
@column_kind("zoned date", "times with a time zone", lambda t: getattr(t, "tz", None) is not None)
@column_kind("time", "times of day", pa.types.is_time)
@column_kind("duration", "durations", pa.types.is_duration)
class DateObserver(Observer):
    """Observer of dates: mean and scale of elapsed time, and the calendar fields that matter."""

    def __init__(self, field: pa.Field, kind: Kind, where: str, settings: Settings) -> None:
        super().__init__(field, kind, where, settings)
        self._zone = getattr(field.type, "tz", None) or ""
        # Elapsed time, and for dates the year.
        self.measured = 2 if "date" in kind else 1
        self._low: dict[str, int] = {}
        self._high: dict[str, int] = {}
        offered = {"time": ("hour",), "duration": ()}.get(kind, tuple(CYCLE_LENGTHS))
        self._gains = {name: HeldOutGain() for name in offered}

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        values, gaps = _microseconds(column, self.name, seen.part)
        elapsed = np.where(gaps, np.nan, values / SECOND_MICROSECONDS)
        field_values = fields(local(values, self._zone)) if self.kind != "duration" else {}
        for name, field in field_values.items():
            present = field[~gaps]
            if len(present):
                # A part of the calendar that does not vary in training gives no feature.
                self._low[name] = min(self._low.get(name, present[0]), present.min())
                self._high[name] = max(self._high.get(name, present[0]), present.max())
        for name, gain in self._gains.items():
            turns = [cycle(name, field_values[name][~gaps], count) for count in range(1, 4)]
            gain.add(np.column_stack(sum(turns, ())), seen.targets[~gaps], seen.folds[~gaps])
        if self.measured == 1:
            return (elapsed,)
        return elapsed, np.where(gaps, np.nan, field_values["year"])

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        elapsed = summaries[0]
        if elapsed.value_count == 0:
            return LeftOut(self.name, EMPTY_COLUMN)
        if elapsed.constant and not elapsed.gaps:
            return LeftOut(self.name, CONSTANT_COLUMN)
        varied = {name for name in self._low if self._low[name] < self._high[name]}
        kept_summaries = summaries[: 2 if "date" in self.kind and "year" in varied else 1]
        self.offered = tuple(name for name in self._gains if name in varied)
        self.offered_levels = tuple(
            name
            for name in self.offered
            if name in LEVEL_NAMES and self._gains[name].is_clear(CYCLE_FEATURES)
        )
        return Date(
            self.name, self.kind, self._zone,
            tuple(summary.mean for summary in kept_summaries),
            tuple(summary.scale for summary in kept_summaries),
            tuple(name for name in self.offered if self._gains[name].is_clear()),
            Gaps.of(elapsed),
        )  # fmt: skip


ELAPSED_STRETCH = 4.0
"""Factor of the elapsed time that is offered twice: a lengthscale of its own, see `offers`."""


def offers(
    date: Date, varied: Sequence[str], levels: Sequence[str]
) -> Iterator[tuple[Callable[[Date], Date], bool]]:
    """Yield cycles that alone predict nothing, levels, and shorter lengthscales of elapsed time.

    A kernel with all columns may confirm such a change; any gain confirms it where least squares
    have found a gain in all rows, as the second value says.

    - `varied`: parts of the calendar that varied in training.
    - `levels`: parts whose levels predict held-out rows better than a cycle.
    """
    for name in varied:
        if name not in date.cycles:
            yield partial(_add_cycle, name), False
    for name in levels:
        yield partial(_add_levels, name), True
    for _ in range(2):
        yield lambda d: replace(d, scale=(d.scale[0] / ELAPSED_STRETCH, *d.scale[1:])), False


def _add_cycle(name: str, date: Date) -> Date:
    return replace(date, cycles=tuple(c for c in CYCLE_LENGTHS if c in (*date.cycles, name)))


def _add_levels(name: str, date: Date) -> Date:
    return replace(date, levels=(*date.levels, name))


DAY_MICROSECONDS = 86_400 * 10**6

CYCLE_LENGTHS = {"month": 12, "day": 31, "weekday": 7, "hour": DAY_MICROSECONDS}
"""Cycles by the length of one turn; the hour includes minutes and seconds."""

CYCLE_FEATURES = 2
"""Features of a cycle: sine and cosine of one turn."""

LEVEL_NAMES: dict[str, tuple[str, ...]] = {
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "month": tuple(map(str, range(1, 13))),
    "hour": tuple(map(str, range(24))),
}
"""Levels of parts of the calendar that may have columns."""


def local(values: np.ndarray, zone: str) -> np.ndarray:
    """Return microseconds since 1970 in local time; an empty zone changes nothing."""
    if not zone:
        return values
    moments = pa.array(values, pa.timestamp("us", tz=zone))
    # By the clocks of the zone, because hours and days of people follow these, with summer time.
    return np.asarray(pc.local_timestamp(moments).cast(pa.int64()))


def fields(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the year, and the positions in year, month, week and day, which start at 0.

    - `values`, ndarray of int64 of shape (b,): microseconds since 1970.
    """
    days = values // DAY_MICROSECONDS
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    return {
        "year": dates.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12,
        "day": (dates - months).astype(np.int64),
        # 1970 began on a Thursday; Monday is 0.
        "weekday": (days + 3) % 7,
        "hour": values - days * DAY_MICROSECONDS,
    }


def cycle(name: str, field: np.ndarray, turns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of a field of the calendar, with some turns in its length."""
    angle = field * (2 * np.pi * turns / CYCLE_LENGTHS[name])
    return np.sin(angle), np.cos(angle)


def level_columns(name: str, field: np.ndarray) -> np.ndarray:
    """Return a column of 0 and 1 for each level of a field of the calendar."""
    count = len(LEVEL_NAMES[name])
    codes = field * count // DAY_MICROSECONDS if name == "hour" else field
    return np.asarray(codes[:, None] == np.arange(count))
