"""Preparation of a fit: held-out rows, scaled data, and values in place of "auto"."""

from __future__ import annotations

from dataclasses import replace

from ...data import decode_rows
from ...model import Probabilities
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

    Parameters
    ----------
    before : Fitted, optional
        An earlier fit, from which this fit may start.
    decodes : bool, default=True
        Whether rows of a file are decoded once and stored for later passes.

    Raises
    ------
    ValueError
        If the settings do not suit the data.
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
    kernel = resolve.kernel(resolved.kernel, resolved.lengthscale)
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
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
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
        resolved, data = scaling.apply(resolved.with_points_of(settings), unscaled)
    return scaling, resolved, data, choice.shares if earlier is None else earlier.probabilities
