"""Mean and scatter of features, from blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float


@dataclass(frozen=True)
class Moments:
    r"""Count, mean, and scatter :math:`\sum_i (f_i - \mu)(f_i - \mu)^\top`, in float64.

    Attributes
    ----------
    count : int
    mean : Array of shape (s,)
    scatter : Array of shape (s, s)
    """

    count: int
    mean: Float[Array, " s"]
    scatter: Float[Array, "s s"]

    @classmethod
    def of(cls, blocks: Iterable[Float[Array, "_ s"]]) -> Moments:
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
        self.origin = self.total = self.scatter = xp.empty(0, xp.float32)

    def add(self, block: Float[Array, "b s"]) -> None:
        """Add the rows of a block."""
        values = xp.to_float64(block)
        if self.count == 0:
            self.origin = values.mean(axis=0)
            self.total = xp.zeros_like(self.origin)
            self.scatter = xp.zeros((len(self.origin), len(self.origin)), xp.float64)
        # Sums of squares far from the origin would cancel. Any near origin serves, and `finish`
        # corrects for it.
        values = values - self.origin
        self.count += len(values)
        self.total += values.sum(axis=0)
        xp.addmm_(self.scatter, values.T, values)

    def merge(self, other: RunningMoments) -> None:
        """Add the sums of other, nonempty moments, whose values are relative to their origin."""
        # With t the total of the other sums: sum (f + delta)(f + delta)' = scatter + delta t' + t
        # delta' + count delta delta'. The total changes last, as the terms need the old one.
        delta = other.origin - self.origin
        self.scatter += other.scatter
        self.scatter += delta[:, None] * other.total + other.total[:, None] * delta
        self.scatter += other.count * delta[:, None] * delta
        self.total += other.total + other.count * delta
        self.count += other.count

    def finish(self) -> Moments:
        """Return the moments of at least one row, and overwrite the sums."""
        shift = self.total / self.count
        # sum (f - shift)(f - shift)' = scatter - shift total'.
        scatter = self.scatter - shift[:, None] * self.total
        return Moments(self.count, self.origin + shift, scatter)
