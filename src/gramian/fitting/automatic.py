"""automatic: a search for a model, from training data of any kind to the model of all rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..data import RowSource, Standardizer, Subset, as_rows
from ..engines import Engine
from ..model import AverageModel, KernelModel, Model
from ..search import (
    Budget,
    CellSearch,
    Clock,
    Effort,
    Material,
    Member,
    Score,
    Search,
    Space,
    Trial,
    Watcher,
)
from .data import TrainingData
from .many_rows import cell_search, member_of_cells, with_landmarks
from .splits import search_splits

logger = logging.getLogger("gramian")

MOST_ROWS = 20_000
"""Rows that a search works with; of more, a random sample. The last fit takes all."""


LossOf = Callable[[Tensor, Tensor, Tensor | None], float]


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The parameters of a search.

    Attributes
    ----------
    budget : Budget
    space : Space
    cv : None, int, splitter or pairs
        None: five folds of fewer than 1,500 rows, else a fifth of the rows, at most 2,000.
    engine : str or Engine
    standardize : bool
        Whether features that are not encoded are given mean 0 and deviation 1.
    score : callable, optional
        Loss of predictions, given true targets and weights of held-out rows, by which fits are
        compared; the mean squared error if None.
    watchers : sequence of callables
        Called with each `Trial`; one that returns True ends the search.
    """

    budget: Budget = field(default_factory=Budget)
    space: Space = field(default_factory=Space)
    cv: object = None
    engine: str | Engine = "auto"
    standardize: bool = True
    score: LossOf | None = None
    watchers: Sequence[Watcher] = ()


@dataclass(frozen=True, eq=False)
class Searched:
    """What came of a search.

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


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Training data as a search sees them, and what was done to them."""

    data: TrainingData
    rows: RowSource
    targets: Float[Tensor, "n t"]
    features: Standardizer | None
    of_targets: Standardizer

    @classmethod
    def of(cls, data: TrainingData, standardize: bool) -> _Scaled:
        features, rows = None, data.rows
        if standardize and data.encoding is None and not rows.sparse:
            features = Standardizer.fit(rows, weights=data.weights)
            rows = features.apply(rows)
        of_targets = Standardizer.fit(as_rows(data.targets), weights=data.weights)
        if data.coded:  # their scale is that of errors; their mean is what nothing is known by
            of_targets = Standardizer(of_targets.mean, torch.ones_like(of_targets.scale))
        targets = of_targets.scaled(data.targets)
        return cls(data, rows, targets, features, of_targets)

    def model(self, member: Member, material: Material) -> KernelModel:
        """Return the model of a member, for rows and predictions as they are given."""
        scale = self.of_targets
        return KernelModel(
            member.kernel,
            member.centers,
            member.coef,
            self.features,
            scale.mean,
            scale.scale,
            self.data.feature_names,
            self.data.classes,
            self.data.encoding,
            self.data.target,
            quantiles=material.quantiles if member.quantiles else None,
            metric=member.map,
            importances=member.importances,
            cells=member.cells,
        )


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
        If there are fewer than five rows, or rows are sparse.

    Notes
    -----
    An interruption (Ctrl-C) ends the search, not the fit: the best until then is returned.
    """
    clock = Clock(settings.budget)
    data = data.without_zero_weights()
    _check(data)
    scaled = _Scaled.of(data, settings.standardize)
    material, index = _material(scaled, settings, rng)
    machine = settings.space.machine
    found = Search(
        material,
        settings.space,
        clock,
        settings.engine,
        Effort() if machine is None else Effort(machine=machine),
        score=_score(settings, material, scaled.of_targets),
    )
    by_cells = None
    if index is not None:
        by_cells = cell_search(found, scaled.rows, scaled.targets, data.weights, index)
    steps = found.steps() if by_cells is None else _by_cells(found, by_cells)
    trials, interrupted = _watched(steps, settings.watchers, found)
    members, interrupted = _last_fits(found, by_cells, scaled, index, interrupted)
    model = _model([scaled.model(member, material) for member in members], members)
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
    """Yield the trials on a sample, and those of the cells that all rows are divided into."""
    yield from found.sampled_steps()
    yield from by_cells.steps()


def _last_fits(
    found: Search,
    by_cells: CellSearch | None,
    scaled: _Scaled,
    index: Int[Tensor, " s"] | None,
    interrupted: bool,
) -> tuple[list[Member], bool]:
    """Return the functions of the result, and whether a fit was interrupted."""
    of_cells = None if by_cells is None else member_of_cells(by_cells)
    if of_cells is not None:
        return [of_cells], interrupted
    if interrupted:
        return found.members(refits=False), True
    members = None
    try:
        members = found.members()
        if index is not None and by_cells is None and _varies(members):
            rows, targets, weights = scaled.rows, scaled.targets, scaled.data.weights
            member = with_landmarks(found, rows, targets, weights, index)
            members = members if member is None else [member]
    except KeyboardInterrupt:
        return members or found.members(refits=False), True
    return members, False


def _varies(members: list[Member]) -> bool:
    """Return whether a result is more than the mean of the targets."""
    return any(bool(member.coef.any()) for member in members)


def _model(models: list[KernelModel], members: list[Member]) -> Model:
    if len(models) == 1:
        return models[0]
    return AverageModel(tuple(member.weight for member in members), tuple(models))


def _check(data: TrainingData) -> None:
    if data.rows.sparse:
        raise ValueError(
            "a search maps features, which sparse rows do not allow; give dense rows "
            "(X.toarray()), or KernelRidge with a kernel of its own"
        )
    if len(data.rows) < 5:
        raise ValueError(
            f"too few rows of positive weight, n_samples = {len(data.rows)}: a search needs 5 at "
            "least, to hold some out; use KernelRidge"
        )


def _material(
    scaled: _Scaled, settings: SearchSettings, rng: torch.Generator
) -> tuple[Material, Int[Tensor, " s"] | None]:
    """Return rows in memory, and their numbers if they are not all."""
    data, n = scaled.data, len(scaled.rows)
    index = None
    if n > MOST_ROWS:
        index = torch.randperm(n, generator=rng)[:MOST_ROWS].sort().values
    rows = scaled.rows if index is None else Subset(scaled.rows, index)
    X = rows.take(torch.arange(len(rows)))
    Y = scaled.targets if index is None else scaled.targets[index]
    weights = data.weights if index is None or data.weights is None else data.weights[index]
    splits = None
    if settings.cv is not None:
        splits = search_splits(settings.cv, data if index is None else data.part(index), rng)
    material = Material.of(
        X,
        Y.to(X.dtype),
        weights,
        coded=data.coded,
        splits=splits,
        rng=rng,
        scales=None if scaled.features is None else scaled.features.scale,
    )
    return material, index


def _score(settings: SearchSettings, material: Material, targets: Standardizer) -> Score | None:
    given = settings.score
    if given is None:
        return None
    truth = material.truth.double() * targets.scale + targets.mean

    def score(values: Float[Tensor, "v t"]) -> float:
        predicted = values.double() * targets.scale + targets.mean
        loss = float(given(predicted, truth, material.held_weights))
        return loss if math.isfinite(loss) else math.inf

    return score
