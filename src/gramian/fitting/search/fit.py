"""automatic: a search for a model, from training data of any kind to the model of all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...data import Standardizer
from ...model import AverageModel, KernelModel, Model
from ...search import CellSearch, Clock, Effort, Member, Search, Trial, Watcher
from ..held_out.splits import given_splits
from ..inputs.training_data import TrainingData
from .data import ScaledData, check_data, material_of, score_of, search_journal
from .held_out import held_out
from .many_rows import cell_search, members_of_cells, with_landmarks
from .plan import rows_by_cells
from .settings import SearchSettings


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome of a search: a model, and how it was found.

    Attributes
    ----------
    model : Model
    trials : list of Trial
        In the order in which they were made, the last fits included.
    members : list of Member
        Of the model.
    evaluations : int
        Kernel evaluations.
    seconds : float
    interrupted : bool
        Whether it was ended by Ctrl-C.
    unit : float
        Of the square root of a loss, in that of the target: 1 for classes and several targets.
    truth : Tensor of shape (v, t)
        Targets of the held-out rows, as the values of trials are.
    targets : Standardizer
        Which both were scaled by: ``values * scale + mean`` is in units of the target, or codes.
    """

    model: Model
    trials: list[Trial]
    members: list[Member]
    evaluations: int
    seconds: float
    interrupted: bool
    unit: float
    truth: Float[Tensor, "v t"]
    targets: Standardizer


def search_fit(data: TrainingData, settings: SearchSettings, rng: torch.Generator) -> Searched:
    """Search for a model and fit it to all rows.

    Parameters
    ----------
    data : TrainingData
    settings : SearchSettings
    rng : torch.Generator

    Raises
    ------
    ValueError
        If there are fewer than five rows, or no kernel for sparse ones.

    Notes
    -----
    An interruption (Ctrl-C) ends the search, not the fit: the best until then is returned. With a
    checkpoint, the same call resumes the search after the last step that was finished.
    """
    clock = Clock(settings.budget)
    data = data.without_zero_weights()
    check_data(data)
    settings = settings.of(data.rows)
    scaled = ScaledData.of(data, settings.standardize)
    material, index = material_of(scaled, settings, rng)
    if settings.checkpoint is not None:
        journal = search_journal(settings.checkpoint, settings, data, material, rng)
        clock.steps.keep(journal, started=clock.started, rng=rng, meter=clock.meter)
    machine = settings.space.machine
    found = Search(
        material,
        settings.space,
        clock,
        settings.engine,
        Effort() if machine is None else Effort(machine=machine),
        score=score_of(settings, material, scaled.of_targets),
        apart=settings.memory_limit is None,
    )
    by_cells = None
    if index is not None:
        most = rows_by_cells(scaled.rows, scaled.targets.shape[1], settings.memory_limit)
        folds = given_splits(settings.cv, data)
        by_cells = cell_search(found, scaled.rows, scaled.targets, data.weights, index, most, folds)
    steps = found.steps() if by_cells is None else _by_cells(found, by_cells)
    trials, interrupted = _watched(steps, settings.watchers, found)
    if interrupted:
        clock.steps.end()
    members, interrupted = _last_fits(found, by_cells, scaled, index, interrupted, settings)
    models = [scaled.model(member, material) for member in members]
    model = _model(models, members)
    if data.coded:
        held = held_out(found, by_cells, members, model, scaled, index)
        chances = held.shares()
        model = _model([replace(one, probabilities=chances) for one in models], members)
    refits = [found.record("refit", member) for member in members]
    trials += refits
    try:
        for trial in refits:
            for watcher in settings.watchers:
                watcher(trial)
    except KeyboardInterrupt:
        interrupted = True
    scale = scaled.of_targets.scale
    unit = float(scale[0]) if len(scale) == 1 else 1.0
    return Searched(
        model, trials, members, clock.meter.evaluations, clock.seconds, interrupted, unit,
        material.truth, scaled.of_targets,
    )  # fmt: skip


def _watched(
    steps: Iterator[Trial], watchers: Sequence[Watcher], found: Search
) -> tuple[list[Trial], bool]:
    """Return the trials until the end, or that of a watcher, and whether Ctrl-C came before."""
    trials: list[Trial] = []
    try:
        for trial in steps:
            trials.append(trial)
            if any([watcher(trial) for watcher in watchers]):
                break
    except KeyboardInterrupt:
        if not found.begun:
            raise
        return trials, True
    return trials, False


def _by_cells(found: Search, by_cells: CellSearch) -> Iterator[Trial]:
    """Yield the trials on a sample, and those of the cells that all rows are divided into.

    Where cells are no better than that, all rows of the sample become centers.
    """
    yield from found.sampled_steps()
    yield from by_cells.steps()
    if not members_of_cells(by_cells):
        yield from found.whole_steps()


def _last_fits(
    found: Search,
    by_cells: CellSearch | None,
    scaled: ScaledData,
    index: Int[Tensor, " s"] | None,
    interrupted: bool,
    settings: SearchSettings,
) -> tuple[list[Member], bool]:
    """Return the functions of the result, and whether a fit was interrupted."""
    of_cells = [] if by_cells is None else members_of_cells(by_cells)
    if of_cells:
        return of_cells, interrupted
    if interrupted:
        return found.members(refits=False), True
    members = None
    try:
        members = found.members()
        if index is not None and by_cells is None and _varies(members):
            rows, targets, weights = scaled.rows, scaled.targets, scaled.data.weights
            member = with_landmarks(found, rows, targets, weights, index, settings.checkpoint)
            members = members if member is None else [member]
    except KeyboardInterrupt:
        found.clock.steps.end()
        return members or found.members(refits=False), True
    return members, False


def _varies(members: list[Member]) -> bool:
    """Return whether a result is more than the mean of the targets."""
    return any(bool(member.coef.any()) for member in members)


def _model(models: list[KernelModel], members: list[Member]) -> Model:
    if len(models) == 1:
        return models[0]
    return AverageModel(tuple(member.weight for member in members), tuple(models))
