"""Next state of ASkotch, from the residual, the convexity and the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..loop.state import PASSES_KEY, PREDICTION_ERROR, RESIDUAL_KEY, State, starting_coef
from .block_rules import BlockRule
from .blocks import Block
from .state import SINGULAR_BLOCKS, ASkotchState, next_estimate

RESIDUAL_GROWTH = 4.0
"""Growth of the residual over its minimum from which the objective is compared."""

LOST_RESIDUAL = 1e4
"""Relative residual of a block from which the run restarts without comparing objectives."""

LEAST_WINDOW = 20
"""Least number of blocks in the average of the residual."""


@dataclass(frozen=True)
class Progress:
    """Builder of the states before the first block and after each step."""

    rule: BlockRule

    def start(self, state: State | None) -> ASkotchState:
        """Return the state before the first step. Cost: n² kernel evaluations if `state` is set."""
        problem = self.rule.blocks.problem
        w = starting_coef(state, xp.to_float64(problem.rhs))
        # A start from zero has the right-hand side as its residual, without a pass.
        residual = problem.rhs if state is None else problem.rhs - problem.apply(w)
        metrics: dict[str, int | float] = {
            RESIDUAL_KEY: self.relative(xp.square(xp.to_float64(residual)).mean(axis=0)),
            PREDICTION_ERROR: problem.error_bound(residual),
        }
        return ASkotchState(
            iteration=0 if state is None else state.iteration,
            coef=w,
            metrics=metrics,
            ahead=w,
            momentum=w,
            recent=xp.empty((0, w.shape[1]), like=w),
            # A start that is worse than zero is no place to restart from.
            best=w if metrics[RESIDUAL_KEY] <= 1 else xp.zeros_like(w),
            first=0 if state is None else state.iteration,
            squares=xp.empty(0, like=w),
            seed=self.rule.seed,
            smoothness=self.rule.smoothness(),
        )

    def weigh_squares(self, g: Float[Array, "b t"], B: Block) -> Float[Array, " t"]:
        """Return the weighted mean squared block residual without heavy rows."""
        blocks = self.rule.blocks
        if blocks.problem.weights is None:
            return xp.square(g).mean(axis=0)
        weights = xp.copy(xp.to_float64(blocks.problem.weights))
        # Heavy rows have an exact residual of their own, see `error`.
        weights[blocks.heavy] = 0
        share = blocks.n / blocks.problem.total * weights[B.index]
        return (share[:, None] * xp.square(g)).mean(axis=0)

    def error(self, weighted: Float[Array, "k t"], x: Float[Array, "n t"]) -> float:
        """Estimate `FullProblem.error_bound` from blocks, and from the residual of heavy rows.

        Cost: n kernel evaluations for each heavy row.
        """
        blocks = self.rule.blocks
        square, problem = weighted.mean(axis=0), blocks.problem
        if len(blocks.heavy):
            assert problem.weights is not None
            share = xp.to_float64(problem.weights[blocks.heavy]) / problem.total
            square = square + share @ xp.square(blocks.gradient(blocks.heavy, x))
        return problem.relative_error(xp.sqrt(square))

    def relative(self, mean_square: Float[Array, " t"]) -> float:
        """Return the root mean square relative to the right-hand side, the largest over targets."""
        size = self._size()
        return float(xp.sqrt(mean_square / xp.where(size > 0, size, 1.0)).max())

    def _size(self) -> Float[Array, " t"]:
        """Return the mean square of each target."""
        return xp.square(xp.to_float64(self.rule.blocks.problem.rhs)).mean(axis=0)

    def passes(self, iteration: int) -> float:
        """Return the passes over all pairs after an iteration."""
        return iteration * self.rule.blocks.b / self.rule.blocks.n

    def window(self) -> int:
        """Return the number of blocks in the average residual: a pass, at least `LEAST_WINDOW`."""
        return max(math.ceil(self.rule.blocks.n / self.rule.blocks.b), LEAST_WINDOW)

    def convexity(self, s: ASkotchState, g: Array, mu: float) -> tuple[float, Array]:
        """Return the next estimate of the convexity; see `next_estimate`."""
        # A target of zeros has no scale, so its residual is not divided.
        size = self._size()
        square = (xp.square(g).mean(axis=0) / xp.where(size > 0, size, 1.0)).mean()
        squares = xp.concat([s.squares, square[None]])
        scale = s.excess(mu) * self.rule.scale(s.smoothness)
        passes = self.passes(s.iteration + 1 - s.first)
        estimate, recent = next_estimate(mu, squares, passes, 1 / self.passes(1), scale)
        # `next_estimate` returns the same tensor if no new rate is due, and the estimate then
        # stays.
        return (s.convexity if recent is squares else estimate), recent

    def after(
        self,
        s: ASkotchState,
        g: Float[Array, "b t"],
        B: Block,
        mu: float,
    ) -> ASkotchState:
        """Complete the state that has moved by a step, whose block had the residual g.

        If residual and objective have grown, it is the state of the restart. The residual alone may
        grow while the error falls; the objective measures the error. It costs two passes, whenever
        the residual has grown fourfold.
        """
        convexity, squares = self.convexity(s, g, mu)
        s = self._next(s, g, B).count_singular(B)
        s = replace(s, convexity=convexity, squares=squares)
        # A residual this large needs no comparison of objectives, which costs two passes.
        if not self.relative(s.recent[-1]) <= LOST_RESIDUAL:
            return s.restart(self.relative(s.recent[-1]))
        mean = float(s.recent.mean())
        # The comparison costs two passes, so the mean must cover a window and have grown far
        # enough.
        if len(s.recent) < self.window() or mean <= RESIDUAL_GROWTH**2 * s.least:
            return s
        # A larger residual may still be progress, because the residual weighs directions of small
        # eigenvalues as much as all others: the objective decides.
        if self.objective(s.coef) <= self.objective(s.best):
            return replace(s, best=s.coef, least=mean)
        return s.restart(self.relative(s.recent.mean(axis=0)))

    def _next(self, s: ASkotchState, g: Array, B: Block) -> ASkotchState:
        recent = xp.concat([s.recent, xp.square(g).mean(axis=0)[None]])[-self.window() :]
        # Files of older versions have no weighted residuals.
        before = s.weighted if s.weighted.shape == s.recent.shape else s.recent
        weighted = xp.concat([before, self.weigh_squares(g, B)[None]])[-self.window() :]
        mean = float(recent.mean())
        # The mean of a few blocks may be small by chance.
        better = len(recent) == self.window() and mean < s.least
        return replace(
            s,
            iteration=s.iteration + 1,
            metrics={
                RESIDUAL_KEY: self.relative(recent.mean(axis=0)),
                PREDICTION_ERROR: self.error(weighted, s.coef),
                PASSES_KEY: self.passes(s.iteration + 1),
                "restarts": s.restarts,
                SINGULAR_BLOCKS: s.metrics.get(SINGULAR_BLOCKS, 0),
            },
            recent=recent,
            weighted=weighted,
            best=s.coef if better else s.best,
            least=mean if better else s.least,
        )

    def objective(self, w: Float[Array, "n t"]) -> float:
        """Return w' (K + D) w / 2 - w' y, each target relative to its squared norm."""
        # Two objectives differ by less than float32 resolves near the solution.
        problem = self.rule.blocks.problem.double()
        y = problem.rhs
        size = xp.square(y).sum(axis=0)
        values = (w * (problem.apply(w) / 2 - y)).sum(axis=0)
        return float((values / xp.where(size > 0, size, 1.0)).sum())
