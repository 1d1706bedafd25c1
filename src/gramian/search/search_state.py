"""State of a search: its data, the fits so far and the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import _arrays as xp
from .._arrays import Array, Float
from .._parallel.machine import read_seconds
from ..engines import Engine
from ..kernels import Kernel
from ..paths.sample import SampleFit, squared_loss
from .all_rows.full_fit import FullFit
from .all_rows.last_fit import Member, constant, refit, sampled_member
from .cells.cell_fit import CellFit
from .clock import Clock
from .material import Material
from .recipe import RADIAL_KERNELS, Recipe, Trial
from .samples.sampled_fit import Effort, Stem
from .space import Space
from .steps import register_results

# `steps` cannot import these classes, because their modules import it, through `clock`.
register_results(CellFit, FullFit, Recipe, SampleFit, Stem)

SAMPLE_LOSS_FACTORS = {"gaussian": 1.05}
"""Factors of the losses of samples: few landmarks favour smooth kernels."""

HOPELESS_LOSS_RATIO = 2.0
"""Ratio to the least loss above which a distance gets no fit with all rows."""

EXACT_LOSS = 2.5e-7
"""Largest loss of a default that ends a search: its error is 1 / 2000 of the targets' deviation."""

NOTHING_GAINED = 0.999
"""Ratio to the loss of the mean above which the result is the mean."""

SAMPLE_WINS = 0.95
"""Ratio of a sample's loss to the loss of fits or cells of all rows below which the sample's fit is
the result: the others had no time."""

Score = Callable[[Float[Array, "v t"]], float]


def handicap_loss(stem: Stem) -> float:
    """Return the loss by which stems are compared, which for a Gaussian kernel is 5 % higher."""
    return SAMPLE_LOSS_FACTORS.get(str(stem.recipe.kernel), 1.0) * stem.loss


def beats_mean(
    values: Float[Array, "v t"], truth: Float[Array, "v t"], weights: Float[Array, " v"] | None
) -> bool:
    """Return whether predictions are better than the mean, by more than their standard error.

    The best of hundreds of trials is better by chance: on rows without any signal, 10 of 12
    searches had a gain, 4 of 12 a gain above the standard error. With a signal of R2 = 0.05 on
    300 rows, or of 0.3 on 60 rows, this test rejects 1 search of 12.
    """
    truth = xp.to_float64(truth)
    w = xp.ones(len(truth), xp.float32) if weights is None else weights
    w = xp.to_float64(w) / xp.to_float64(w).sum()
    # One gain per row: the outputs of a row are not independent observations.
    gains = (xp.square(truth) - xp.square(xp.to_float64(values) - truth)).mean(axis=1)
    gain = float(w @ gains)
    # Standard error of a weighted mean.
    error = float(xp.sqrt(xp.square(w) @ xp.square(gains - gain)))
    least_gain = (1 - NOTHING_GAINED) * float(w @ xp.square(truth).mean(axis=1))
    return gain > max(least_gain, error)


