"""Search for a model, and the fit of the best result to all rows."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..._arrays import Array, Float, Int, RandomStream
from ..._parallel.machine import cpu_time
from ...data import Standardizer
from ...model import AverageModel, BlendModel, KernelModel, Model
from ...search import CellSearch, Clock, Effort, Material, Member, Search, Trial, TrialCallback
from ...search.gains import late_gain
from ..held_out.splits import folds_of
from ..inputs.training_data import TrainingData
from ..settings.checks import is_pairs, is_splitter
from .blend import SearchTrees, blend_held_out, budget_without_trees, fit_trees
from .data import (
    ScaledData,
    check_data,
    held_out,
    material_of,
    score_of,
    search_journal,
    with_tuned_kernels,
)
from .larger_fit import cell_search, members_of_cells, with_landmarks
from .plan import rows_by_cells
from .settings import LossOf, SearchSettings, choose_default_recipe

logger = logging.getLogger("gramian")

STILL_FALLING = 0.05
"""Share by which the error falls in the second half of a search that a larger budget improves."""


@dataclass(frozen=True, eq=False)
class Searched:
    """Outcome of a search: a model, and the trials that led to it.

    - `trials`: trials in order, including the last fits.
    - `members`: members of the model.
    - `evaluations`: kernel evaluations.
    - `interrupted`: whether Ctrl-C ended the search.
    - `unit`: unit of the square root of a loss, in units of the target; 1 for classes and several
      targets.
    - `truth`: targets of the held-out rows, scaled like the values of trials.
    - `targets`: scaling of truth and values; ``values * scale + mean`` is in units of the target,
      or codes.
    - `left_out`: planned steps that the budget did not allow.
    """

    model: Model
    trials: list[Trial]
    members: list[Member]
    evaluations: int
    seconds: float
    interrupted: bool
    unit: float
    truth: Float[Array, "v t"]
    targets: Standardizer
    left_out: tuple[str, ...]


def search_fit(data: TrainingData, settings: SearchSettings, rng: RandomStream) -> Searched:
    """Search for a model and fit it to all rows.

    Raise ValueError if there are fewer than five rows, or rows are sparse and no kernel supports
    them.

    An interruption (Ctrl-C) ends the search, not the fit: the best model so far is returned. With a
    checkpoint, the same call resumes the search after the last finished step.
    """
    with cpu_time(settings.budget.is_cpu):
        return _search_and_fit(data, settings, rng)


def _search_and_fit(data: TrainingData, settings: SearchSettings, rng: RandomStream) -> Searched:
    """Search on a sample, and fit the result to all rows, within the budget."""
    clock = Clock(budget_without_trees(settings))
    data = data.without_zero_weights()
    check_data(data)
    # 1. Scale the data, and take a sample of them to search on.
    settings = settings.of(data.rows, data.column_names)
    unscaled_features = settings.unscaled_features(data.rows.width)
    scaled = ScaledData.of(data, settings.standardize, unscaled_features)
    material, index = material_of(scaled, settings, rng)
    settings = with_tuned_kernels(settings, material)
    # 2. Search: on the sample, then by cells of more rows.
    if settings.checkpoint is not None:
        journal = search_journal(settings.checkpoint, settings, data, material, rng)
        clock.steps.keep(journal, started=clock.started, rng=rng, meter=clock.meter)
    search = _search(settings, material, scaled, clock)
    if index is None and math.isinf(settings.budget.evaluations):
        default = clock.steps.run(
            "default recipe", lambda: choose_default_recipe(material, data, settings, rng)
        )
        if default is not None:
            search.default_recipe, search.default_loss = default
    by_cells = _cell_search(settings, search, scaled, index)
    steps = search.steps() if by_cells is None else _by_cells(search, by_cells)
    trials, interrupted = _run_steps(steps, settings.watchers, search)
    # No further step is written to the journal: a resumed search begins with the interrupted one.
    if interrupted:
        clock.steps.end()
    # 3. Fit the result to all rows.
    members, interrupted = _last_fits(search, by_cells, scaled, index, interrupted, settings)
    if not interrupted:
        _report_left_out(search, trials, members)
    # 4. Trees, in the time that is left.
    clock.budget = settings.budget
    trees = None if interrupted else fit_trees(settings, search, by_cells, scaled, index)
    # 5. Probabilities and the weight of trees come from predictions of held-out rows.
    model, blends = _final_model(search, by_cells, members, scaled, index, trees, settings.score)
    if not blends:
        _warn_of_constant(members)
    # 6. The last fits are trials, too.
    refits = [search.record("refit", member) for member in members]
    interrupted = not _were_shown(blends + refits, settings.watchers) or interrupted
    scale = scaled.of_targets.scale
    # Several targets have several units, so that their common loss stays as scaled.
    unit = float(scale[0]) if len(scale) == 1 else 1.0
    return Searched(
        model, trials + blends + refits, members, clock.meter.evaluations, clock.seconds,
        interrupted, unit, material.truth, scaled.of_targets, tuple(search.left_out),
    )  # fmt: skip


def _search(
    settings: SearchSettings, material: Material, scaled: ScaledData, clock: Clock
) -> Search:
    """Return the search on all rows, or on a sample if there are many."""
    machine = settings.space.machine
    return Search(
        material,
        settings.space,
        clock,
        settings.engine,
        Effort() if machine is None else Effort(machine=machine),
        score=score_of(settings, material, scaled.of_targets),
        # The CPU time of a process does not include its workers.
        apart=settings.memory_limit is None and not settings.budget.is_cpu,
    )


def _cell_search(
    settings: SearchSettings, search: Search, scaled: ScaledData, index: Int[Array, " s"] | None
) -> CellSearch | None:
    """Return the search by cells of all rows; None if the sample has all rows."""
    if index is None:
        return None
    data, rows, targets = scaled.data, scaled.rows, scaled.targets
    most_rows = rows_by_cells(rows, targets.shape[1], settings.memory_limit)
    # A number of folds, or None, defines no folds of all rows.
    names_folds = is_splitter(settings.cv) or is_pairs(settings.cv)
    folds = folds_of(settings.cv, data) if names_folds else []
    return cell_search(search, rows, targets, data.weights, index, most_rows, folds)


def _were_shown(trials: Sequence[Trial], watchers: Sequence[TrialCallback]) -> bool:
    """Call the watchers with each trial; return False if Ctrl-C interrupts a watcher."""
    try:
        for trial in trials:
            for watcher in watchers:
                watcher(trial)
    # Ctrl-C while the last trials are shown ends the display, not the fit.
    except KeyboardInterrupt:
        return False
    return True


def _run_steps(
    steps: Iterator[Trial], watchers: Sequence[TrialCallback], found: Search
) -> tuple[list[Trial], bool]:
    """Run a search until its end, or until a watcher ends it.

    Return its trials, and whether Ctrl-C interrupted the search.
    """
    trials: list[Trial] = []
    try:
        for trial in steps:
            trials.append(trial)
            # A list, not a generator: all watchers see the trial, even
            # if the first one ends the search.
            if any([watcher(trial) for watcher in watchers]):
                break
    except KeyboardInterrupt:
        # Before the first result, there is nothing to return.
        if not found.has_result:
            raise
        return trials, True
    return trials, False


def _by_cells(found: Search, by_cells: CellSearch) -> Iterator[Trial]:
    """Yield the trials on a sample, and the trials of cells of all rows.

    If cells are no better than the sample, all rows of the sample become centers.
    """
    yield from found.sampled_steps()
    if found.is_noise():
        return
    yield from by_cells.steps()
    if not members_of_cells(by_cells):
        yield from found.whole_steps()


def _last_fits(
    found: Search,
    by_cells: CellSearch | None,
    scaled: ScaledData,
    index: Int[Array, " s"] | None,
    interrupted: bool,
    settings: SearchSettings,
) -> tuple[list[Member], bool]:
    """Fit the members of the result to all rows, if time allows.

    Return the members, and whether the search or a fit was interrupted.
    """
    of_cells = [] if by_cells is None else members_of_cells(by_cells)
    if of_cells:
        return of_cells, interrupted
    if interrupted:
        return found.members(refits=False), True
    members = None
    try:
        members = found.members()
        # Only rows beyond the sample need a larger fit, and only of a function that is no constant.
        if index is not None and by_cells is None and _varies(members):
            rows, targets, weights = scaled.rows, scaled.targets, scaled.data.weights
            member = with_landmarks(found, rows, targets, weights, index, settings.checkpoint)
            members = members if member is None else [member]
    except KeyboardInterrupt:
        found.clock.steps.end()
        # Ctrl-C in a fit to all rows: the fits of the search are the result.
        return members or found.members(refits=False), True
    return members, False


def _report_left_out(search: Search, trials: Sequence[Trial], members: Sequence[Member]) -> None:
    """Log the planned steps that the budget did not allow, and the gains of the earlier steps."""
    if not search.left_out:
        return
    if search.fits and not any(member.all_rows or member.cells for member in members):
        search.leave_out("a last fit that includes held-out rows")
    gain = late_gain(trials)
    # A number of kernel evaluations is set for equal results, not for a time.
    is_early = math.isfinite(search.clock.budget.seconds) and (gain or 0.0) > STILL_FALLING
    logger.log(
        logging.WARNING if is_early else logging.INFO,
        "the budget ended the search before planned steps: %s%s",
        ", ".join(search.left_out),
        ""
        if gain is None
        else f"; the held-out error fell by {100 * gain:.1f} % in the second half of its time",
    )


def _warn_of_constant(members: list[Member]) -> None:
    """Warn if the result is the mean of the targets."""
    if not _varies(members):
        warnings.warn(
            "nothing was learned: no trial predicts held-out rows better than the mean of the "
            "targets, which the model now predicts for all rows",
            stacklevel=4,
        )


def _varies(members: list[Member]) -> bool:
    """Return whether the predictions of a member vary, unlike the mean of the targets."""
    return any(bool(member.coef.any()) for member in members)


def _final_model(
    search: Search,
    by_cells: CellSearch | None,
    members: list[Member],
    scaled: ScaledData,
    index: Int[Array, " s"] | None,
    trees: SearchTrees | None,
    score: LossOf | None,
) -> tuple[Model, list[Trial]]:
    """Return the model of the members, and the trial of a blend if trees have a weight."""
    models = [scaled.model(member, search.material) for member in members]
    model, blended, scale = _model(models, members), None, scaled.of_targets
    if not scaled.data.coded and trees is None:
        return model, []
    held_values = held_out(search, by_cells, members, model, scaled, index)
    if trees is not None:
        blended = blend_held_out(held_values, trees, scale.scale, score)
        held_values = held_values if blended is None else blended.held_values
    if scaled.data.coded:
        # Probabilities enter each part of the model.
        probabilities = held_values.shares()
        model = _model([replace(part, probabilities=probabilities) for part in models], members)
    if blended is None or trees is None:
        return model, []
    main, count = max(members, key=lambda member: member.weight), len(search.material.truth)
    values = scale.scale_numbers(held_values.values)
    trial = search.trial(
        "blend", main.recipe, main.penalty, blended.loss, (),
        # The held-out rows of cells begin with these of the search; trials have all of these.
        values[:count] if len(values) >= count else None, search.clock.steps.read_clock(),
    )  # fmt: skip
    return BlendModel(model, trees.trees, blended.weight), [trial]


def _model(models: list[KernelModel], members: list[Member]) -> Model:
    if len(models) == 1:
        return models[0]
    return AverageModel(tuple(member.weight for member in members), tuple(models))
