"""Fits of recipes to samples of the rows, with few landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..._arrays import Array, Float
from ...data import LinearMap
from ...engines import Engine
from ...metric import RecursiveFeatureMachine
from ...metric.outer_products import map_of
from ...metric.rfm import RoundFit
from ...operators import CostMeter
from ...paths.sample import SampleFit, fit_sample
from ..material import Material
from ..recipe import L1_KERNEL, Recipe


@dataclass(frozen=True)
class Effort:
    """Sizes of samples: landmarks and rows of the screen and of metric learning."""

    screen_landmarks: int = 500
    screen_rows: int = 4000
    machine: RecursiveFeatureMachine = field(default_factory=RecursiveFeatureMachine)

    def within(self, seconds: float, screen_seconds: float, fits: int, n: int) -> Effort:
        """Choose sample sizes so that `fits` fits of the metric take about `seconds`.

        Parameters
        ----------
        seconds : float
        screen_seconds : float
            Seconds of one fit of the screen.
        fits : int
        n : int
            Number of training rows.
        """
        screen = _operations(self.screen_landmarks, min(self.screen_rows, n))
        # Without a `break`, the last and smallest sizes are the choice, in the other methods,
        # too.
        for landmarks, rows in ((self.machine.landmarks, self.machine.rows), *SMALLER_SIZES):
            machine = replace(self.machine, landmarks=landmarks, rows=rows)
            if fits * screen_seconds * _operations(landmarks, min(rows, n)) / screen <= seconds:
                break
        return replace(self, machine=machine)

    def screening(self, most: float, cost: Cost) -> Effort:
        """Limit the kernel evaluations of one screened recipe to `most`, if possible.

        Parameters
        ----------
        most : float
        cost : callable
            Kernel evaluations of a fit, by landmarks and rows.
        """
        for landmarks, rows in (
            (self.screen_landmarks, self.screen_rows),
            *SMALLER_SIZES,
            *SMALLEST_SIZES,
        ):
            if rows <= self.screen_rows and cost(landmarks, rows) <= most:
                break
        return replace(self, screen_landmarks=landmarks, screen_rows=rows)

    def learning(self, most: float, cost: Cost) -> Effort:
        """Limit the kernel evaluations of each fit of the metric to `most`, if possible."""
        for landmarks, rows in (
            (self.machine.landmarks, self.machine.rows),
            *SMALLER_SIZES,
            *SMALLEST_SIZES,
        ):
            if rows <= self.machine.rows and cost(landmarks, rows) <= most:
                break
        return replace(self, machine=replace(self.machine, landmarks=landmarks, rows=rows))


def _operations(landmarks: int, rows: int) -> float:
    """Return the relative cost of a fit to a sample.

    Products are the smaller part. Measured on tables of 8 to 32 features: from 500 landmarks on,
    twice the landmarks take 2.3 times as long.
    """
    return rows * landmarks * (1 + landmarks / 2500)


Cost = Callable[[int, int], float]

SMALLEST_SIZES = ((150, 1200), (60, 600), (20, 200))
"""Landmarks and rows for budgets of few kernel evaluations."""

SMALLER_SIZES = ((700, 6000), (500, 5000), (400, 4000), (300, 2500))
"""Landmarks and rows that learn a metric in less time."""


@dataclass(frozen=True, eq=False)
class Stem:
    """Kernel, inputs and metric, with one map and one fit per split.

    Attributes
    ----------
    recipe : Recipe
    maps : sequence of LinearMap or None
        One map per split.
    gradients : Array of shape (d, d), or None
        Mean of the matrices M of the splits.
    loss : float
        Loss on a sample, with few landmarks.
    penalty : float
    losses : tuple of (penalty, loss)
    fits : sequence of SampleFit
        One fit per split, at its own best penalty.
    """

    recipe: Recipe
    maps: tuple[LinearMap | None, ...]
    gradients: Float[Array, "d d"] | None
    loss: float
    penalty: float
    losses: tuple[tuple[float, float], ...]
    fits: tuple[SampleFit, ...]

    @property
    def map(self) -> LinearMap | None:
        """Map of the features by the metric averaged over all splits, for the last fit."""
        if self.gradients is None:
            return None
        return map_of(self.gradients, self.recipe.power, diagonal=self.recipe.kernel == L1_KERNEL)


def screen_kernels(
    material: Material, recipe: Recipe, effort: Effort, engine: str | Engine, meter: CostMeter
) -> Stem:
    """Fit a recipe without a metric to a sample of each split."""
    maps = (None,) * len(material.splits)
    machine = replace(effort.machine, rows=effort.screen_rows, landmarks=effort.screen_landmarks)
    return at_maps(material, recipe, maps, None, replace(effort, machine=machine), engine, meter)


def at_maps(
    material: Material,
    recipe: Recipe,
    maps: Sequence[LinearMap | None],
    gradients: Array | None,
    effort: Effort,
    engine: str | Engine,
    meter: CostMeter,
) -> Stem:
    """Fit a recipe with known metrics to a sample of each split."""
    # Samples are prefixes of one random order: a recipe that is screened first sees rows that the
    # later fits see as well.
    machine, kernel, fits = effort.machine, recipe.make_kernel(), []
    for split, map_ in zip(material.splits, maps, strict=True):
        sample = material.sample(recipe.inputs, split, machine.rows).with_map(map_)
        fit = fit_sample(sample, kernel, landmarks=machine.landmarks, engine=engine, meter=meter)
        fits.append(fit)
    return _stem(material, recipe, tuple(maps), gradients, fits)


def learn_metrics(
    material: Material,
    stem: Stem,
    effort: Effort,
    engine: str | Engine,
    meter: CostMeter,
    goes_on: Callable[[float], bool] = lambda gain: True,
) -> list[Stem]:
    """Return the stems of all rounds of the recursive feature machine, with the first round.

    Rounds end when `goes_on`, called with the relative gain of the last round, returns False.

    With several splits, each split learns its metric from its own rows, separately for each power.
    """
    machine, kernel = effort.machine, stem.recipe.make_kernel()
    inputs, rows = stem.recipe.inputs, machine.rows
    samples = [material.sample(inputs, split, rows) for split in material.splits]
    # The first round keeps the better of two powers. Splits might keep different ones, which have
    # no common stem, so each power gets its own run, of which the better one continues.
    if len(samples) == 1 or stem.recipe.kernel == L1_KERNEL:
        machines = [machine]
    else:
        machines = [replace(machine, powers=(power,)) for power in machine.powers]
    all_runs = []
    for single in machines:
        splits = [single.learn_from(s, kernel, engine=engine, meter=meter) for s in samples]
        runs = _Runs(splits, [[] for _ in splits])
        runs.extend(goes_on, None if len(machines) == 1 else 2)
        all_runs.append(runs)
    if len(machines) > 1:
        min(all_runs, key=_Runs.last_loss).extend(goes_on)
    stems: dict[tuple[int, float], Stem] = {}
    for runs in all_runs:
        for key in _in_all(runs.rounds):
            rounds = [next(r for r in run if (r.number, r.power) == key) for run in runs.rounds]
            # The round without a metric is the same in the run of every power.
            if key not in stems:
                stems[key] = _of_rounds(material, stem.recipe, rounds)
    return list(stems.values())


@dataclass(eq=False)
class _Runs:
    """Runs of a machine on each split, with their rounds so far."""

    splits: Sequence[Iterator[RoundFit]]
    rounds: list[list[RoundFit]]
    goes_on: bool = True

    def extend(self, goes_on: Callable[[float], bool], most: int | None = None) -> None:
        """Run a round of each split in turn, until a split has no more or `goes_on` is False."""
        while self.goes_on and (most is None or len(self.rounds[0]) < most):
            for run, rounds in zip(self.rounds, self.splits, strict=True):
                # One round of each split in turn: the gain that decides about the next round is a
                # mean over the splits.
                next_fit = next(rounds, None)
                if next_fit is None:
                    self.goes_on = False
                    return
                run.append(next_fit)
            self.goes_on = goes_on(sum(map(_gain, self.rounds)) / len(self.rounds))

    def last_loss(self) -> float:
        """Return the sum of the losses of the last rounds."""
        return sum(run[-1].fit.loss for run in self.rounds)


def _gain(run: Sequence[RoundFit]) -> float:
    """Return by what share the last round reduced the loss; 1 for the first round."""
    before = min((r.fit.loss for r in run[:-1]), default=float("inf"))
    return 1 - run[-1].fit.loss / before if before < float("inf") and before > 0 else 1.0


def _in_all(runs: Sequence[Sequence[RoundFit]]) -> list[tuple[int, float]]:
    """Return the index and the power of the rounds that all splits completed."""
    keys = [[(r.number, r.power) for r in run] for run in runs]
    return [key for key in keys[0] if all(key in run_keys for run_keys in keys)]


def _of_rounds(material: Material, recipe: Recipe, rounds: Sequence[RoundFit]) -> Stem:
    first = rounds[0]
    # The round without a metric keeps its recipe, which the screen may have fitted, too.
    if first.number:
        power, learner = first.power, recipe.kernel
        recipe = replace(recipe, rounds=first.number, power=power, learner=learner)
    gradients = None
    if first.gradients is not None:
        matrices = [r.gradients for r in rounds if r.gradients is not None]
        # Each split has its own map for its held-out error. The last fit has no split, and uses the
        # map of the mean.
        gradients = sum(matrices[1:], matrices[0]) / len(matrices)
    maps = tuple(r.map for r in rounds)
    return _stem(material, recipe, maps, gradients, [r.fit for r in rounds])


def _stem(
    material: Material,
    recipe: Recipe,
    maps: tuple[LinearMap | None, ...],
    gradients: Array | None,
    fits: Sequence[SampleFit],
) -> Stem:
    """Return the stem of a fit to each split, with the penalty of smallest mean loss."""
    sizes = [len(split.validation) for split in material.splits]
    paths = [dict(fit.losses) for fit in fits]
    # Paths end at different penalties, see `fit_sample`. A mean needs the losses of all splits.
    shared = [p for p in paths[0] if all(p in path for path in paths)]
    losses = tuple(
        (p, sum(v * path[p] for v, path in zip(sizes, paths, strict=True)) / sum(sizes))
        for p in shared
    )
    penalty, loss = min(losses, key=lambda each: each[1])
    return Stem(recipe, maps, gradients, loss, penalty, losses, tuple(fits))
