"""Metric: an algorithm that learns a linear map of the features; and what it has learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .._registry import Registry
from ..data import LinearMap, RowSource
from ..kernels import Kernel
from ..operators import Engine
from ..paths.sample import Sample
from .sampling import drawn_sample


@dataclass(frozen=True)
class Round:
    """A round of learning, and how good its predictor was.

    Attributes
    ----------
    round : int
        0 is the metric of before: that of the features as they are.
    error : float
        On rows that were held out: the smaller the better.
    penalty : float
        The ridge per sample of that predictor.
    lengthscale : float or tuple of float, or None
        Of the kernel in the metric of this round; None if it has not a single one.
    """

    round: int
    error: float
    penalty: float
    lengthscale: Any = None  # a float or one per feature


@dataclass(frozen=True, eq=False)
class LearnedMetric:
    """A map and importances that were learned from rows and targets.

    Attributes
    ----------
    map : LinearMap
        Of d features to those that the kernel sees.
    importances : Tensor of shape (d,)
        Shares of the features in the diagonal of `matrix`: not negative, of sum 1.
    matrix : Tensor of shape (d, d) or (d,)
        The M that distances are measured by, or its diagonal; the map may be another power of it
        than the square root.
    rounds : tuple of Round

    Raises
    ------
    ValueError
        If they do not fit together, or importances are no shares.
    """

    map: LinearMap
    importances: Float[Tensor, " d"]
    matrix: Tensor
    rounds: tuple[Round, ...] = ()

    def __post_init__(self) -> None:
        d = self.map.inputs
        if self.importances.shape != (d,) or self.matrix.shape not in ((d,), (d, d)):
            raise ValueError(
                f"a metric of {d} features has importances of shape {tuple(self.importances.shape)}"
                f" and a matrix of shape {tuple(self.matrix.shape)}"
            )
        check_shares(self.importances)


def check_shares(importances: Tensor) -> None:
    """Refuse importances that are not finite, negative, or not of sum 1."""
    total = float(importances.double().sum())
    if not bool((importances >= 0).all()) or not abs(total - 1) < 1e-6:
        raise ValueError(f"importances must be shares of sum 1, and they have the sum {total:g}")


class Metric(ABC):
    """An algorithm that learns a metric. Fields are its hyperparameters; it holds no state."""

    @abstractmethod
    def learn(
        self,
        kernel: Kernel,
        rows: RowSource,
        targets: Float[Tensor, "n t"],
        weights: Float[Tensor, " n"] | None = None,
        *,
        rng: torch.Generator,
        engine: str | Engine = "auto",
        coded: bool = False,
        memory_bytes: int = 1 << 30,
    ) -> LearnedMetric:
        """Learn a map of the features from rows and targets.

        Parameters
        ----------
        kernel : Kernel
            Whose lengthscale may be "median": that of the distances in the metric of each round.
        rows : RowSource of shape (n, d)
            As the kernel would see them; of many, a sample is looked at.
        targets : Tensor of shape (n, t)
            Centred and scaled numbers, or codes of classes.
        weights : Tensor of shape (n,), optional
            Weights of the rows, above zero.
        rng : torch.Generator
            Draws samples and landmarks.
        engine : str or Engine, default="auto"
        coded : bool, default=False
            Whether targets are codes of classes.
        memory_bytes : int, default=2**30
            For matrices and blocks.

        Returns
        -------
        LearnedMetric

        Raises
        ------
        ValueError
            If nothing can be learned from such rows, or with such a kernel.
        """


class SampledMetric(Metric):
    """A metric that is learned from random rows, and chosen by others.

    Attributes
    ----------
    rows : int
        Rows to learn from, at most. A fifth of all that are taken, at most 2,000, are held out.
    """

    rows: int

    def learn(
        self,
        kernel: Kernel,
        rows: RowSource,
        targets: Float[Tensor, "n t"],
        weights: Float[Tensor, " n"] | None = None,
        *,
        rng: torch.Generator,
        engine: str | Engine = "auto",
        coded: bool = False,
        memory_bytes: int = 1 << 30,
    ) -> LearnedMetric:
        most = self.rows + self.rows // 4
        sample = drawn_sample(rows, targets, weights, most, rng=rng, coded=coded)
        return self.learn_sample(kernel, sample, rng=rng, engine=engine)

    @abstractmethod
    def learn_sample(
        self,
        kernel: Kernel,
        sample: Sample,
        *,
        rng: torch.Generator,
        engine: str | Engine = "auto",
    ) -> LearnedMetric:
        """Learn a map of the features; see `learn`, which draws the sample."""


metrics: Registry[Metric] = Registry("metric", {"rfm": "learned", "xrfm": "learned"})
"""Names of metrics that are learned."""
