"""Outcome of a fit: the model, the choices and the history."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Int
from .._messages.errors import Text, TextError
from ..metric import LearnedMetric
from ..model import KernelModel
from ..operators import Engine
from ..solvers import Solver
from ..solvers.loop.loop import Row
from ..solvers.loop.state import (
    BATCH_ERROR,
    PREDICTION_ERROR,
    RESIDUAL_KEY,
    VALID_ERROR,
    VALID_RMSE,
    StopReason,
)
from .inputs.scaling import PathRow
from .settings.settings import FitSettings


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """Outcome of a fit: the model, the choices, and why the solver stopped.

    - `settings`: settings as the user gave them, without callbacks.
    - `penalty`: the given or the chosen penalty.
    - `path`: a row for each penalty that was tried; None if the penalty was given.
    - `path_ended_at_best`: whether the smallest penalty of the path was the best one, so that a
      smaller one could be better.
    - `index`: indices of the landmarks among the rows; None if landmarks are not rows.
    - `iteration`: iterations of the solver, including iterations before a resumption.
    - `reason`: reason why the solver stopped; see `Result`.
    - `history`: a row per state.
    - `solver_settings`: settings that the solver has chosen, such as batch and step.
    - `metrics`: row of the history for the kept coefficients.
    - `best_iteration`: iteration of the kept coefficients with early stopping; None without it,
      when the last ones are kept.
    - `held_out`: increasing indices of the held-out rows among the rows of positive weight.
    - `learned`: the metric, if it was learned.
    """

    model: KernelModel
    settings: FitSettings
    solver: Solver[Any, Any]
    engine: Engine
    penalty: float
    iteration: int
    reason: StopReason
    history: list[Row]
    metrics: Row
    path: list[PathRow] | None = None
    path_ended_at_best: bool = False
    index: Int[Array, " m"] | None = None
    solver_settings: dict[str, Any] = field(default_factory=dict)
    best_iteration: int | None = None
    held_out: Int[Array, " r"] | None = None
    learned: LearnedMetric | None = None

    def closed_form(self) -> tuple[float, ...]:
        """Return the penalty of the linear system; raise ValueError if the model solves none."""
        if self.settings.is_nonlinear:
            raise ValueError("only squared errors have a closed form; leave loss out")
        if self.settings.penalties is not None:
            raise ValueError("a closed form needs one penalty for all targets; give one number")
        if self.best_iteration is not None:
            raise TextError(
                "early stopping ends before the exact solution; give {early_stopping=False}"
            )
        if self.reason != "converged":
            raise TextError(
                "the solver stopped with the reason {!r}, not 'converged'; use "
                "{solver='direct'}, or raise {max_iter}",
                self.reason,
            )
        return (self.penalty,)

    @property
    def landmark_rows(self) -> Int[Array, " m"] | None:
        """Indices of the landmarks among all rows of positive weight, including held-out rows."""
        if self.index is None or self.held_out is None:
            return self.index
        # The i-th held-out row follows held_out[i] - i rows that were kept. A landmark moves up by
        # the number of held-out rows that follow no more kept rows than it does.
        before = self.held_out - xp.arange(len(self.held_out))
        return self.index + xp.find_insertions(before, self.index, right=True)

    @property
    def validation_error(self) -> float | None:
        """Error of the kept coefficients on held-out rows; None without early stopping.

        The error is the share of wrong classes, or the root mean squared error of numeric targets.
        """
        if self.best_iteration is None:
            return None
        return float(self.metrics.get(VALID_ERROR, self.metrics[VALID_RMSE]))

    def stall_warning(self) -> Text | None:
        """Return a warning if the solver made no progress before it reached its tolerance."""
        if self.reason != "no_progress":
            return None
        # Solvers on batches measure no residual, only the error of each batch.
        if BATCH_ERROR in self.history[-1]:
            return Text(
                f"stopped at iteration {self.iteration}: the error on the batches is no lower than "
                "at the start. If the fit started from zero, the model predicts no better than "
                "zero: check the lengthscale, or use {solver='falkon'}. If it started from earlier "
                "coefficients, more iterations may not improve them"
            )
        return Text(
            f"stopped at iteration {self.iteration} with {self._shortfall}: rounding leaves no "
            "direction of descent. Raise the penalty or the lengthscale, scale the features, or "
            "use float64 features, {solver='direct'}, or {solver=Falkon(refine='auto')}"
        )

    def iteration_warning(self) -> Text | None:
        """Return a warning if iterations or time ended before the solver converged.

        With early stopping, the warning is returned only if the held-out error still fell at the
        end.
        """
        if self.reason == "time_limit":
            limit, iteration = self.settings.time_limit, self.iteration
            text = f"stopped by {{time_limit={limit:g}}} at iteration {iteration}"
            if RESIDUAL_KEY in self.history[-1]:
                text += f" with {self._shortfall}"
            if self.best_iteration is not None:
                text += f"; iteration {self.best_iteration} is kept, the best on held-out rows"
            return Text(f"{text}. To converge: raise {{time_limit}}, {{penalty}} or {{tol}}")
        # Early stopping ends by itself: only an error that still
        # falls at the end deserves a warning.
        if self.best_iteration is not None:
            return self._still_falling()
        # These solvers regularise by the number of iterations, which
        # is therefore a choice of the user.
        chosen = not self.solver.solves_exactly or self.settings.penalty == 0
        if self.reason != "max_iterations" or chosen:
            return None
        return Text(
            f"stopped after {{max_iter={self.settings.max_iter}}} iterations with "
            f"{self._shortfall}. To converge: raise {{max_iter}}, {{penalty}} or {{tol}}"
        )

    def _still_falling(self) -> Text | None:
        if self.reason != "max_iterations" or self.best_iteration != self.iteration:
            return None
        return Text(
            f"stopped after {{max_iter={self.settings.max_iter}}} iterations while the error on "
            "held-out rows still fell: raise {max_iter}"
        )

    def end_of_path(self) -> Text | None:
        """Return a warning if a penalty below the smallest one tried could be better."""
        if not self.path_ended_at_best:
            return None
        return Text(
            f"the smallest penalty tried, {self.penalty:.2g} with {len(self.model.coef)} "
            "landmarks, has the smallest held-out error: a smaller penalty could be better. Give "
            f"the selector a smaller penalty, such as {self.penalty / 100:.0e}, or use "
            "{landmarks=BlessR(m=1000)}, whose smallest penalty is not fixed in advance"
        )

    @property
    def _shortfall(self) -> str:
        """Return a template of `Text` that describes how far the solver is from its tolerance."""
        # The doubled braces leave a mark of a template, which the
        # command line writes as its option.
        last, tol = self.history[-1], f"{{tol={self.settings.tol:.1e}}}"
        error = last.get(PREDICTION_ERROR)
        if error is None:
            return f"a relative residual of {last.get(RESIDUAL_KEY, math.nan):.1e} ({tol})"
        return (
            f"predictions that are off by an estimated {100 * error:.2g} % of the standard "
            f"deviation of the target, above {tol}"
        )
