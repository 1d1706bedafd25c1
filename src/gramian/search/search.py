"""Search: a kernel, its inputs, metric, lengthscale and penalty, in the order that is cheap.

    screen    all kernels and inputs, on some thousand rows with some hundred landmarks
    metric    the recursive feature machine, once for kernels of each distance
    kernel    other kernels with the metric that was found
    fit       all rows as centers: each penalty of a path at once; lengthscales by walking
    average   weights of the fits, on held-out rows

What is chosen with landmarks is what does not depend on their number: inputs, metric and kernel.
Lengthscale and penalty are chosen by fits with all rows as centers, as few landmarks prefer wide
kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..engines import Engine
from ..paths.sample import squared_loss
from .average import averaged
from .clock import Clock
from .cost import of_fit, of_refit, of_sample
from .full_fit import FullFit, full_fit
from .material import Material
from .recipe import Recipe, Trial
from .refit import Member, constant, refit, sampled_member
from .sampled import Effort, Stem, at_maps, learned, screened
from .space import Space
from .walk import Walk

SCREEN_SHARE = 0.2
"""Of kernel evaluations, where these are the budget, the screen may take so much."""

METRIC_SHARE = 0.3
"""Of what is left after the screen, metrics may take so much."""

METRIC_AT_MOST = 0.6
"""The same as long as each round lowers the error by a large gain."""

LARGE_GAIN = 0.1
"""Share of the error that a round has to lower it by, to go on beyond its share of the time."""

METRIC_FITS = 10
"""Fits that learning the metrics takes, about."""

LEARNER = "matern32"

HOPELESS = 2.0
"""A distance whose best kernel has so many times the least error gets no fit with all rows."""

INPUTS_WORTH = 1.25
"""Inputs whose error is so many times the least are tried with one kernel only."""

HANDICAP = {"gaussian": 1.05}
"""By which the errors of samples are multiplied: few landmarks prefer smooth kernels."""

FAR_OFF = 1.15
"""A walk whose error is so many times the least ends."""

WORTH = 1.15
"""A further stem is fitted if its error on a sample is at most so many times the least."""

NOTHING_GAINED = 0.999
"""A result whose loss is a larger share of that of the mean is the mean."""

SAMPLE_WINS = 0.95
"""The fit to a sample is the result if its loss is a smaller share of that with all rows: these had
no time."""

REFIT = 0.8
"""Seconds of the last fit to all rows, in those of the fit that chose its penalty, about."""

MANY_ROWS = 5000
"""Rows from which on there are half as many fits with all of them at most."""

FIRST_SHARE = 0.6
"""Of what is left, the first fit with all rows as centers may take so much."""


def _handicapped(stem: Stem) -> float:
    return HANDICAP.get(stem.recipe.kernel, 1.0) * stem.loss


Score = Callable[[Float[Tensor, "v t"]], float]


@dataclass(eq=False)
class Search:
    """A search, and what it has found so far.

    Attributes
    ----------
    material : Material
    space : Space
    clock : Clock
    engine : str or Engine
    effort : Effort
    score : callable, optional
        What fits are compared by, of the predictions of all held-out rows, the smaller the better;
        the mean squared error if None. Samples are compared by the mean squared error.
    screen : list of Stem
        Of the screen, with fewer landmarks than the others.
    stems : list of Stem
    fits : list of FullFit
    weights : list of float
        Of the fits, in the result.
    """

    material: Material
    space: Space
    clock: Clock
    engine: str | Engine = "auto"
    effort: Effort = field(default_factory=Effort)
    score: Score | None = None
    screen: list[Stem] = field(default_factory=list)
    stems: list[Stem] = field(default_factory=list)
    fits: list[FullFit] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def steps(self) -> Iterator[Trial]:
        """Go through the steps, and yield each trial; whoever stops has the best until then."""
        yield from self._screen()
        yield from self._metrics()
        yield from self._fits()
        yield from self._average()

    # --- on samples ----------------------------------------------------------------------------

    def _screen(self) -> Iterator[Trial]:
        """Try one kernel with all inputs, and the others with those that are not far off."""
        inputs = self._inputs()
        cells = len(self.space.kernels) * len(inputs)
        most = SCREEN_SHARE * self.clock.budget.evaluations / cells
        self.effort = self.effort.screening(most, self._cost)
        cost = self._cost(self.effort.screen_landmarks, self.effort.screen_rows)
        order = sorted(self.space.kernels, key=lambda kernel: kernel != LEARNER)
        for kernel in order:
            for name in inputs:
                if self.stems and not self.clock.allows(0.2 * self.clock.seconds, cost):
                    return
                started = time.monotonic()
                recipe = Recipe(kernel, name, self.space.first(kernel))
                stem = screened(self.material, recipe, self.effort, self.engine, self.clock.meter)
                self.stems.append(stem)
                yield self._sampled("screen", stem, started)
            if kernel == order[0]:
                least = min(s.loss for s in self.stems)
                inputs = tuple(
                    s.recipe.inputs for s in self.stems if s.loss <= INPUTS_WORTH * least
                )

    def _cost(self, landmarks: int, rows: int) -> float:
        return of_sample(self.material, landmarks, rows)

    def _inputs(self) -> tuple[str, ...]:
        """Return the inputs that are tried: one scale for all only where that is another one."""
        given = self.space.inputs
        if self.material.common is None:
            return tuple(name for name in given if name != "common") or ("standard",)
        return given

    def _metrics(self) -> Iterator[Trial]:
        screen, self.screen, self.stems = self.stems, self.stems, []
        seconds = METRIC_SHARE * self.clock.left
        ends = self.clock.seconds + seconds
        latest = self.clock.seconds + METRIC_AT_MOST * self.clock.left
        each = self.clock.seconds / (len(screen) * len(self.material.splits))
        self.effort = self.effort.within(seconds, each, METRIC_FITS * len(self.material.splits))
        groups, left = self._in_order(screen), METRIC_SHARE * self.clock.evaluations_left
        fits = METRIC_FITS * len(groups)
        self.effort = self.effort.learning(left / fits, self._cost)
        cost = self._cost(self.effort.machine.landmarks, self.effort.machine.rows)
        most = self.clock.meter.evaluations + left

        def goes_on(gain: float) -> bool:
            until = latest if gain > LARGE_GAIN else ends
            return self.clock.seconds < until and self.clock.meter.evaluations + cost <= most

        for group in groups:
            if not self.clock.allows(0.0, METRIC_FITS * cost):
                self.stems = self.stems or screen
                return
            if self.space.machine is None or self.material.X.shape[1] == 1:
                yield self._again(self._best(screen, group))
                yield from self._other_kernels(group)
                continue
            stem = self._learner(screen, group)
            started = time.monotonic()
            found = learned(
                self.material,
                stem,
                self.effort,
                self.engine,
                self.clock.meter,
                goes_on,
            )
            self.stems += found
            for one in found:
                yield self._sampled("metric", one, started)
            yield from self._other_kernels(group)

    def _learner(self, stems: list[Stem], group: tuple[str, ...]) -> Stem:
        """Return the stem whose gradients are taken: Matern 3/2 on the inputs that were best.

        Measured on pol: with its metric the Laplacian has an error of 3.66, with that of the
        Laplacian 4.70, and with that of the Gaussian 3.92.
        """
        best = self._best(stems, group)
        same = [s for s in stems if s.recipe.inputs == best.recipe.inputs]
        return next((s for s in same if s.recipe.kernel == LEARNER and LEARNER in group), best)

    def _again(self, stem: Stem) -> Trial:
        """Return a stem without a metric, on the larger sample of those with one."""
        started = time.monotonic()
        maps = (None,) * len(self.material.splits)
        found = at_maps(
            self.material, stem.recipe, maps, None, self.effort, self.engine, self.clock.meter
        )
        self.stems.append(found)
        return self._sampled("kernel", found, started)

    def _other_kernels(self, group: tuple[str, ...]) -> Iterator[Trial]:
        """Try the other kernels of a distance with the metric that was found."""
        stem = self._best(self.stems, group)
        cost = self._cost(self.effort.machine.landmarks, self.effort.machine.rows)
        for kernel in group:
            if kernel == stem.recipe.kernel or not self.clock.allows(0.0, cost):
                continue
            started = time.monotonic()
            recipe = replace(stem.recipe, kernel=kernel, multiple=self.space.first(kernel))
            found = at_maps(
                self.material,
                recipe,
                stem.maps,
                stem.gradients,
                self.effort,
                self.engine,
                self.clock.meter,
            )
            self.stems.append(found)
            yield self._sampled("kernel", found, started)

    def _in_order(self, stems: list[Stem]) -> list[tuple[str, ...]]:
        """Return the groups of kernels that were screened, the best first."""
        groups = [g for g in self.space.groups() if any(s.recipe.kernel in g for s in stems)]
        return sorted(groups, key=lambda group: self._best(stems, group).loss)

    def _best(self, stems: list[Stem], group: tuple[str, ...]) -> Stem:
        return min((s for s in stems if s.recipe.kernel in group), key=_handicapped)

    # --- with all rows as centers --------------------------------------------------------------

    def _fits(self) -> Iterator[Trial]:
        walks, heads = self._walks()
        while self._goes_on():
            walk = self._next(walks, heads)
            if walk is None:
                return
            step = walk.waiting.pop(0)
            fit = self._fit(walk.stem, step.multiple, small=step.small)
            walk.add(step, fit, self.loss(fit))
            yield self._fitted(fit)

    def _walks(self) -> tuple[list[Walk], int]:
        """Return the stems worth a fit, and how many of them are the best of a distance."""
        least = min(_handicapped(s) for s in self.stems)
        heads = [self._best(self.stems, group) for group in self._in_order(self.stems)]
        heads = [s for s in heads if _handicapped(s) <= HOPELESS * least]
        found = list(heads)
        for s in sorted(self.stems, key=_handicapped):
            similar = any(
                s.recipe.kernel == r.recipe.kernel and s.recipe.power == r.recipe.power
                for r in found
            )
            if not similar and _handicapped(s) <= WORTH * least:
                found.append(s)
        return [Walk(stem, self.space) for stem in found], len(heads)

    def _next(self, walks: list[Walk], heads: int) -> Walk | None:
        """Return the walk to go on with: each distance once, the best to its end, the others."""
        for walk in walks[:heads]:
            if not walk.losses:
                return walk
        least = min(walk.least for walk in walks)
        going = [w for w in walks if w.losses and w.waiting and w.least <= FAR_OFF * least]
        if going:
            return min(going, key=lambda w: w.least)
        return next((w for w in walks if not w.losses), None)

    def _fit(self, stem: Stem, multiple: float, *, small: bool = False) -> FullFit:
        left = self.clock.left * (1.0 if self.fits else FIRST_SHARE)
        left = max(0.0, left - self._refit_seconds())
        fit = full_fit(
            self.material,
            stem,
            multiple,
            clock=self.clock,
            engine=self.engine,
            ends=time.monotonic() + left,
            most=self._most(),
            small=small,
        )
        self.fits.append(fit)
        return fit

    def _most(self) -> float:
        """Return the kernel evaluations that leave those of a last fit, if there are so many."""
        refit = of_refit(self.material)
        enough = self.clock.allows(0.0, of_fit(self.material) + refit)
        return self.clock.budget.evaluations - (refit if enough else 0.0)

    def loss(self, fit: FullFit) -> float:
        """Return what fits are compared by."""
        return fit.loss if self.score is None else self.score(fit.values)

    def _refit_seconds(self) -> float:
        return REFIT * max((fit.seconds for fit in self.fits), default=0.0)

    def _goes_on(self) -> bool:
        """Return whether there is time for another fit and for the last ones."""
        evaluations = of_fit(self.material) + of_refit(self.material)
        if not self.fits:
            return self.clock.allows(0.0, of_fit(self.material))
        many = len(self.material.X) > MANY_ROWS
        if len(self.fits) >= (self.space.fits // 2 if many else self.space.fits):
            return False
        seconds = max(fit.seconds for fit in self.fits)
        return self.clock.allows(seconds + 2 * self._refit_seconds(), evaluations)

    def _average(self) -> Iterator[Trial]:
        if not self.fits:
            return
        started = time.monotonic()
        best = min(range(len(self.fits)), key=lambda i: self.loss(self.fits[i]))
        self.weights = [float(i == best) for i in range(len(self.fits))]
        if not self.space.averages or len(self.fits) < 2:
            return
        loss = self.score or self._squared
        weights = averaged([fit.values for fit in self.fits], loss)
        members = [i for i, w in enumerate(weights) if w > 0]
        seconds = sum(REFIT * self.fits[i].seconds for i in members)
        evaluations = len(members) * of_refit(self.material)
        if len(members) < 2 or not self.clock.allows(seconds, evaluations):
            return
        self.weights = weights
        values = torch.stack([weights[i] * self.fits[i].values for i in members]).sum(dim=0)
        main = self.fits[max(members, key=lambda i: weights[i])]
        yield self._trial("average", main.recipe, main.penalty, loss(values), (), values, started)

    def _squared(self, values: Float[Tensor, "v t"]) -> float:
        return squared_loss(values, self.material.truth, self.material.held_weights)

    def members(self, *, refits: bool = True) -> list[Member]:
        """Return the functions of the result: the best or the average, fitted to all rows.

        Without `refits`, held-out rows are not among those that they are fitted to. Where time did
        not suffice for a fit better than those of samples, the best one of these.
        """
        least = self.least()
        if least.loss < SAMPLE_WINS * min((fit.loss for fit in self.fits), default=math.inf):
            return [self._or_constant(sampled_member(self.material, least), least.loss)]
        if not self.fits:  # no loss of a sample is finite
            return [constant(sampled_member(self.material, least))]
        best = min(self.fits, key=self.loss)
        if not self._predicts(best.values):
            return [constant(sampled_member(self.material, best.stem))]
        return [
            refit(
                self.material, fit, weight, clock=self.clock, engine=self.engine,
                ends=time.monotonic() + (self.clock.left if refits else 0.0),
                most=self.clock.budget.evaluations,
            )
            for fit, weight in zip(self.fits, self.shares(), strict=True)
            if weight > 0
        ]  # fmt: skip

    def shares(self) -> list[float]:
        """Return the weights of the fits; before there is an average, all of it is the best's."""
        if len(self.weights) == len(self.fits):
            return self.weights
        best = min(self.fits, key=self.loss)
        return [float(fit is best) for fit in self.fits]

    @property
    def begun(self) -> bool:
        """Whether there is a result, be it that of a single sample."""
        return bool(self.stems or self.screen)

    def least(self) -> Stem:
        """Return the best on a sample."""
        stems = self.stems or self.screen
        if not stems:
            raise ValueError("the search has no result before its first step")
        return min(stems, key=lambda s: s.loss)

    def loss_of(self, values: Float[Tensor, "v t"]) -> float:
        """Return what predictions of all held-out rows are compared by."""
        return (self.score or self._squared)(values)

    def expected(self) -> Float[Tensor, "v t"]:
        """Return predictions of all held-out rows by the result; those of the mean without fits."""
        if not self.fits:
            return torch.zeros_like(self.material.truth)
        pairs = zip(self.shares(), self.fits, strict=True)
        return torch.stack([w * fit.values.double() for w, fit in pairs if w > 0]).sum(dim=0)

    def _or_constant(self, member: Member, loss: float) -> Member:
        return member if loss < self._constant_loss() else constant(member)

    def _predicts(self, values: Float[Tensor, "v t"]) -> bool:
        """Return whether predictions are better than the mean, by more than their standard error.

        The best of hundreds is better by chance: on rows without any signal 10 of 12 searches had
        found something, and 4 of 12 with a gain above the standard error; with a signal of R2 =
        0.05 on 300 rows, or of 0.3 on 60, that took 1 of 12 for noise.
        """
        truth, weights = self.material.truth.double(), self.material.held_weights
        w = torch.ones(len(truth)) if weights is None else weights
        w = w.double() / w.double().sum()
        gains = (truth.square() - (values.double() - truth).square()).mean(dim=1)
        gain = float(w @ gains)
        error = float((w.square() @ (gains - gain).square()).sqrt())
        least = (1 - NOTHING_GAINED) * self._squared(torch.zeros_like(truth))
        return gain > max(least, error)

    def _constant_loss(self) -> float:
        """Return the loss of the mean of the targets, but for what is within rounding of it."""
        return NOTHING_GAINED * self._squared(torch.zeros_like(self.material.truth))

    def record(self, step: str, member: Member) -> Trial:
        """Return a member as a trial, of a last fit."""
        return self._trial(
            step, member.recipe, member.penalty, math.nan, (), None, time.monotonic()
        )

    # --- records -------------------------------------------------------------------------------

    def _sampled(self, step: str, stem: Stem, started: float) -> Trial:
        return self._trial(step, stem.recipe, stem.penalty, stem.loss, stem.losses, None, started)

    def _fitted(self, fit: FullFit) -> Trial:
        return self._trial(
            "fit", fit.recipe, fit.penalty, self.loss(fit), fit.losses, fit.values,
            time.monotonic() - fit.seconds,
        )  # fmt: skip

    def _trial(
        self,
        step: str,
        recipe: Recipe,
        penalty: float,
        loss: float,
        losses: tuple[tuple[float, float], ...],
        values: Tensor | None,
        started: float,
    ) -> Trial:
        now, clock = time.monotonic(), self.clock
        return Trial(
            step, recipe, penalty, loss, losses, values,
            now - started, now - clock.started, clock.meter.evaluations,
        )  # fmt: skip
