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
from .full_fit import SHIFTS, FullFit, full_fit
from .material import Material
from .recipe import Recipe, Trial
from .refit import Member, constant, refit, sampled_member
from .sampled import Effort, Stem, at_maps, learned, screened
from .space import Space

METRIC_SHARE = 0.3
"""Of what is left after the screen, metrics may take so much."""

METRIC_FITS = 10
"""Fits that learning the metrics takes, about."""

LEARNER = "matern32"

HOPELESS = 2.0
"""A distance whose best kernel has so many times the least error gets no fit with all rows."""

WORTH = 1.15
"""A further stem is fitted if its error on a sample is at most so many times the least."""

NOTHING_GAINED = 0.999
"""A result whose loss is a larger share of that of the mean is the mean."""

SAMPLE_WINS = 0.95
"""The fit to a sample is the result if its loss is a smaller share of that with all rows: these had
no time."""

REFIT = 0.8
"""Seconds of the last fit to all rows, in those of the fit that chose its penalty, about."""

FIRST_SHARE = 0.6
"""Of what is left, the first fit with all rows as centers may take so much."""

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
        for kernel in self.space.kernels:
            for inputs in self._inputs():
                if self.stems and not self.clock.allows(0.2 * self.clock.seconds):
                    return
                started = time.monotonic()
                recipe = Recipe(kernel, inputs, self.space.first(kernel))
                stem = screened(self.material, recipe, self.effort, self.engine, self.clock.meter)
                self.stems.append(stem)
                yield self._sampled("screen", stem, started)

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
        each = self.clock.seconds / (len(screen) * len(self.material.splits))
        self.effort = self.effort.within(seconds, each, METRIC_FITS * len(self.material.splits))
        for group in self._in_order(screen):
            stem = self._learner(screen, group)
            if self.space.machine is None or self.material.X.shape[1] == 1:
                yield self._again(stem)
                continue
            started = time.monotonic()
            found = learned(
                self.material,
                stem,
                self.effort,
                self.engine,
                self.clock.meter,
                goes_on=lambda: self.clock.seconds < ends,
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
        for kernel in group:
            if kernel == stem.recipe.kernel or not self.clock.allows(0.0):
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
        return min((s for s in stems if s.recipe.kernel in group), key=lambda s: s.loss)

    # --- with all rows as centers --------------------------------------------------------------

    def _fits(self) -> Iterator[Trial]:
        for stem in self._queue():
            yield from self._walk(stem)
            if not self._goes_on():
                return

    def _queue(self) -> list[Stem]:
        """Return the stems that are worth a fit: the best of each distance, then the others."""
        least = min(s.loss for s in self.stems)
        groups = self._in_order(self.stems)
        heads = [self._best(self.stems, g) for g in groups]
        heads = [s for s in heads if s.loss <= HOPELESS * least]
        seen = [(h.recipe.kernel, h.recipe.rounds, h.recipe.power) for h in heads]
        rest: list[Stem] = []
        for s in sorted(self.stems, key=lambda s: s.loss):
            key = (s.recipe.kernel, s.recipe.rounds, s.recipe.power)
            similar = any(
                s.recipe.kernel == r.recipe.kernel and s.recipe.power == r.recipe.power
                for r in (*heads, *rest)
            )
            if key not in seen and not similar and s.loss <= WORTH * least:
                rest.append(s)
        return [*heads, *rest]

    def _walk(self, stem: Stem) -> Iterator[Trial]:
        """Fit with the usual lengthscale, then with its neighbours as long as the error falls."""
        tried: dict[float, FullFit] = {}
        waiting = [self.space.first(stem.recipe.kernel)]
        while waiting and self._goes_on():
            multiple = waiting.pop(0)
            fit = self._fit(stem, multiple)
            yield self._fitted(fit)
            before = min((self.loss(f) for f in tried.values()), default=math.inf)
            tried[multiple] = fit
            if self.loss(fit) < before:
                waiting = self.space.beside(multiple, list(tried))
            if self._far_off(fit):
                return
        best = min(tried.values(), key=self.loss, default=None)
        iterated = best is not None and best.residual > 0
        if best is not None and iterated and best.shift == SHIFTS[-1] and self._goes_on(2.0):
            yield self._fitted(self._fit(stem, best.recipe.multiple, small=True))

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
            small=small,
        )
        self.fits.append(fit)
        return fit

    def _far_off(self, fit: FullFit) -> bool:
        return self.loss(fit) > 1.3 * min(self.loss(f) for f in self.fits)

    def loss(self, fit: FullFit) -> float:
        """Return what fits are compared by."""
        return fit.loss if self.score is None else self.score(fit.values)

    def _refit_seconds(self) -> float:
        return REFIT * max((fit.seconds for fit in self.fits), default=0.0)

    def _goes_on(self, times: float = 1.0) -> bool:
        """Return whether there is time for another fit and for the last ones."""
        if not self.fits:
            return True
        if len(self.fits) >= self.space.fits:
            return False
        seconds = max(fit.seconds for fit in self.fits)
        evaluations = 20.0 * len(self.material.X) ** 2
        return self.clock.allows(times * seconds + 2 * self._refit_seconds(), evaluations)

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
        if len(members) < 2 or not self.clock.allows(seconds):
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
        if best.loss >= self._constant_loss():
            return [constant(sampled_member(self.material, best.stem))]
        weights = self.weights
        if len(weights) != len(self.fits):
            weights = [float(fit is best) for fit in self.fits]
        return [
            refit(
                self.material, fit, weight, clock=self.clock, engine=self.engine,
                ends=time.monotonic() + (self.clock.left if refits else 0.0),
            )
            for fit, weight in zip(self.fits, weights, strict=True)
            if weight > 0
        ]  # fmt: skip

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
        weights = self.weights
        if len(weights) != len(self.fits):
            best = min(self.fits, key=self.loss)
            weights = [float(fit is best) for fit in self.fits]
        pairs = zip(weights, self.fits, strict=True)
        return torch.stack([w * fit.values.double() for w, fit in pairs if w > 0]).sum(dim=0)

    def _or_constant(self, member: Member, loss: float) -> Member:
        return member if loss < self._constant_loss() else constant(member)

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