@dataclass(eq=False)
class SearchState:
    """Data, settings and fits so far of a search.

    Attributes
    ----------
    material : Material
    space : Space
    clock : Clock
    engine : str or Engine
    effort : Effort
    score : callable, optional
        Loss of the predictions of all held-out rows that compares fits; the mean squared error if
        None. Fits to samples are always compared by the mean squared error.
    apart : bool, default=True
        Whether there is enough memory to fit cells in worker processes.
    flattens : bool, default=False
        Whether to try lower powers of the learned metrics too, in fits with all rows as centers.
    default_recipe : Recipe, optional
        Recipe of the defaults of an estimator, fitted before all others with all rows as centers.
    default_loss : float
        Leave-one-out loss of this recipe.
    screen : list of Stem
        Stems of the screen, with fewer landmarks than `stems`.
    stems : list of Stem
        Recipes with their fits to a sample of each split; see `Stem`.
    fits : list of FullFit
    weights : list of float
        Weights of the fits in the result.
    left_out : list of str
        Planned steps that the budget did not allow.
    """

    material: Material
    space: Space
    clock: Clock
    engine: str | Engine = "auto"
    effort: Effort = field(default_factory=Effort)
    score: Score | None = None
    apart: bool = True
    flattens: bool = False
    default_recipe: Recipe | None = None
    default_loss: float = math.inf
    screen: list[Stem] = field(default_factory=list)
    stems: list[Stem] = field(default_factory=list)
    fits: list[FullFit] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, step: str) -> None:
        """Record a planned step that the budget does not allow."""
        if step not in self.left_out:
            self.left_out.append(step)

    def in_order(self, stems: list[Stem]) -> list[tuple[str | Kernel, ...]]:
        """Return the screened groups of kernels, best first."""
        # A short budget may end the screen before it reaches all groups.
        groups = [g for g in self.space.groups() if any(s.recipe.kernel in g for s in stems)]
        return sorted(groups, key=lambda group: self.best_of(stems, group).loss)

    def best_of(self, stems: list[Stem], group: tuple[str | Kernel, ...]) -> Stem:
        """Return the best stem of a group of kernels."""
        return min((s for s in stems if s.recipe.kernel in group), key=handicap_loss)

    def heads(self) -> list[Stem]:
        """Return the best stem of each distance, best first, if its loss is not far too large."""
        least_loss = min((handicap_loss(stem) for stem in self.stems), default=math.inf)
        best_stems = [self.best_of(self.stems, group) for group in self.in_order(self.stems)]
        return [
            stem for stem in best_stems if handicap_loss(stem) <= HOPELESS_LOSS_RATIO * least_loss
        ]

    def loss(self, fit: FullFit) -> float:
        """Return the loss by which fits are compared."""
        return fit.loss if self.score is None else self.score(fit.values)

    def squared_error(self, values: Float[Array, "v t"]) -> float:
        """Return the mean squared error of predictions of all held-out rows."""
        return squared_loss(values, self.material.truth, self.material.held_weights)

    def is_noise(self) -> bool:
        """Return whether a complete screen and all fits predict no better than the mean.

        Measured with 300 and 1,000 rows of 20 features: the best gain of a screen is 0.5 and 0.9 of
        its standard error for noise, 1.2 and 4.4 for sin(5 x y) with 18 features of noise, which
        only a learned metric predicts, and 1.3 and 4.3 for a linear signal of R2 = 0.05.
        """
        # A search of smooth kernels only may need another lengthscale to see a signal.
        if self.left_out or not set(RADIAL_KERNELS) <= set(self.space.kernels):
            return False
        # Splits of a sample have their own best penalties, which predict better by chance: the loss
        # is at the best common one.
        limit = self._constant_loss()
        stems = (s for s in (*self.stems, *self.screen) if s.loss < limit)
        of_stems = (xp.concat([f.values for f in s.fits]) for s in stems)
        of_fits = (fit.values for fit in self.fits)
        return not any(map(self.predicts, itertools.chain(of_fits, of_stems)))

    def members(self, *, refits: bool = True) -> list[Member]:
        """Return the functions of the result: the best fit or the average, fitted to all rows.

        Without `refits`, the held-out rows stay out of the fits. If no fit with all rows beats the
        fits of samples, return the best sample fit.
        """
        # 1. A sample that is clearly better than all fits: these had no time to converge.
        best_sample = self.best_stem()
        if self.is_noise():
            return [constant(sampled_member(self.material, best_sample))]
        if best_sample.loss < SAMPLE_WINS * min((fit.loss for fit in self.fits), default=math.inf):
            return [self._or_constant(sampled_member(self.material, best_sample), best_sample.loss)]
        # 2. No fit at all: the mean of the targets.
        if not self.fits:  # no loss of a sample is finite
            return [constant(sampled_member(self.material, best_sample))]
        # 3. The best fit may have won by chance among many; then the result is the mean, too.
        best = min(self.fits, key=self.loss)
        if not self.predicts(best.values):
            return [constant(sampled_member(self.material, best.stem))]
        return [
            # 4. Each member gets the time that remains when its last fit starts. Without last
            # fits, the deadline has passed, and `refit` returns the fit of the first split.
            refit(
                self.material, fit, weight, clock=self.clock, engine=self.engine,
                ends=read_seconds() + (self.clock.remaining_seconds if refits else 0.0),
                most=self.clock.budget.evaluations,
            )
            for fit, weight in zip(self.fits, self.shares(), strict=True)
            if weight > 0
        ]  # fmt: skip

    def shares(self) -> list[float]:
        """Return the weights of the fits; before the average, the best fit has all weight."""
        # Weights of an earlier average do not cover the fits made since.
        if len(self.weights) == len(self.fits):
            return self.weights
        best = min(self.fits, key=self.loss)
        return [float(fit is best) for fit in self.fits]

    @property
    def has_result(self) -> bool:
        """Whether there is a result, at least of a single sample."""
        return bool(self.stems or self.screen)

    def best_stem(self) -> Stem:
        """Return the stem of least loss on a sample."""
        stems = self.stems or self.screen
        if not stems:
            raise ValueError("the search has no result yet: no step has finished")
        return min(stems, key=lambda s: s.loss)

    def loss_of(self, values: Float[Array, "v t"]) -> float:
        """Return the loss of predictions of all held-out rows that compares fits."""
        return (self.score or self.squared_error)(values)

    def predict_held_out(self) -> Float[Array, "v t"]:
        """Return the predictions of all held-out rows; without fits, the mean of the targets."""
        if not self.fits:
            # The mean of standardised or centred targets is zero.
            return xp.zeros_like(self.material.truth)
        pairs = zip(self.shares(), self.fits, strict=True)
        return xp.stack([w * xp.to_float64(fit.values) for w, fit in pairs if w > 0]).sum(axis=0)

    def _or_constant(self, member: Member, loss: float) -> Member:
        return member if loss < self._constant_loss() else constant(member)

    def predicts(
        self, values: Float[Array, "v t"], truth: Float[Array, "v t"] | None = None
    ) -> bool:
        """Return whether `beats_mean` accepts predictions of the held-out rows.

        `truth` replaces their targets.
        """
        truth = self.material.truth if truth is None else truth
        return beats_mean(values, truth, self.material.held_weights)

    def _constant_loss(self) -> float:
        """Return the loss of predicting the mean of the targets, less a tolerance."""
        return NOTHING_GAINED * self.squared_error(xp.zeros_like(self.material.truth))

    def record(self, step: str, member: Member) -> Trial:
        """Return the trial of a last fit."""
        started = self.clock.steps.read_clock()
        return self.trial(step, member.recipe, member.penalty, math.nan, (), None, started)

    def sample_trial(self, step: str, stem: Stem, started: float) -> Trial:
        """Return the trial of a fit to a sample."""
        return self.trial(step, stem.recipe, stem.penalty, stem.loss, stem.losses, None, started)

    def fit_trial(self, fit: FullFit) -> Trial:
        """Return the trial of a fit with all rows as centers."""
        return self.trial(
            "fit", fit.recipe, fit.penalty, self.loss(fit), fit.losses, fit.values,
            # From the seconds of the fit, because a resumed search reads it from the journal in
            # no time.
            self.clock.steps.read_clock() - fit.seconds,
        )  # fmt: skip

    def trial(
        self,
        step: str,
        recipe: Recipe,
        penalty: float,
        loss: float,
        losses: tuple[tuple[float, float], ...],
        values: Array | None,
        started: float,
    ) -> Trial:
        """Return the record of a fit for the watchers."""
        ended, clock = self.clock.steps.read_clock(), self.clock
        return Trial(
            step, recipe, penalty, loss, losses, values,
            ended - started, ended - clock.started, clock.meter.evaluations,
        )  # fmt: skip
