"""Held-out rows of a fit, validation on them, and early stopping at the best state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.errors import TextError
from ..._parameters.types import Callbacks
from ...callbacks import Checkpoint, KeepBest, Validate
from ...data import RowSource, complement, subset
from ...model import Shares
from ...problems import Problem
from ...search import Split
from ...solvers import Result, Solver, State, Stop
from ...solvers.loop.loop import row_of
from ...solvers.loop.state import VALID_RMSE
from ..inputs.training_data import HeldOut, TrainingData, in_memory
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from . import splits
from .folds import labels, other_rows, share


@dataclass(frozen=True, eq=False)
class HeldValues:
    """Predictions and true values of held-out rows; for classes, decision values and codes.

    - `values`, `truth`: for a merged row, the truth is the mean of the codes of its rows.
    """

    values: Float[Array, "v t"]
    truth: Float[Array, "v t"]
    weights: Float[Array, " v"] | None = None

    def shares(self) -> Shares:
        """Return the map from decision values to probabilities, fitted to the held-out rows."""
        return Shares.fit(self.values, self.truth, self.weights)


@dataclass(frozen=True)
class Watch:
    """Callbacks and stopping rules of a fit that may stop early.

    - `look`: the last `Validate` of the callbacks; None if the fit does not stop early.
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


HELD_BYTES = 64 << 20
"""Up to this size, held-out rows of a sequential source are kept in memory."""

HELD_SHARE = 8
"""Part of a memory limit that held-out rows may take: one in eight bytes."""


@dataclass(frozen=True)
class Parts:
    """Training rows and held-out rows of a fit.

    - `train`: training data without held-out rows and rows of weight zero.
    - `held_out`: None if the fit does not stop early, or if a `Validate` has its own rows.
    - `folds`: folds of `train`, if a splitter or pairs define them.
    """

    train: TrainingData
    held_out: HeldOut | None = None
    folds: list[Split] | None = None


def divide(settings: FitSettings, data: TrainingData, rng: Generators) -> Parts:
    """Split the data into training rows, held-out rows if the fit stops early, and folds.

    Raise ValueError if there are too few rows, or ``cv`` cannot split them.
    """
    # First, because the numbers of held-out rows count rows of positive weight only.
    data = data.without_zero_weights()
    held_out = data.held_out
    # A table has held its rows out already, before its encoding.
    if held_out is None and holds_out(settings):
        index = draw_held_out(
            settings, len(data.rows), labels(data.targets) if data.coded else None, rng
        )
        rows = hold_sequential(subset(data.rows, index), settings.limit)
        held_out = HeldOut(index, data.part(index, rows))
        # A complement keeps the numbers of the omitted rows, and not of the millions of others.
        data = data.part(other_rows(len(data.rows), index), complement(data.rows, index))
    train = data if data.held_out is None else replace(data, held_out=None)
    named = settings.searches_penalty and settings.names_folds
    return Parts(train, held_out, splits.folds_of(settings.cv, train) if named else None)


def holds_out(settings: FitSettings) -> bool:
    """Return whether a fit must draw held-out rows, because it stops early without a `Validate`."""
    has_validate = any(isinstance(callback, Validate) for callback in settings.callbacks)
    return bool(settings.early_stopping) and not has_validate


def draw_held_out(
    settings: FitSettings, n: int, classes: Int[Array, " n"] | None, rng: Generators
) -> Int[Array, " r"]:
    """Return the increasing indices of the rows to hold out, the same share of each class."""
    if rng.held_out is None:
        raise ValueError("early stopping needs a random generator for the held-out rows")
    index = xp.arange(0)
    if n > 1:
        index = share(n, settings.validation_fraction, rng.held_out, classes)
    if len(index) == 0:
        raise TextError(
            f"{{early_stopping=True}} holds out rows, but {n} rows are too few; give validation "
            "rows with {callbacks=[Validate(X, y)]}, or {early_stopping=False}"
        )
    return index


def hold_sequential(rows: RowSource, limit: int | None) -> RowSource:
    """Return held-out rows, copied to memory if their source is sequential and they are few.

    Each validation reads all held-out rows.
    """
    if rows.random_access:
        return rows
    most_bytes = HELD_BYTES if limit is None else min(HELD_BYTES, limit // HELD_SHARE)
    return in_memory(rows, most_bytes)[0]
