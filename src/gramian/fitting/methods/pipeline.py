"""Steps of every fit: prepare data and settings, then run the solver, and keep its model."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ..._parameters.types import Callbacks
from ...callbacks import Checkpoint
from ...data import decode_rows
from ...model import Probabilities
from ...problems import Problem
from ...solvers import (
    Interrupted,
    Result,
    Solver,
    State,
    Stop,
    deadline,
    max_iterations,
    tolerance,
)
from ..choice.choose import choose
from ..held_out.validation import divide, with_validation
from ..inputs.scaling import Scaling
from ..inputs.training_data import TrainingData
from ..plans import solver_choice
from ..plans.memory import FitSize
from ..result import Fitted
from ..settings import landmarks as landmark_settings
from ..settings import resolve
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from .base import Method, Prepared
from .diagnosis import long_fit, warn


def prepare(
    method: Method,
    settings: FitSettings,
    data: TrainingData,
    rng: Generators,
    before: Fitted | None = None,
    *,
    decodes: bool = True,
) -> Prepared:
    """Hold rows out, scale the data, and replace each "auto" of the settings by a value.

    - `before`: an earlier fit, from which this fit may start.
    - `decodes`: whether rows of a file are decoded once and stored for later passes.

    Raise ValueError if the settings do not suit the data.
    """
    ends = settings.deadline()
    # 1. Hold rows out first: no scaling, metric or choice may see them.
    parts = divide(settings, data, rng)
    train, n = parts.train, len(parts.train.rows)
    # 2. Take a provisional solver and size, for the expected time and for
    # choices with as many landmarks as the fit.
    resolved = landmark_settings.with_all_rows(settings, n)
    solver, size = solver_choice.solver_and_size(resolved, train.rows, train.targets.shape[1])
    if method.estimates_time:
        warn(long_fit(resolved, train.rows, solver, size))
    resolved = with_validation(resolved, parts.held_out, solver, n)
    before = method.before(settings, train, before)
    resolved, train = method.for_choices(resolved, train)
    if decodes and not size.full:
        train = replace(train, rows=decode_rows(train.rows))
    # 3. Scale, then choose on scaled rows.
    scaling, resolved, train, probabilities = _scale_and_choose(
        resolved, train, size, rng, ends, before
    )
    # 4. Return to the loss, and take the solver for the chosen penalty.
    resolved, train = method.after_choices(resolved, train)
    size = replace(size, d=train.rows.width)
    kernel = resolve.kernel(resolved.kernel, resolved.first_lengthscale)
    kernel = resolve.kernel_for(kernel, train.rows, rng.kernel)
    solver = solver_choice.after_choices(resolved, settings, size)
    engine = resolve.engine_for(resolved, train.rows, kernel)
    solver = solver_choice.with_stored_entries(solver, size, resolved.limit, engine, kernel)
    return Prepared(
        settings.with_values(tol=resolved.tol), resolved, train, scaling, kernel, solver, engine,
        size, ends, parts.held_out, parts.folds, probabilities, before,
    )  # fmt: skip


def _scale_and_choose(
    settings: FitSettings,
    unscaled: TrainingData,
    size: FitSize,
    rng: Generators,
    ends: float,
    before: Fitted | None,
) -> tuple[Scaling, FitSettings, TrainingData, Probabilities | None]:
    """Scale the data and choose settings; return also the map to probabilities."""
    earlier = None if before is None else before.model
    kernel = resolve.kernel(settings.kernel, settings.first_lengthscale)
    scaling = Scaling.of(settings, unscaled, earlier, kernel=kernel, rng=rng.maps)
    resolved, data = scaling.apply(settings, unscaled)
    choice = choose(
        resolved,
        data,
        landmarks=None if size.full else size.m,
        rng=rng.choice,
        ends=ends,
        mapped=scaling.features.metric,
        before=before,
    )
    resolved = choice.settings
    # The choice has compared a sample with quantiles; now all rows
    # are mapped, from unscaled ones on.
    if resolved.uses_quantiles and not settings.uses_quantiles:
        scaling = scaling.with_quantiles(unscaled, rng.maps)
        unmapped = {k: getattr(settings, k) for k in ("landmarks", "callbacks", "memory_limit")}
        resolved, data = scaling.apply(resolved.with_values(**unmapped), unscaled)
    return scaling, resolved, data, choice.shares if earlier is None else earlier.probabilities


logger = logging.getLogger("gramian")


class InterruptedFit(KeyboardInterrupt):
    """KeyboardInterrupt that ends a fit, and holds the model of its last or best state.

    - `fitted`: model of the best state with early stopping, else of the last state. The reason is
      "interrupted".
    """

    def __init__(self, fitted: Fitted) -> None:
        super().__init__(f"interrupted at iteration {fitted.iteration}")
        self.fitted = fitted


@contextlib.contextmanager
def keeping_model(fitted: Callable[[Result], Fitted]) -> Iterator[None]:
    """Context that attaches the current model to an error or interruption that ends a fit.

    See `InterruptedFit` and `interrupted_model`.
    """
    try:
        yield
    except Interrupted as error:
        model_so_far = fitted(error.result)
        if not _is_useful(model_so_far.model.coef):
            raise KeyboardInterrupt from error
        raise InterruptedFit(model_so_far) from error
    except Exception as error:
        # `solve` attaches its last result to any error. A model in its place can be predicted with.
        result = vars(error).pop("result", None)
        if isinstance(result, Result) and _is_useful(result.state.coef):
            # The first error is the one to see, even if no model can be made of the result.
            with contextlib.suppress(Exception):
                vars(error)["fitted"] = fitted(result)
        raise


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
