"""Stages: the problems of decreasing penalty, and of sharper kinks, that lead to the one asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ..._sparse import dense
from ...problems import LossProblem

FIRST = 0.1
"""The first penalty, in units of the mean curvature times the mean of the kernel's diagonal."""

WIDEST = 1.0
"""Width of a kink while the penalty falls, in units of the target: most rows are within it."""

SHARPER = 3.0
"""By which a width is divided from stage to stage."""

SHARPEST = 1e-5
"""Width of a kink in the last stage, in units of the target, if it is to be exact."""

SAMPLE = 1000
"""Centers by which the mean of the diagonal is measured."""


@dataclass(frozen=True)
class Stages:
    """The penalties mu of the stages, and the widths of kinks, both decreasing.

    Attributes
    ----------
    problem : LossProblem
    penalties : tuple of float
        The last one is that of the problem.
    widths : tuple of float
        0 where there is no kink.
    """

    problem: LossProblem
    penalties: tuple[float, ...]
    widths: tuple[float, ...]

    @classmethod
    def of(cls, problem: LossProblem, decrease: float) -> Stages:
        """Return the stages, each with the penalty of the last one times `decrease`."""
        points = problem.K.cols.take(torch.arange(min(SAMPLE, problem.K.shape[1])))
        points = dense(points)
        scale = float(problem.K.kernel.diag(points).double().mean())
        mu, last = FIRST * _curvature(problem) * scale, problem.penalty
        penalties = []
        while mu > last:
            penalties.append(mu)
            mu *= decrease
        penalties.append(last)
        if problem.loss.kink is None:
            return cls(problem, tuple(penalties), (0.0,) * len(penalties))
        asked = problem.loss.kink or SHARPEST
        widths = [max(WIDEST, asked)] * len(penalties)
        while widths[-1] > asked:
            widths.append(max(widths[-1] / SHARPER, asked))
        penalties += [last] * (len(widths) - len(penalties))
        return cls(problem, tuple(penalties), tuple(widths))

    def __len__(self) -> int:
        return len(self.penalties)

    def double(self) -> Stages:
        """Return the stages with kernel entries computed in float64."""
        return replace(self, problem=self.problem.double())

    def at(self, stage: int) -> LossProblem:
        """Return the problem of a stage."""
        width, mu = self.widths[stage], self.penalties[stage]
        loss = self.problem.loss if width == 0 else self.problem.loss.smoothed(width)
        return replace(self.problem, penalty=mu, loss=loss)


def _curvature(problem: LossProblem) -> float:
    """Return the mean curvature of the loss at the constant; 1 where it has none."""
    y = problem.targets.double()
    loss = problem.loss if problem.loss.kink is None else problem.loss.smoothed(WIDEST)
    return float(loss.curvatures(problem.offset.expand(len(y), -1), y).mean()) or 1.0
