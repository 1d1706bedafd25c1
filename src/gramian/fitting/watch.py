"""Watch: the looks of a fit at held-out rows, and the state that it keeps in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..callbacks import Checkpoint, KeepBest, Validate
from ..problems import Problem
from ..solvers import Result, Solver, State, Stop
from ..solvers.base import row_of
from ..solvers.metrics import VALID_RMSE
from .divide import HeldOut
from .parameters import Callbacks
from .settings import FitSettings


@dataclass(frozen=True)
class Watch:
    """The callbacks and rules of a fit that may stop early.

    Attributes
    ----------
    callbacks : sequence of callables
    stop : sequence of stopping rules
    look : Validate or None
        The last of those among the callbacks; None if the fit does not stop early.
    keep : KeepBest or None
    """

    callbacks: Callbacks
    stop: Sequence[Stop] = ()
    look: Validate | None = None
    keep: KeepBest | None = None

    @classmethod
    def of(
        cls,
        settings: FitSettings,
        held: HeldOut | None,
        solver: Solver[Any, Any],
        n: int,
        scale: float = 1.0,
    ) -> Watch:
        """Return what the settings ask for in a fit to n rows.

        Rows that the fit holds out are looked at after each iteration; of a solver with many
        iterations in a pass over all pairs, after each pass. To be called once the checkpoints
        have been read, of which one may have a best state. `scale` is the unit of the targets.
        """
        given = list(settings.callbacks)
        if not settings.early_stopping:
            return cls(given)
        looks = [callback for callback in given if isinstance(callback, Validate)]
        if held is not None:
            looks = [_look_at(held, max(1, round(solver.iterations_per_pass(n))), scale)]
        last = looks[-1]
        checkpoints = [callback for callback in given if isinstance(callback, Checkpoint)]
        keep = KeepBest(settings.patience, last.every, checkpoints)
        others: list[Callable[..., Any]] = [each for each in given if each not in looks]
        # what the looks find is there when the others are called, and in the checkpoints
        return cls([*looks, keep, *others], [keep.rule], last, keep)

    def kept(self, problem: Problem, result: Result) -> State | None:
        """Return the best state; None if the fit does not stop early.

        The last state is looked at, whether or not it was its turn.
        """
        if self.keep is None or self.look is None:
            return None
        state = result.state
        if VALID_RMSE not in state.metrics and bool(state.coef.isfinite().all()):
            replace(self.look, every=1)(problem, state)
            self.keep(problem, state)
            self.keep.finish()
            result.history[-1] = row_of(state)
        return self.keep.best


def _look_at(held: HeldOut, every: int, scale: float) -> Validate:
    data = held.data
    return Validate(data.rows, data.targets, every, data.coded, scale, data.weights)
