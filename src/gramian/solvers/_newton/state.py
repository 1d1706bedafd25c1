"""NewtonState: coefficients, the stage, and whether steps still lead on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..state import State
from ..stopping import StopReason

PATIENCE = 4
"""Steps of the last stage without a lower objective after which there is no progress."""


@dataclass(kw_only=True)
class NewtonState(State):
    """All that Newton's method needs to go on.

    Attributes
    ----------
    stage : int
        Of the sequence of problems; the last one is that which was asked.
    tried : int
        Newton steps of this stage.
    wide : bool
        Whether kernel entries are float64, whatever the rows are.
    hard : bool
        Whether a step took many iterations: landmarks stand badly for the curved rows.
    least : float
        The least objective of the last stage.
    idle : int
        Steps since then: rounding leaves no direction to go on in once there are some.
    """

    stage: int
    tried: int
    wide: bool
    hard: bool = False
    least: float = math.inf
    idle: int = 0

    @property
    def verdict(self) -> StopReason | None:
        return "no_progress" if self.idle >= PATIENCE else None
