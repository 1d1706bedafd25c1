"""Steps of a search with all rows: fits with all rows as centers, landmarks, the average."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ... import _arrays as xp
from ..._parallel.machine import read_seconds
from ..cost import landmarks_within, of_fit, of_refit, of_round, of_sample, seconds_of_fit
from ..recipe import Recipe, Trial
from ..samples.sampled_fit import Stem, at_maps
from ..samples.screen import screen_recipe
from ..search_state import EXACT_LOSS, SearchState, handicap_loss
from .average import average_fits
from .default_fit import LINEAR_MULTIPLE, ROUND_GAIN, leaves_noise
from .full_fit import DIRECT_ROWS, FullFit, full_fit
from .metric_rounds import flatter, next_round
from .walk import Walk

SEES_MORE = 0.8
"""Ratio of the loss with all rows to the loss of a sample below which metrics are refitted."""

LANDMARK_COUNTS = (6000, 5000, 4000, 3000, 2500, 2000, 1500, 1000, 700)
"""Numbers of landmarks for all rows if the budget forbids all rows as centers."""

LANDMARKS_SHARE = 0.8
"""Fraction of the remaining budget for the fit with landmarks."""

FAR_OFF = 1.15
"""Ratio to the least loss above which a walk ends."""

WORTHWHILE_LOSS_RATIO = 1.15
"""Largest ratio of the sample loss to the least one for a fit of a further stem."""

REFIT_SECONDS_RATIO = 0.8
"""Estimated ratio of the seconds of the last fit to the seconds of the choice of its penalty."""

FACTOR_SECONDS_RATIO = 3.0
"""Estimated ratio of the seconds of a factor of all rows to the seconds of one of a split."""

MANY_ROWS = 5000
"""Rows above which the limit on fits with all rows is halved."""

STALE_FITS, STALE_GAIN = 5, 0.005
"""Fits that have to lower the least loss by a share of it, for a search to continue. In 13 searches
of the development half with 400 to 1,600 rows, 7.7 of 11.5 fits gave 1.001 of the test error."""

FIRST_SHARE = 0.6
"""Fraction of the remaining budget for the first fit with all rows as centers."""


def fits(search: SearchState) -> Iterator[Trial]:
    """Fit the best stems with all rows as centers, or one with landmarks if time is short."""
    walks, heads = _walks(search)
    # 1. A fit with all rows as centers costs its square: where one of them would not end in time,
    # many landmarks take its place.
    if not _has_time(search, walks[0].stem):
        yield from _landmarks_instead(search, search.best_stem())
        return
    if search.default_recipe is not None and _goes_on(search):
        # 2. The recipe of the defaults competes: the result of a search must not be worse than a
        # fit without one.
        yield search.fit_trial(_fit_default(search, search.default_recipe))
    while (walk := _next(search, walks, heads)) is not None:
        if _ends(search, walk):
            return
        # 3. The walk decides which lengthscale comes next, from the errors so far.
        step = walk.waiting.pop(0)
        fit = _fit(search, walk.stem, step.multiple, small=step.small, near=walk.shift)
        if len(search.fits) == 1 and _has_no_iteration(fit):
            search.fits.clear()
            yield from _landmarks_instead(search, walk.stem)
            return
        walk.add(step, fit, search.loss(fit))
        yield search.fit_trial(fit)
        # 4. Only the first fit of a walk learns a metric from all rows: later lengthscales of the
        # walk use it.
        if len(walk.losses) == 1 and _sees_more(search, fit):
            yield from _rounds(search, walk, fit)
        elif len(walk.losses) == 1 and search.flattens:
            yield from _flatter(search, walk, fit)


def _fit_default(search: SearchState, recipe: Recipe) -> FullFit:
    """Fit the recipe that the defaults of an estimator choose, as a competitor of the search."""
    return _fit(search, screen_recipe(search, recipe), recipe.multiple)


def fit_final_default(search: SearchState) -> Iterator[Trial]:
    """Fit the recipe of the defaults first, and keep the fit if no search can improve it.

    It cannot if the error is almost zero, or if the default is almost linear and leaves noise.
    """
    recipe = search.default_recipe
    if recipe is None or not _goes_on(search):
        return
    # A linear function that leaves noise is best for the squared error, not for every score.
    may_be_linear = recipe.multiple >= LINEAR_MULTIPLE and search.score is None
    if not (search.default_loss <= EXACT_LOSS or may_be_linear):
        return
    stem = screen_recipe(search, recipe)
    fit = _fit(search, stem, recipe.multiple)
    if search.loss(fit) <= EXACT_LOSS or (
        may_be_linear
        and search.clock.steps.run("errors of the default", lambda: leaves_noise(search, fit))
    ):
        search.stems.append(stem)
        yield search.fit_trial(fit)
    else:
        # The search continues as if this fit had not been made: the recipe competes later, in
        # `fits`.
        search.fits.clear()


def _has_time(search: SearchState, stem: Stem) -> bool:
    """Return whether the remaining time suffices for a fit with all rows as centers."""
    if math.isinf(search.clock.budget.seconds):
        return True
    seconds = search.clock.steps.run(
        "seconds of a fit", lambda: seconds_of_fit(search.material, stem, search.engine)
    )
    return FIRST_SHARE * search.clock.remaining_seconds > seconds


def _has_no_iteration(fit: FullFit) -> bool:
    """Return whether the budget ended during the setup of a fit, which then predicts the mean."""
    return fit.iterations == 0 and fit.residual > 0


def _landmarks_instead(search: SearchState, stem: Stem) -> Iterator[Trial]:
    """Fit a stem to all rows with the affordable number of landmarks, and report it."""
    search.leave_out("fits with all rows as centers")
    sample_landmarks, rows = search.effort.machine.landmarks, len(search.material.X)
    # Only more landmarks than a sample had are a gain.
    sizes = [m for m in LANDMARK_COUNTS if m > sample_landmarks and 2 * m < rows]
    seconds = LANDMARKS_SHARE * search.clock.remaining_seconds
    m = search.clock.steps.run(
        "number of landmarks",
        lambda: landmarks_within(seconds, search.material, stem, search.engine, sizes),
    )
    if m is None or not search.clock.allows(0.0, of_sample(search.material, m, rows)):
        return
    started = search.clock.steps.read_clock()
    machine = replace(search.effort.machine, landmarks=m, rows=rows)
    larger = search.clock.steps.run(
        f"landmarks {m} {stem.recipe}",
        lambda: at_maps(
            search.material, stem.recipe, stem.maps, stem.gradients,
            replace(search.effort, machine=machine), search.engine, search.clock.meter,
        ),
    )  # fmt: skip
    search.stems.append(larger)
    yield search.sample_trial("landmarks", larger, started)


def _sees_more(search: SearchState, fit: FullFit) -> bool:
    """Return whether all rows lower the loss so much that a metric of all rows pays.

    Metrics from all rows reduce the error of pumadyn32nm and loans_full_schema to a third, and of
    few other tables, by 1 to 2 %. With a limit of 0.5 loans_full_schema was just below it with
    10 s, and just above it with 30 s, with twice the error. Of 14 other tables, with 10 and 30 s,
    13 change by less than 1 % for the higher limit, and one by 1.8 %.
    """
    learns = search.space.machine is not None and search.material.X.shape[1] > 1
    return learns and fit.loss < SEES_MORE * fit.stem.loss


def _rounds(search: SearchState, walk: Walk, fit: FullFit) -> Iterator[Trial]:
    """Learn metrics, round after round, from fits with all rows as centers."""
    machine = search.space.machine
    # For the type checker: `_sees_more` has excluded this case.
    if machine is None:
        return

    def following(fit: FullFit) -> Stem | None:
        meter = search.clock.meter
        return search.clock.steps.run(
            f"round {fit.recipe}",
            lambda: next_round(search.material, fit, machine, engine=search.engine, meter=meter),
        )

    # `following` evaluates the kernel, too, before the fit that its metric is for.
    round_evaluations = of_round(search.material, machine.gradient_rows)
    yield from _metrics(search, walk, fit, following, round_evaluations)


def _flatter(search: SearchState, walk: Walk, fit: FullFit) -> Iterator[Trial]:
    """Try a metric with half the power, see `flatter`, if its loss is close to the smallest."""
    least_loss = min(search.loss(past_fit) for past_fit in search.fits)

    def following(fit: FullFit) -> Stem | None:
        return flatter(fit) if search.loss(fit) <= FAR_OFF * least_loss else None

    yield from _metrics(search, walk, fit, following)


def _metrics(
    search: SearchState,
    walk: Walk,
    fit: FullFit,
    following: Callable[[FullFit], Stem | None],
    metric_evaluations: float = 0.0,
) -> Iterator[Trial]:
    """Try one metric after another, of `metric_evaluations` each, while the error falls."""
    while _goes_on(search, metric_evaluations):
        stem = following(fit)
        if stem is None:
            return
        multiple, before = fit.recipe.multiple, search.loss(fit)
        fit = _fit(search, stem, multiple, near=fit.shift)
        yield search.fit_trial(fit)
        # `not <` also ends the rounds at a loss that is not a number.
        if not search.loss(fit) < ROUND_GAIN * before:
            return
        walk.restart(stem, multiple, search.loss(fit))


def _walks(search: SearchState) -> tuple[list[Walk], int]:
    """Return a walk of lengthscales for each promising stem, and the number of first walks."""
    least_loss = min(handicap_loss(s) for s in search.stems)
    heads = search.heads()
    # The best recipe without a metric is also fitted: samples learn metrics that all rows may not
    # confirm.
    plain = _plain_stem(search)
    if plain is not None and plain.recipe not in [stem.recipe for stem in heads]:
        heads.append(plain)
    # A further stem has another kernel or power: rounds of one metric are not fitted one by one.
    stems = list(heads)
    for s in sorted(search.stems, key=handicap_loss):
        similar = any(
            s.recipe.kernel == r.recipe.kernel and s.recipe.power == r.recipe.power for r in stems
        )
        if not similar and handicap_loss(s) <= WORTHWHILE_LOSS_RATIO * least_loss:
            stems.append(s)
    return [Walk(stem, search.space) for stem in stems], len(heads)


def _plain_stem(search: SearchState) -> Stem | None:
    """Return the best stem of the screen; None if the default recipe takes its place."""
    if search.default_recipe is not None or not search.screen:
        return None
    return min(search.screen, key=handicap_loss)


def _next(search: SearchState, walks: list[Walk], heads: int) -> Walk | None:
    """Return the walk to continue: first one of each distance, then the best walk, then others."""
    # 1. The first fit of each distance.
    for walk in walks[:heads]:
        if not walk.losses:
            return walk
    least_loss = min(walk.smallest_error for walk in walks)
    # 2. The waiting lengthscales of walks whose error is near the least.
    near = [w for w in walks if w.losses and w.smallest_error <= FAR_OFF * least_loss]
    if any(w.waiting for w in near):
        return min((w for w in near if w.waiting), key=lambda w: w.smallest_error)
    # 3. Stems of other kernels, once no such walk has anything left to try.
    return next((w for w in walks if not w.losses), None)


def _fit(
    search: SearchState,
    stem: Stem,
    multiple: float,
    *,
    small: bool = False,
    near: float | None = None,
) -> FullFit:
    # The first fit leaves time for a second lengthscale, and every fit leaves time for the last
    # fit, which needs about as long as the longest so far.
    seconds_left = search.clock.remaining_seconds * (1.0 if search.fits else FIRST_SHARE)
    seconds_left = max(0.0, seconds_left - _longest_refit(search))
    fit = search.clock.steps.run(
        f"fit {multiple:g} {stem.recipe}",
        lambda: full_fit(
            search.material,
            stem,
            multiple,
            clock=search.clock,
            engine=search.engine,
            # Inside the lambda: the deadline counts from the start of the computation.
            ends=read_seconds() + seconds_left,
            most=_evaluation_limit(search),
            small=small,
            near=near,
        ),
    )
    search.fits.append(fit)
    return fit


def _evaluation_limit(search: SearchState) -> float:
    """Return the limit of kernel evaluations, reduced by the last fit if the budget covers it."""
    refit = of_refit(search.material)
    enough = search.clock.allows(0.0, of_fit(search.material) + refit)
    return search.clock.budget.evaluations - (refit if enough else 0.0)


def _refit_seconds(search: SearchState, fit: FullFit) -> float:
    """Return the expected seconds of a last fit."""
    # A last fit to few rows factorises one matrix, where `fit` had one per split and penalty.
    is_direct = fit.residual == 0 and len(search.material.X) <= 2 * DIRECT_ROWS
    count = len(search.material.splits) * len(fit.losses) if is_direct else 1
    ratio = min(REFIT_SECONDS_RATIO, FACTOR_SECONDS_RATIO / count)
    return ratio * fit.seconds


def _longest_refit(search: SearchState) -> float:
    return max((_refit_seconds(search, fit) for fit in search.fits), default=0.0)


def _goes_on(search: SearchState, metric_evaluations: float = 0.0) -> bool:
    """Return whether the budget covers a metric, another fit and the last fit of the best.

    Time for the last fits of an average is not reserved: a further fit gains more. Of 14 tables of
    the development half, with 10 CPU seconds, `loans_full_schema` has the error 0.44 instead of
    0.61 or 0.87, and the others differ by less than 1 %.
    """
    evaluations = metric_evaluations + of_fit(search.material) + of_refit(search.material)
    # The first fit is worthwhile even if no evaluations remain for the last fits: without them
    # the result is its fit of the first split.
    if not search.fits:
        return search.clock.allows(0.0, of_fit(search.material))
    if _has_all_fits(search):
        return False
    seconds = max(fit.seconds for fit in search.fits)
    return search.clock.allows(seconds + _longest_refit(search), evaluations)


def _ends(search: SearchState, walk: Walk) -> bool:
    """Return whether the search ends before the next fit of a walk."""
    # Smaller penalties at the best lengthscale may gain where other lengthscales did not.
    if _is_stale(search) and not walk.waiting[0].small:
        return True
    if _goes_on(search):
        return False
    if not _has_all_fits(search):
        search.leave_out("lengthscales and kernels with all rows as centers")
    return True


def _is_stale(search: SearchState) -> bool:
    """Return whether the last fits with all rows as centers hardly lowered the least loss."""
    losses = [search.loss(fit) for fit in search.fits]
    if len(losses) <= STALE_FITS:
        return False
    least_loss = min(losses[:-STALE_FITS])
    # A user-defined score may be negative.
    return least_loss - min(losses) <= STALE_GAIN * abs(least_loss)


def _has_all_fits(search: SearchState) -> bool:
    """Return whether there are as many fits with all rows as centers as a search may have."""
    many = len(search.material.X) > MANY_ROWS
    return len(search.fits) >= (search.space.fits // 2 if many else search.space.fits)


def _affordable_members(search: SearchState, weights: Sequence[float]) -> list[int]:
    """Return the fits of largest weight whose last fits the budget covers, and the best fit."""
    best = min(range(len(weights)), key=lambda i: search.loss(search.fits[i]))
    # The best fit comes first, whatever its weight in the average: it is the result if no other
    # last fit is affordable.
    ordered = sorted(range(len(weights)), key=lambda i: (i != best, -weights[i]))
    members: list[int] = []
    seconds = 0.0
    for i in ordered:
        # Every member of the average needs its own last fit.
        seconds += _refit_seconds(search, search.fits[i])
        evaluations = (len(members) + 1) * of_refit(search.material)
        if members and not (weights[i] > 0 and search.clock.allows(seconds, evaluations)):
            break
        members.append(i)
    return sorted(members)


def average(search: SearchState) -> Iterator[Trial]:
    """Choose the weights of the fits by their held-out predictions."""
    if not search.fits:
        return
    started = search.clock.steps.read_clock()
    best = min(range(len(search.fits)), key=lambda i: search.loss(search.fits[i]))
    # These weights are the result if the returns below skip the average.
    search.weights = [float(i == best) for i in range(len(search.fits))]
    if not search.space.averages or len(search.fits) < 2:
        return
    loss = search.score or search.squared_error
    weights = average_fits([fit.values for fit in search.fits], loss)
    members = _affordable_members(search, weights)
    if len(members) < sum(w > 0 for w in weights):
        chosen = average_fits([search.fits[i].values for i in members], loss)
        weights = [0.0] * len(search.fits)
        for i, weight in zip(members, chosen, strict=True):
            weights[i] = weight
        members = [i for i in members if weights[i] > 0]
    if len(members) < 2:
        return
    search.weights = weights
    values = xp.stack([weights[i] * search.fits[i].values for i in members]).sum(axis=0)
    main = search.fits[max(members, key=lambda i: weights[i])]
    yield search.trial("average", main.recipe, main.penalty, loss(values), (), values, started)
