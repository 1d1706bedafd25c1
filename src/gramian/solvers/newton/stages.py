"""Problems of decreasing penalty and sharper kinks that lead to the last one, and the state."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._sparse import dense
from ...problems import LossProblem
from ..loop.state import State, StopReason

FIRST_PENALTY = 0.1
"""First penalty, relative to the mean curvature times the mean of the kernel's diagonal."""

WIDEST_KINK = 1.0
"""Width of a kink while the penalty falls, in units of the target: it contains most rows."""

WIDTH_DECREASE = 3.0
"""Factor by which the width decreases from stage to stage."""

SHARPEST_KINK = 1e-5
"""Width in the last stage, in units of the target, for a loss with an exact kink."""

DIAGONAL_ROWS = 1000
"""Centers that estimate the mean of the diagonal."""


@dataclass(frozen=True)
class Stages:
    """Penalties mu of the stages, and widths of kinks, both decreasing.

    - `penalties`: penalties; the last one is the penalty of the problem.
    - `widths`: widths over which kinks are rounded; 0 for a loss without a kink.
    """

    problem: LossProblem
    penalties: tuple[float, ...]
    widths: tuple[float, ...]

    @classmethod
    def of(cls, problem: LossProblem, decrease: float) -> Stages:
        """Return the stages; each penalty is `decrease` times the previous penalty."""
        points = problem.K.cols.take(xp.arange(min(DIAGONAL_ROWS, problem.K.shape[1])))
        points = dense(points)
        scale = float(xp.to_float64(problem.K.kernel.diag(points)).mean())
        mu, last = FIRST_PENALTY * _curvature(problem) * scale, problem.penalty
        penalties = []
        while mu > last:
            penalties.append(mu)
            mu *= decrease
        penalties.append(last)
        if problem.loss.kink is None:
            return cls(problem, tuple(penalties), (0.0,) * len(penalties))
        final_width = problem.loss.kink or SHARPEST_KINK
        widths = [max(WIDEST_KINK, final_width)] * len(penalties)
        while widths[-1] > final_width:
            widths.append(max(widths[-1] / WIDTH_DECREASE, final_width))
        # The penalty reaches its last value first, and the kinks become sharper at that value.
        penalties += [last] * (len(widths) - len(penalties))
        return cls(problem, tuple(penalties), tuple(widths))

    def __len__(self) -> int:
        return len(self.penalties)

    def double(self) -> Stages:
        """Return the stages with kernel entries computed in float64."""
        return replace(self, problem=self.problem.double())

    def at(self, stage: int) -> LossProblem:
        """Return the problem of a stage, with its penalty and its width of kinks."""
        width, mu = self.widths[stage], self.penalties[stage]
        loss = self.problem.loss if width == 0 else self.problem.loss.smooth_kink(width)
        return replace(self.problem, penalty=mu, loss=loss)


def _curvature(problem: LossProblem) -> float:
    """Return the mean curvature of the loss at the constant; 1 if it is zero."""
    y = xp.to_float64(problem.targets)
    loss = problem.loss if problem.loss.kink is None else problem.loss.smooth_kink(WIDEST_KINK)
    # A curvature of zero would give no first penalty.
    return float(loss.curvatures(xp.expand(problem.offset, (len(y), -1)), y).mean()) or 1.0


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
