"""State of Newton's method: coefficients, stage and progress of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..loop.state import State
from ..loop.stopping import StopReason

NO_PROGRESS_STEPS = 4
"""Steps of the last stage without a lower objective after which there is no progress."""


@dataclass(kw_only=True)
class NewtonState(State):
    """State of Newton's method, enough to resume exactly.

    Attributes
    ----------
    stage : int
        Number of the stage; the last one is the problem itself.
    tried : int
        Newton steps of this stage.
    wide : bool
        Whether kernel entries are float64, whatever the dtype of the rows.
    hard : bool
        Whether a step took many iterations: landmarks represent the curved rows badly.
    least : float
        Least objective of the last stage.
    idle : int
        Number of steps since `least` was reached. After several, rounding leaves no descent
        direction.
    """

    stage: int
    tried: int
    wide: bool
    hard: bool = False
    least: float = math.inf
    idle: int = 0

    @property
    def verdict(self) -> StopReason | None:
        return "no_progress" if self.idle >= NO_PROGRESS_STEPS else None
