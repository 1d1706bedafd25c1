"""Limit of a search, and the seconds and kernel evaluations that remain."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from .._messages.checks import is_real
from .._messages.errors import ParameterError
from .._parallel.machine import read_seconds
from ..operators import CostMeter
from .steps import Steps

SECONDS_PER_UNIT = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """A limit of a search: seconds, CPU seconds, kernel evaluations, or none.

    Attributes
    ----------
    seconds : float
        Seconds of the wall clock, or of the CPU, from the first row read to the last fit.
    evaluations : float
        Kernel evaluations, independent of the hardware: the same search on every machine.
    is_cpu : bool, default=False
        Whether seconds are CPU time, summed over the threads of the process.
    """

    seconds: int | float = math.inf
    evaluations: int | float = math.inf
    is_cpu: bool = False

    @classmethod
    def of(cls, given: object) -> Budget:
        """Convert a setting to a budget: ``"30 s"``, ``"30 cpu s"``, a number, or ``"auto"``.

        Raises
        ------
        ValueError
            If the setting has another form.
        """
        if given is None or given == "auto":
            return cls()
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            # `float` alone would also accept signs, "inf", "nan" and, like \d without `re.ASCII`,
            # the digits of other scripts.
            number = r"\d+\.?\d*(?:e\d+)?|\.\d+(?:e\d+)?"
            match = re.fullmatch(rf"\s*({number})\s*(cpu\s+)?([a-z]+)\s*", given.lower(), re.ASCII)
            if match and match[3] in SECONDS_PER_UNIT and float(match[1]) > 0:
                seconds = float(match[1]) * SECONDS_PER_UNIT[match[3]]
                return cls(seconds, is_cpu=match[2] is not None)
        if is_real(given) and float(given) >= 1:
            return cls(evaluations=float(given))
        expected = "a time such as '30 s' or '30 cpu s', a number of kernel evaluations, or 'auto'"
        raise ParameterError("budget", given, expected)


@dataclass
class Clock:
    """Clock of a search, which measures the consumption of its budget.

    Attributes
    ----------
    budget : Budget
    started : float
        Start, by `read_seconds`.
    meter : CostMeter
        Meter of all kernel operators of the search.
    steps : Steps
        Steps of the search, from the journal or computed, and their time.
    """

    budget: Budget = field(default_factory=Budget)
    started: float = field(default_factory=read_seconds)
    meter: CostMeter = field(default_factory=CostMeter)
    steps: Steps = field(default_factory=Steps)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        # A resumed search reads the clock of its journal, so that it decides as before.
        return self.steps.read_clock() - self.started

    @property
    def remaining_seconds(self) -> float:
        """Remaining seconds, at least zero."""
        return max(0.0, self.budget.seconds - self.seconds)

    @property
    def evaluations_left(self) -> float:
        """Remaining kernel evaluations, at least zero."""
        return max(0.0, float(self.budget.evaluations) - self.meter.evaluations)

    def allows(self, seconds: int | float, evaluations: int | float = 0.0) -> bool:
        """Return whether the remaining budget covers a step of this cost."""
        spent = self.meter.evaluations + evaluations
        # The chain reads the clock once, and `0 <` refuses steps of no known cost after the end.
        return 0 < self.remaining_seconds >= seconds and spent <= self.budget.evaluations
