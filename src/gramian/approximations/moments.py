"""Moments: mean and scatter of features from blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Moments:
    r"""Count, mean, and scatter :math:`\sum_i (f_i - \mu)(f_i - \mu)^\top`, in float64.

    Attributes
    ----------
    count : int
    mean : Tensor of shape (s,)
    scatter : Tensor of shape (s, s)
    """

    count: int
    mean: Float[Tensor, " s"]
    scatter: Float[Tensor, "s s"]

    @classmethod
    def of(cls, blocks: Iterable[Float[Tensor, "_ s"]]) -> Moments:
        """Return the moments of all rows of at least one block.

        Notes
        -----
        Cost: n s² operations, and 16 s² bytes besides the block. Values are taken relative to the
        mean of the first block, against cancellation.
        """
        running = RunningMoments()
        for block in blocks:
            running.add(block)
        return running.finish()


class RunningMoments:
    """Running sums for moments, of values relative to the mean of the first block."""

    def __init__(self) -> None:
        self.count = 0
        self.origin = self.total = self.scatter = torch.empty(0)

    def add(self, block: Float[Tensor, "b s"]) -> None:
        """Add the rows of a block."""
        values = block.double()
        if self.count == 0:
            self.origin = values.mean(dim=0)
            self.total = torch.zeros_like(self.origin)
            self.scatter = torch.zeros(len(self.origin), len(self.origin), dtype=torch.float64)
        # Sums of squares far from the origin would cancel. Any near origin serves, and `finish`
        # corrects for it.
        values = values - self.origin
        self.count += len(values)
        self.total += values.sum(dim=0)
        self.scatter.addmm_(values.t(), values)

    def merge(self, other: RunningMoments) -> None:
        """Add the sums of other, nonempty moments, whose values are relative to their origin."""
        # With t the total of the other sums: sum (f + delta)(f + delta)' = scatter + delta t' + t
        # delta' + count delta delta'. The total changes last, as the terms need the old one.
        delta = other.origin - self.origin
        self.scatter += other.scatter
        self.scatter.addr_(delta, other.total).addr_(other.total, delta)
        self.scatter.addr_(delta, delta, alpha=other.count)
        self.total += other.total + other.count * delta
        self.count += other.count

    def finish(self) -> Moments:
        """Return the moments of at least one row, and overwrite the sums."""
        shift = self.total / self.count
        # sum (f - shift)(f - shift)' = scatter - shift total'.
        scatter = self.scatter.addr_(shift, self.total, alpha=-1.0)
        return Moments(self.count, self.origin + shift, scatter)
