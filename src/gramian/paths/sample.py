"""Sample: rows to fit and rows that are held out, in memory; fit_sample: the best penalty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from .._sparse import slice_rows
from ..data import LinearMap, as_rows
from ..engines import Engine
from ..kernels import Kernel
from ..operators import CostMeter, KernelOperator
from ..problems import FullProblem, LinearProblem, NystromProblem
from .direct import direct_path
from .nystrom import nystrom_path

PENALTIES = tuple(10.0**-e for e in range(0, 10))
"""Penalties of a path that is not told others, decreasing."""

MEDIAN_ROWS = 1000
"""Rows from which the median distance is computed."""

WORSE = 1.5
"""A path ends where the error is so many times the least: smaller penalties only fit the noise."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from, in random order, and others to choose with.

    Attributes
    ----------
    X : Tensor of shape (n, d)
    Y : Tensor of shape (n, t)
        Targets, or codes of classes, centered about zero.
    held_X, held_Y : Tensor of shape (v, d), (v, t)
    weights, held_weights : Tensor of shape (n,), (v,), or None
        Positive; ones if None.
    """

    X: Float[Tensor, "n d"]
    Y: Float[Tensor, "n t"]
    held_X: Float[Tensor, "v d"]
    held_Y: Float[Tensor, "v t"]
    weights: Float[Tensor, " n"] | None = None
    held_weights: Float[Tensor, " v"] | None = None

    def mapped(self, map_: LinearMap | None) -> Sample:
        """Return the sample with its rows mapped."""
        if map_ is None:
            return self
        return replace(self, X=map_.forth(self.X), held_X=map_.forth(self.held_X))

    def first(self, n: int) -> Sample:
        """Return the sample with its first n rows to learn from."""
        weights = None if self.weights is None else self.weights[:n]
        return replace(self, X=slice_rows(self.X, 0, n), Y=self.Y[:n], weights=weights)

    def loss(self, predicted: Float[Tensor, "v t"]) -> float:
        """Return the mean squared error on the held-out rows; infinity if it is not a number."""
        return squared_loss(predicted, self.held_Y, self.held_weights)


def squared_loss(
    predicted: Float[Tensor, "v t"],
    truth: Float[Tensor, "v t"],
    weights: Float[Tensor, " v"] | None = None,
) -> float:
    """Return the weighted mean of squared errors; infinity if that is not a number."""
    errors = (predicted.double() - truth.double()).square().mean(dim=1)
    if weights is None:
        value = float(errors.mean())
    else:
        value = float((errors * weights.double()).sum() / weights.double().sum())
    return value if math.isfinite(value) else math.inf


@dataclass(frozen=True, eq=False)
class SampleFit:
    """The best penalty of one kernel on a sample.

    Attributes
    ----------
    loss : float
        Mean squared error on the held-out rows.
    penalty : float
    kernel : Kernel
        With its lengthscale.
    centers : Tensor of shape (m, d)
    coef : Tensor of shape (m, t)
        In float64.
    losses : tuple of (penalty, loss)
        The whole path.
    total : float
        The sum of the weights: times the penalty, what is added to the diagonal of K.
    values : Tensor of shape (v, t)
        Predictions of the held-out rows, in float64.
    """

    loss: float
    penalty: float
    kernel: Kernel
    centers: Float[Tensor, "m d"]
    coef: Float[Tensor, "m t"]
    losses: tuple[tuple[float, float], ...]
    total: float
    values: Float[Tensor, "v t"]


def fit_sample(
    sample: Sample,
    kernel: Kernel,
    *,
    landmarks: int,
    penalties: Sequence[float] = PENALTIES,
    engine: str | Engine = "auto",
    meter: CostMeter | None = None,
) -> SampleFit:
    """Fit a kernel with one penalty after the other, and return the best on the held-out rows.

    Parameters
    ----------
    sample : Sample
    kernel : Kernel
        A lengthscale that is a multiple of the median is resolved in the rows of the sample.
    landmarks : int
        Centers: the first rows of the sample; with all of them, the full problem is solved.
    penalties : sequence of float
        Decreasing.
    engine : str or Engine, default="auto"
    meter : CostMeter, optional

    Notes
    -----
    Cost: that of `nystrom_path` or `direct_path`, and v m kernel evaluations.
    """
    kernel = kernel.resolve(sample.first(MEDIAN_ROWS).X)
    m = min(landmarks, len(sample.X))
    K = KernelOperator(kernel, sample.X, sample.X, engine, meter=meter)
    centers = sample.first(m).X
    problem = _problem(K, sample, centers)
    path = _path(problem, penalties)
    held = replace(K, rows=as_rows(sample.held_X), cols=as_rows(centers)).dense().double()
    best, losses, least = None, [], math.inf
    for penalty, coef in path:
        values = held @ coef
        loss = sample.loss(values)
        losses.append((penalty, loss))
        if best is None or loss < least:
            best, least = (penalty, coef, values), loss
        elif loss > WORSE * least:
            break
    if best is None:
        raise FloatingPointError(f"{kernel!r} has no penalty at which its matrix is definite")
    penalty, coef, values = best
    return SampleFit(least, penalty, kernel, centers, coef, tuple(losses), problem.total, values)


def _problem(K: KernelOperator, sample: Sample, centers: Tensor) -> LinearProblem:
    if len(centers) == len(sample.X):
        return FullProblem(K, sample.Y, 0.0, sample.weights)
    return NystromProblem(K.against(centers), sample.Y, 0.0, sample.weights)


def _path(problem: LinearProblem, penalties: Sequence[float]) -> Iterator[tuple[float, Tensor]]:
    if isinstance(problem, FullProblem):
        return direct_path(problem, penalties)
    return nystrom_path(problem, penalties)
