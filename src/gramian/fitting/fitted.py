"""Fitted: a model, and how the solver came to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Int
from torch import Tensor

from ..model import KernelModel
from ..operators import Engine
from ..solvers import Result, Solver
from ..solvers.metrics import BATCH_ERROR, RESIDUAL
from ..solvers.stopping import Row, StopReason
from .penalty_path import PathRow
from .settings import FitSettings


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """The outcome of a fit: what predicts, what was chosen, and why the solver stopped.

    Attributes
    ----------
    model : KernelModel
    settings : FitSettings
        As they were given, without callbacks.
    solver : Solver
    engine : Engine
    penalty : float
        The one given, or the one chosen.
    path : list of dict, or None
        A row for each penalty that was tried; None if the penalty was given.
    path_ended_at_best : bool
        Whether the smallest penalty of the path was the best one, so that a smaller one could be
        better.
    index : Tensor of shape (m,), or None
        Row numbers of the landmarks, if they are rows.
    iteration : int
        Iterations of the solver, those before a resumption included.
    reason : StopReason
        Why it stopped; see `Result`.
    history : list of dict
        A row per state.
    solver_settings : dict
        What the solver has chosen by itself, like batch and step.
    """

    model: KernelModel
    settings: FitSettings
    solver: Solver[Any, Any]
    engine: Engine
    penalty: float
    path: list[PathRow] | None
    path_ended_at_best: bool
    index: Int[Tensor, " m"] | None
    iteration: int
    reason: StopReason
    history: list[Row]
    solver_settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        result: Result,
        model: KernelModel,
        settings: FitSettings,
        solver: Solver[Any, Any],
        engine: Engine,
        *,
        penalty: float,
        index: Int[Tensor, " m"] | None,
        path: list[PathRow] | None = None,
        path_ended_at_best: bool = False,
    ) -> Fitted:
        """Return the outcome of a run of the solver."""
        return cls(
            model=model,
            settings=replace(settings, callbacks=()),
            solver=solver,
            engine=engine,
            penalty=penalty,
            path=path,
            path_ended_at_best=path_ended_at_best,
            index=index,
            iteration=result.state.iteration,
            reason=result.reason,
            history=result.history,
            solver_settings=dict(getattr(result.state, "settings", {})),
        )

    def stalled(self) -> str | None:
        """Return a warning if the solver could not go on although it was not at its end."""
        if self.reason != "no_progress":
            return None
        if BATCH_ERROR in self.history[-1]:
            return (
                f"stopped at iteration {self.iteration}: the error of the batches is no lower than "
                "at the start. Where the fit began with zero, the model predicts no better than "
                "zero: check the lengthscale, or use solver='falkon'; where it began with "
                "coefficients, they may be as good as they get"
            )
        return (
            f"stopped at iteration {self.iteration} with a relative residual of "
            f"{self._residual:.1e}, above tol={self.settings.tol:.1e}: rounding leaves no "
            "direction to go on in. Raise the penalty or the lengthscale, or scale the features"
        )

    def unfinished(self) -> str | None:
        """Return a warning if the iterations ended before a solver that converges had done so."""
        chosen = not self.solver.solves_exactly or self.settings.penalty == 0  # the epochs are
        if self.reason != "max_iterations" or chosen:
            return None
        return (
            f"stopped after max_iter={self.settings.max_iter} iterations with a relative residual "
            f"of {self._residual:.1e}, above tol={self.settings.tol:.1e}. This often costs little "
            "accuracy: check it on held-out rows. To converge: raise max_iter, penalty or tol"
        )

    def end_of_path(self) -> str | None:
        """Return a warning if a penalty below the smallest one tried could be better."""
        if not self.path_ended_at_best:
            return None
        return (
            f"the smallest penalty tried, {self.penalty:.2g} with {len(self.model.coef)} "
            "landmarks, has the smallest held-out error, so that a smaller one could be better; "
            f"give the selector a smaller one, such as BlessR(penalty={self.penalty / 100:.0e}), "
            "or a number of landmarks, as BlessR(m=1000), whose smallest penalty is not set "
            "beforehand"
        )

    @property
    def _residual(self) -> float:
        return float(self.history[-1].get(RESIDUAL, math.nan))


def check_not_diverged(result: Result) -> None:
    """Raise FloatingPointError if the solver diverged."""
    if result.reason == "diverged":
        raise FloatingPointError(
            f"the solver diverged at iteration {result.state.iteration}; raise the penalty, "
            "use float64 data, or rescale targets whose squares overflow"
        )
