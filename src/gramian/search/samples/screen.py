"""Steps of a search on samples: the screen of kernels and inputs, and learned metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..._arrays import Array
from ...data import LinearMap
from ...kernels import Kernel
from ..cost import of_sample
from ..recipe import Recipe, Trial
from ..search_state import SearchState
from .sampled_fit import Stem, at_maps, learn_metrics, screen_kernels

SCREEN_SHARE = 0.2
"""Fraction of a budget of kernel evaluations for the screen."""

METRIC_SHARE = 0.3
"""Fraction of the budget after the screen for metrics."""

METRIC_AT_MOST = 0.6
"""Upper limit of that fraction while rounds still gain more than LARGE_GAIN."""

LARGE_GAIN = 0.1
"""Relative gain of a round that allows rounds beyond METRIC_SHARE."""

METRIC_FITS, FOLDED_METRIC_FITS = 10, 6
"""Typical number of fits that learn the metrics, of one split and of each of several folds, where
one power continues after its first round."""

LEARNER_KERNEL = "matern32"

INPUTS_WORTH = 1.25
"""Ratio to the least loss above which inputs are tried with one kernel only."""


def screen(search: SearchState) -> Iterator[Trial]:
    """Try one kernel with all inputs, and the other kernels with the best inputs."""
    inputs = _inputs(search)
    cells = len(search.space.kernels) * len(inputs)
    most_evaluations = SCREEN_SHARE * search.clock.budget.evaluations / cells
    search.effort = search.effort.screening(most_evaluations, partial(_cost, search))
    cost = _cost(search, search.effort.screen_landmarks, search.effort.screen_rows)
    # The sort is stable: the kernel of the gradients comes first, the others stay in order.
    order = sorted(search.space.kernels, key=lambda kernel: kernel != LEARNER_KERNEL)
    for kernel in order:
        for name in inputs:
            # One recipe is always tried, so that a search has a result.
            if search.stems and not search.clock.allows(0.2 * search.clock.seconds, cost):
                search.leave_out("kernels and inputs")
                return
            started = search.clock.steps.read_clock()
            recipe = Recipe(kernel, name, search.space.first(kernel))
            stem = screen_recipe(search, recipe)
            search.stems.append(stem)
            yield search.sample_trial("screen", stem, started)
        if kernel == order[0]:
            least_loss = min(s.loss for s in search.stems)
            # Where none predicts anything so far, one kernel after the other decides.
            worth = 1.0 if search.is_noise() else INPUTS_WORTH
            inputs = tuple(s.recipe.inputs for s in search.stems if s.loss <= worth * least_loss)


def screen_recipe(search: SearchState, recipe: Recipe) -> Stem:
    """Fit a recipe to a sample: a step of the screen."""
    material, effort, meter = search.material, search.effort, search.clock.meter
    if recipe.inputs == "quantile":
        # The map draws rows at random. Made outside the step, it draws the same rows if the journal
        # replays the step, and later steps have the map.
        _ = material.quantiles
    return search.clock.steps.run(
        f"screen {recipe}", lambda: screen_kernels(material, recipe, effort, search.engine, meter)
    )


def _at_maps(
    search: SearchState,
    recipe: Recipe,
    maps: Sequence[LinearMap | None],
    gradients: Array | None,
) -> Stem:
    """Fit a recipe with known metrics: a step of the search."""
    effort, meter = search.effort, search.clock.meter
    return search.clock.steps.run(
        f"kernel {recipe}",
        lambda: at_maps(search.material, recipe, maps, gradients, effort, search.engine, meter),
    )


def _cost(search: SearchState, landmarks: int, rows: int) -> float:
    return of_sample(search.material, landmarks, rows)


def _inputs(search: SearchState) -> tuple[str, ...]:
    """Return the inputs to try; a common scale only if it differs from standardisation."""
    names = search.space.inputs
    if search.material.common is None:
        return tuple(name for name in names if name != "common") or ("standard",)
    return names


def metrics(search: SearchState) -> Iterator[Trial]:
    """Learn a metric for each distance, and try the other kernels with it."""
    # 1. Stems of the screen have fewer landmarks: their losses are not compared with the losses of
    # metrics.
    screen, search.screen, search.stems = search.stems, search.stems, []
    # 2. Two limits of time: rounds that still gain much may use the later one.
    seconds = METRIC_SHARE * search.clock.remaining_seconds
    ends = search.clock.seconds + seconds
    latest = search.clock.seconds + METRIC_AT_MOST * search.clock.remaining_seconds
    # 3. Sizes of samples, from the seconds of a fit of the screen: no measurement of its own.
    screen_seconds = search.clock.seconds / (len(screen) * len(search.material.splits))
    n = len(search.material.splits[0].train)
    least_landmarks = min(n, search.effort.screen_landmarks, search.effort.machine.landmarks)
    count = len(search.material.splits)
    metric_fits = METRIC_FITS if count == 1 else FOLDED_METRIC_FITS * count
    search.effort = search.effort.within(seconds, screen_seconds, metric_fits, n)
    # A metric from fewer landmarks than the screen had would be a step back.
    if search.effort.machine.landmarks < least_landmarks:
        search.leave_out("learned metrics")
        search.stems = screen
        return
    # 4. The same by kernel evaluations, which a budget may limit instead of seconds.
    groups, evaluations_left = search.in_order(screen), METRIC_SHARE * search.clock.evaluations_left
    fits = METRIC_FITS * len(groups)
    search.effort = search.effort.learning(evaluations_left / fits, partial(_cost, search))
    cost = _cost(search, search.effort.machine.landmarks, search.effort.machine.rows)
    most_evaluations = search.clock.meter.evaluations + evaluations_left

    def goes_on(gain: float) -> bool:
        until = latest if gain > LARGE_GAIN else ends
        return (
            search.clock.seconds < until
            and search.clock.meter.evaluations + cost <= most_evaluations
        )

    for group in groups:
        if not search.clock.allows(0.0, METRIC_FITS * cost):
            search.leave_out("learned metrics")
            # Metrics of earlier groups remain; before the first one, the screen is the result.
            search.stems = search.stems or screen
            return
        # 5. A single feature has no directions to weigh: the stem is only fitted to the larger
        # sample.
        if search.space.machine is None or search.material.X.shape[1] == 1:
            yield _fit_again(search, search.best_of(screen, group))
        else:
            yield from _learned_metrics(search, _learner(search, screen, group), goes_on)
        yield from _other_kernels(search, group)


def _learned_metrics(
    search: SearchState, stem: Stem, goes_on: Callable[[float], bool]
) -> Iterator[Trial]:
    """Learn metrics with the gradients of a stem, and yield a trial of each."""
    started = search.clock.steps.read_clock()
    learn = partial(learn_metrics, search.material, stem, search.effort, search.engine)
    stems = search.clock.steps.run(
        f"metric {stem.recipe}", partial(learn, search.clock.meter, goes_on)
    )
    search.stems += stems
    for learned_stem in stems:
        yield search.sample_trial("metric", learned_stem, started)


def _learner(search: SearchState, stems: list[Stem], group: tuple[str | Kernel, ...]) -> Stem:
    """Return the stem that supplies gradients: Matern 3/2 on the best inputs.

    Measured on pol: the error of the Laplacian is 3.66 with the metric of Matern 3/2, 4.70 with its
    own, and 3.92 with the metric of the Gaussian.
    """
    best = search.best_of(stems, group)
    # Only stems with the inputs of the best one, because a metric belongs to its inputs.
    same = [s for s in stems if s.recipe.inputs == best.recipe.inputs]
    return next(
        (s for s in same if s.recipe.kernel == LEARNER_KERNEL and LEARNER_KERNEL in group), best
    )


def _fit_again(search: SearchState, stem: Stem) -> Trial:
    """Fit a stem without a metric to the larger sample that metrics use."""
    started = search.clock.steps.read_clock()
    maps = (None,) * len(search.material.splits)
    larger = _at_maps(search, stem.recipe, maps, None)
    search.stems.append(larger)
    return search.sample_trial("kernel", larger, started)


def _other_kernels(search: SearchState, group: tuple[str | Kernel, ...]) -> Iterator[Trial]:
    """Try the other kernels of a distance with the learned metric."""
    stem = search.best_of(search.stems, group)
    cost = _cost(search, search.effort.machine.landmarks, search.effort.machine.rows)
    for kernel in group:
        if kernel == stem.recipe.kernel:
            continue
        if not search.clock.allows(0.0, cost):
            search.leave_out("kernels with the learned metric")
            continue
        started = search.clock.steps.read_clock()
        # The metric is a property of the target more than of the kernel: kernels of one distance
        # share it, and only the lengthscale starts again.
        recipe = replace(stem.recipe, kernel=kernel, multiple=search.space.first(kernel))
        candidate = _at_maps(search, recipe, stem.maps, stem.gradients)
        search.stems.append(candidate)
        yield search.sample_trial("kernel", candidate, started)
