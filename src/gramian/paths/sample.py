"""Fit of a kernel to a sample of rows, at the best penalty for held-out rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import slice_rows
from ..data import LinearMap, as_rows
from ..engines import Engine
from ..kernels import Kernel
from ..operators import CostMeter, KernelOperator
from ..problems import FullProblem, LinearProblem, NystromProblem
from .closed_form import direct_path, direct_work, nystrom_path, nystrom_work
from .work import Work

PATH_PENALTIES = tuple(10.0**-e for e in range(0, 10))
"""Default penalties of a path, decreasing."""

MEDIAN_ROWS = 1000
"""Rows that determine the median distance."""

LARGEST_LOSS_RATIO = 1.5
"""Error, relative to the least, that ends a path: smaller penalties only fit the noise."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows, in random order, and held-out rows, both in memory.

    - `Y`: targets, or codes of classes, centered about zero.
    - `weights`, `held_weights`: positive; ones if None.
    """

    X: Float[Array, "n d"]
    Y: Float[Array, "n t"]
    held_X: Float[Array, "v d"]
    held_Y: Float[Array, "v t"]
    weights: Float[Array, " n"] | None = None
    held_weights: Float[Array, " v"] | None = None

    def with_map(self, map_: LinearMap | None) -> Sample:
        """Return the sample with its rows mapped."""
        if map_ is None:
            return self
        return replace(self, X=map_.forth(self.X), held_X=map_.forth(self.held_X))

    def first(self, n: int) -> Sample:
        """Return the sample with only its first n rows to learn from."""
        weights = None if self.weights is None else self.weights[:n]
        return replace(self, X=slice_rows(self.X, 0, n), Y=self.Y[:n], weights=weights)

    def loss(self, predicted: Float[Array, "v t"]) -> float:
        """Return the mean squared error on the held-out rows; infinity if it is not finite."""
        return squared_loss(predicted, self.held_Y, self.held_weights)


def squared_loss(
    predicted: Float[Array, "v t"],
    truth: Float[Array, "v t"],
    weights: Float[Array, " v"] | None = None,
) -> float:
    """Return the weighted mean squared error; infinity if it is not finite."""
    errors = xp.square(xp.to_float64(predicted) - xp.to_float64(truth)).mean(axis=1)
    if weights is None:
        value = float(errors.mean())
    else:
        value = float((errors * xp.to_float64(weights)).sum() / xp.to_float64(weights).sum())
    return value if math.isfinite(value) else math.inf


@dataclass(frozen=True, eq=False)
class SampleFit:
    """Fit of a kernel to a sample at the best of several penalties.

    - `loss`: mean squared error on the held-out rows.
    - `kernel`: kernel with a numeric lengthscale.
    - `coef`: coefficients in float64.
    - `losses`: all penalties that were tried, with their losses.
    - `total`: sum N of the weights; N times the penalty is added to the diagonal of K.
    - `values`: predictions of the held-out rows, in float64.
    """

    loss: float
    penalty: float
    kernel: Kernel
    centers: Float[Array, "m d"]
    coef: Float[Array, "m t"]
    losses: tuple[tuple[float, float], ...]
    total: float
    values: Float[Array, "v t"]


def fit_sample(
    sample: Sample,
    kernel: Kernel,
    *,
    landmarks: int,
    penalties: Sequence[float] = PATH_PENALTIES,
    engine: str | Engine = "auto",
    meter: CostMeter | None = None,
) -> SampleFit:
    """Fit a kernel at one penalty after the other; return the best fit on the held-out rows.

    - `kernel`: if its lengthscale is a multiple of the median, the sample resolves it.
    - `landmarks`: number of centers, the first rows of the sample. If it is all rows, the full
      problem is solved.
    - `penalties`: decreasing penalties.

    Notes
    -----
    Cost: as for `nystrom_path` or `direct_path`, plus v m kernel evaluations.
    """
    # The median needs all pairs of its rows, so that a thousand must do.
    kernel = kernel.resolve(sample.first(MEDIAN_ROWS).X)
    # The rows are in random order: the first ones are random landmarks.
    m = min(landmarks, len(sample.X))
    K = KernelOperator(kernel, sample.X, sample.X, engine, meter=meter)
    centers = sample.first(m).X
    problem = _problem(K, sample, centers)
    path = _path(problem, penalties)
    # The entries serve all penalties of the path.
    K_held = xp.to_float64(replace(K, rows=as_rows(sample.held_X), cols=as_rows(centers)).dense())
    best, losses, least_loss = None, [], math.inf
    for penalty, coef in path:
        values = K_held @ coef
        loss = sample.loss(values)
        losses.append((penalty, loss))
        if best is None or loss < least_loss:
            best, least_loss = (penalty, coef, values), loss
        # The path ends only well above the minimum, because losses are not unimodal.
        elif loss > LARGEST_LOSS_RATIO * least_loss:
            break
    if best is None:
        raise FloatingPointError(
            f"the matrix of {kernel!r} is not positive definite at any penalty"
        )
    penalty, coef, values = best
    total = problem.total
    return SampleFit(least_loss, penalty, kernel, centers, coef, tuple(losses), total, values)


def sample_work(n: int, v: int, landmarks: int, penalties: int) -> Work:
    """Return the work of `fit_sample` with n training rows and v held-out rows."""
    m = min(landmarks, n)
    path = direct_work(n, penalties) if m == n else nystrom_work(n, m, penalties)
    held_entries = float(v) * m
    return path + Work(
        evaluations=held_entries,
        moved_bytes=(24 + 8 * penalties) * held_entries,
        peak_bytes=path.peak_bytes + 12 * held_entries,
    )


def _problem(K: KernelOperator, sample: Sample, centers: Array) -> LinearProblem:
    if len(centers) == len(sample.X):
        return FullProblem(K, sample.Y, 0.0, sample.weights)
    return NystromProblem(K.against(centers), sample.Y, 0.0, sample.weights)


def _path(problem: LinearProblem, penalties: Sequence[float]) -> Iterator[tuple[float, Array]]:
    if isinstance(problem, FullProblem):
        return direct_path(problem, penalties)
    return nystrom_path(problem, penalties)
