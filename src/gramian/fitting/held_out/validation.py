"""Early stopping: validation on held-out rows during a fit, and the best state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._parameters.types import Callbacks
from ...callbacks import Checkpoint, KeepBest, Validate
from ...problems import Problem
from ...solvers import Result, Solver, State, Stop
from ...solvers.loop.loop import row_of
from ...solvers.loop.metrics import VALID_RMSE
from ..inputs.training_data import HeldOut
from ..settings.settings import FitSettings
from .values import HeldValues


@dataclass(frozen=True)
class Watch:
    """Callbacks and stopping rules of a fit that may stop early.

    Attributes
    ----------
    look : Validate or None
        The last `Validate` of the callbacks; None if the fit does not stop early.
    """

    callbacks: Callbacks
    stop: Sequence[Stop] = ()
    look: Validate | None = None
    keep: KeepBest | None = None

    @classmethod
    def of(cls, settings: FitSettings) -> Watch:
        """Return the callbacks of the settings, and the callbacks and rules of early stopping.

        Call it after the checkpoints are read: a checkpoint may have a best state.
        """
        callbacks_given = list(settings.callbacks)
        if not settings.early_stopping:
            return cls(callbacks_given)
        looks = [callback for callback in callbacks_given if isinstance(callback, Validate)]
        checkpoints = [callback for callback in callbacks_given if isinstance(callback, Checkpoint)]
        # Several `Validate` may measure; the last one decides.
        keep = KeepBest(settings.patience, looks[-1].every, checkpoints)
        other_callbacks = [
            callback for callback in callbacks_given if not isinstance(callback, Validate)
        ]
        # Validation comes first: the other callbacks, and the checkpoints, see its metrics.
        return cls([*looks, keep, *other_callbacks], [keep.rule], looks[-1], keep)

    def best_state(self, problem: Problem, result: Result) -> State | None:
        """Return the state with the smallest held-out error; None if the fit does not stop early.

        The error of the last state is also measured, unless the user has interrupted the fit.
        """
        if self.keep is None or self.look is None:
            return None
        state = result.state
        # The solver may stop between two validations.
        if VALID_RMSE not in state.metrics and result.reason != "interrupted":
            replace(self.look, every=1)(problem, state)
            self.keep(problem, state)
            self.keep.finish()
            # The row was written before the validation added its metrics.
            result.history[-1] = row_of(state)
        return self.keep.best

    def predict_held_out(
        self, problem: Problem, result: Result, best: State | None
    ) -> HeldValues | None:
        """Return predictions of the held-out rows by the given state, if it is the best one.

        Cost: one prediction; none after an interruption.
        """
        if self.look is None or best is None or result.reason == "interrupted":
            return None
        weights = self.look.weights
        return HeldValues(
            *self.look.predict_state(problem, best),
            None if weights is None else xp.to_host(weights),
        )


def with_validation(
    settings: FitSettings, held: HeldOut | None, solver: Solver[Any, Any], n: int
) -> FitSettings:
    """Return settings with a `Validate` on the held-out rows of a fit to n rows, if any.

    The `Validate` measures the error after each iteration, or once a pass if a pass has many.
    """
    if held is None:
        return settings
    # A validation reads all held-out rows: after each small
    # iteration it would cost most of the time.
    data, every_iterations = held.data, max(1, round(solver.iterations_per_pass(n)))
    look = Validate(data.rows, data.targets, every_iterations, data.coded, weights=data.weights)
    return settings.with_values(callbacks=[look, *settings.callbacks])
