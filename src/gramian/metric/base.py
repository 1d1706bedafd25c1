"""Base classes of metrics, which learn a linear map of the features, and their samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._registries.registry import Registry
from ..data import LinearMap, RowSource
from ..kernels import Kernel
from ..operators import Engine
from ..paths.sample import Sample

MOST_HELD = 2000
"""Most held-out rows: errors are then accurate to a few percent."""

HELD_SHARE = 5
"""One row in this many is held out."""


def draw_sample(
    rows: RowSource,
    targets: Float[Array, "n t"],
    weights: Float[Array, " n"] | None,
    most: int,
    *,
    rng: RandomStream,
    coded: bool = False,
) -> Sample:
    """Draw up to `most` random rows, a fifth of them held out, at most 2,000.

    - `coded`: whether targets are codes of classes: each class then has its share of the held-out
      rows.
    """
    index = rng.sample(len(rows), most)
    held_index, learn = split_held_out(targets[index], coded)
    # Files are read in increasing order; afterwards the rows return to their random order.
    ordered, order = xp.sort_with_order(index)
    X = rows.take(ordered)
    X = xp.to_dense(X) if rows.sparse else X
    X = X[order.argsort(stable=True)]
    Y, w = targets[index], None if weights is None else weights[index]
    return Sample(
        X[learn], Y[learn], X[held_index], Y[held_index],
        None if w is None else w[learn], None if w is None else w[held_index],
    )  # fmt: skip


def split_held_out(targets: Float[Array, "n t"], coded: bool) -> tuple[Array, Array]:
    """Split rows in random order into positions of held-out rows and of other rows."""
    n = len(targets)
    count = min(MOST_HELD, n // HELD_SHARE)
    # Every `step`-th row of those sorted by class: each class has its share of held-out rows.
    # Within a class the order stays random, as the sort is stable.
    place = xp.arange(n)
    if coded:
        label = (
            xp.cast(targets[:, 0] > 0, xp.int64)
            if targets.shape[1] == 1
            else targets.argmax(axis=1)
        )
        place = label.argsort(stable=True)
    step = max(1, n // max(count, 1))
    is_held_out = xp.zeros(n, xp.bool)
    is_held_out[place[xp.arange(count) * step]] = True
    return xp.flatnonzero(is_held_out), xp.flatnonzero(~is_held_out)


@dataclass(frozen=True)
class Round:
    """Round of learning a metric, with the error of the predictor that uses it.

    Attributes
    ----------
    round : int
        Number of the round; 0 has no metric.
    error : float
        Error on held-out rows; smaller is better.
    penalty : float
        Penalty of the predictor.
    lengthscale : float or tuple of float, or None
        Lengthscale of the kernel in the metric of this round; None if the kernel has none.
    """

    round: int
    error: float
    penalty: float
    lengthscale: Any = None  # a float or one per feature


@dataclass(frozen=True, eq=False)
class LearnedMetric:
    """Map and feature importances learned from rows and targets.

    Attributes
    ----------
    map : LinearMap
        Map from d features to the features of the kernel.
    importances : Array of shape (d,)
        Shares of the features in the diagonal of `matrix`: nonnegative, with sum 1.
    matrix : Array of shape (d, d) or (d,)
        The matrix M of squared distances, or its diagonal; the map may be another power of M than
        the square root.
    rounds : tuple of Round

    Raises
    ------
    ValueError
        If shapes disagree, or importances are not shares.
    """

    map: LinearMap
    importances: Float[Array, " d"]
    matrix: Array
    rounds: tuple[Round, ...] = ()

    def __post_init__(self) -> None:
        d = self.map.inputs
        if self.importances.shape != (d,) or self.matrix.shape not in ((d,), (d, d)):
            raise ValueError(
                f"a metric of {d} features must have importances of shape ({d},) and a matrix of "
                f"shape ({d},) or ({d}, {d}), not {tuple(self.importances.shape)} and "
                f"{tuple(self.matrix.shape)}"
            )
        check_shares(self.importances)


def check_shares(importances: Array) -> None:
    """Raise ValueError for importances that are not finite, negative, or not of sum 1."""
    total = float(xp.to_float64(importances).sum())
    if not bool((importances >= 0).all()) or not abs(total - 1) < 1e-6:
        raise ValueError(f"importances must be at least 0 and have the sum 1, not {total:g}")


class Metric(ABC):
    """An algorithm that learns a metric.

    The fields of a metric are hyperparameters, not state.
    """

    @abstractmethod
    def learn(
        self,
        kernel: Kernel,
        rows: RowSource,
        targets: Float[Array, "n t"],
        weights: Float[Array, " n"] | None = None,
        *,
        rng: RandomStream,
        engine: str | Engine = "auto",
        coded: bool = False,
        memory_bytes: int = 1 << 30,
    ) -> LearnedMetric:
        """Learn a map of the features from rows and targets.

        Parameters
        ----------
        kernel : Kernel
            A kernel, whose lengthscale may be "median": the median distance in the metric of each
            round.
        rows : RowSource of shape (n, d)
            Rows with all maps that precede the metric; a sample is used if there are many.
        targets : Array of shape (n, t)
            Centred and scaled numbers, or codes of classes.
        weights : Array of shape (n,), optional
            Positive weights of the rows.
        rng : RandomStream
            Draws samples and landmarks.
        engine : str or Engine, default="auto"
        coded : bool, default=False
            Whether targets are codes of classes.
        memory_bytes : int, default=2**30
            Memory for matrices and blocks.

        Returns
        -------
        LearnedMetric

        Raises
        ------
        ValueError
            If the rows or the kernel do not allow learning.
        """


class SampledMetric(Metric):
    """Base of metrics that learn from random rows, and are selected on held-out rows.

    Attributes
    ----------
    rows : int
        Largest number of rows to learn from. A fifth of all sampled rows, at most 2,000, is held
        out.
    """

    rows: int

    def learn(
        self,
        kernel: Kernel,
        rows: RowSource,
        targets: Float[Array, "n t"],
        weights: Float[Array, " n"] | None = None,
        *,
        rng: RandomStream,
        engine: str | Engine = "auto",
        coded: bool = False,
        memory_bytes: int = 1 << 30,
    ) -> LearnedMetric:
        # A fifth of the sample is held out, which leaves `rows` rows to learn from.
        sample_rows = self.rows + self.rows // 4
        sample = draw_sample(rows, targets, weights, sample_rows, rng=rng, coded=coded)
        return self.learn_sample(kernel, sample, rng=rng, engine=engine)

    @abstractmethod
    def learn_sample(
        self,
        kernel: Kernel,
        sample: Sample,
        *,
        rng: RandomStream,
        engine: str | Engine = "auto",
    ) -> LearnedMetric:
        """Learn a map of the features from a sample that `learn` has drawn."""


metrics: Registry[Metric] = Registry("metric", {"rfm": "learned", "xrfm": "learned"})
"""Registry of learned metrics."""
