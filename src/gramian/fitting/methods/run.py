"""Run of the solver of a fit, which keeps the current model if an error ends the fit."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._parameters.types import Callbacks
from ...callbacks import Checkpoint
from ...problems import Problem
from ...solvers import (
    Interrupted,
    Result,
    Solver,
    State,
    Stop,
    deadline,
    max_iterations,
    solve,
    tolerance,
)
from ..result import Fitted
from ..settings.settings import FitSettings

logger = logging.getLogger("gramian")


class InterruptedFit(KeyboardInterrupt):
    """KeyboardInterrupt that ends a fit, and holds the model of its last or best state.

    Attributes
    ----------
    fitted : Fitted
        Model of the best state with early stopping, else of the last state. The reason is
        "interrupted".
    """

    def __init__(self, fitted: Fitted) -> None:
        super().__init__(f"interrupted at iteration {fitted.iteration}")
        self.fitted = fitted

    @classmethod
    def of(cls, error: Interrupted, fitted: Callable[[Result], Fitted]) -> KeyboardInterrupt:
        """Return an interruption with the current model, or without one if it is useless.

        The coefficients of a useful model are finite, and not all zero as at the start.
        """
        model_so_far = fitted(error.result)
        return cls(model_so_far) if _is_useful(model_so_far.model.coef) else KeyboardInterrupt()


@contextlib.contextmanager
def keeping_model(fitted: Callable[[Result], Fitted]) -> Iterator[None]:
    """Context that attaches the current model to an error or interruption that ends a fit.

    See `InterruptedFit` and `interrupted_model`.
    """
    try:
        yield
    except Interrupted as error:
        raise InterruptedFit.of(error, fitted) from error
    except Exception as error:
        # `solve` attaches its last result to any error. A model in its place can be predicted with.
        result = vars(error).pop("result", None)
        if isinstance(result, Result) and _is_useful(result.state.coef):
            # The first error is the one to see, even if no model can be made of the result.
            with contextlib.suppress(Exception):
                vars(error)["fitted"] = fitted(result)
        raise


def run(
    problem: Problem,
    solver: Solver[Any, Any],
    fitted: Callable[[Result], Fitted],
    *,
    stop: Sequence[Stop],
    callbacks: Callbacks,
    state: State | None,
    rng: RandomStream,
) -> Result:
    """Run the solver of a fit, and attach the current model to an error that ends the fit.

    Raises
    ------
    FloatingPointError
        If the solver diverged.
    InterruptedFit
        If it is interrupted, as by Ctrl-C, once the solver has a state. For other errors see
        `interrupted_model`.
    """
    with keeping_model(fitted):
        result = solve(problem, solver, stop=stop, callbacks=callbacks, state=state, rng=rng)
    check_not_diverged(result)
    return result


def saved_state(callbacks: Callbacks, problem: Problem, solver: Solver[Any, Any]) -> State | None:
    """Return the state in the first checkpoint that has one, or None."""
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            state = callback.restore(problem, solver)
            if state is not None:
                logger.info("resuming from %s at iteration %d", callback.path, state.iteration)
                return state
    return None


def interrupted_model(error: Exception) -> Fitted | None:
    """Return the model of a fit that an error ended; None if the fit had no useful state."""
    return vars(error).get("fitted")


def _is_useful(coef: Array) -> bool:
    """Return whether coefficients are finite, and not all zero as at the start."""
    return bool(xp.isfinite(coef).all() and coef.any())


def check_not_diverged(result: Result) -> None:
    """Raise FloatingPointError if the solver diverged."""
    if result.reason == "diverged":
        raise FloatingPointError(
            f"the solver diverged at iteration {result.state.iteration}; raise the penalty, "
            "use float64 data, or rescale targets whose squares overflow"
        )


def stopping_rules(
    settings: FitSettings, solver: Solver[Any, Any], n: int, ends: float
) -> list[Stop]:
    """Return the stopping rules of a fit to n rows; `ends` is a time of `time.monotonic`."""
    # ``max_iter`` counts passes for solvers whose passes have many iterations.
    iterations = math.ceil(settings.max_iter * solver.iterations_per_pass(n))
    # The first rule wins: a fit that converges in its last iteration has converged.
    return [tolerance(float(settings.tol)), max_iterations(iterations), deadline(ends)]
