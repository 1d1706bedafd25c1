"""Base of maps from rows to features that approximate a kernel, and moments of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float
from ..data import RowSource
from ..kernels import Kernel


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


DEFAULT_BLOCK_BYTES = 1 << 28
"""Default memory for blocks."""


NEGATIVE_SHARE = 1e-4
"""Least relative negative eigenvalue that is more than rounding of float32 entries."""


class FeatureMap(ABC):
    """Map from a row to s numbers f(x), with f(x)'f(z) ≈ k(x, z).

    Attributes
    ----------
    kernel : Kernel
        The kernel to approximate.
    projects : bool
        Whether the features are a projection, so that K - F F' is positive semidefinite.
    """

    kernel: Kernel
    projects: ClassVar[bool] = False

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features s."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number d of features in a row."""

    @abstractmethod
    def apply(self, block: Float[Array, "b d"]) -> Float[Array, "b s"]:
        """Return the features of a few rows, dense or sparse, in their dtype."""

    @abstractmethod
    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        """Return the number of rows whose features can be computed in `memory_bytes`."""

    def features(
        self, rows: RowSource, *, memory_bytes: int = DEFAULT_BLOCK_BYTES
    ) -> Float[Array, "n {self.width}"]:
        """Return the features of all rows, in their dtype.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
        memory_bytes : int
            Memory for blocks of rows, besides the result.

        Returns
        -------
        Array of shape (n, s)
        """
        return rows.map(self.apply, size=self.block_size(rows, memory_bytes))

    def strips(
        self, rows: RowSource, *, memory_bytes: int = DEFAULT_BLOCK_BYTES
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the slice, the rows (b, d) and the features (b, s) of each block, in order."""
        for part, block in rows.blocks(self.block_size(rows, memory_bytes)):
            yield part, block, self.apply(block)


def largest_first(
    A: Float[Array, "m m"], cut: float, most: int | None = None
) -> tuple[Float[Array, " s"], Float[Array, "m s"]]:
    """Return at most `most` eigenvalues above `cut` of a symmetric matrix, with eigenvectors.

    At least one eigenvalue is returned, even if none is above `cut`. The largest entry of each
    eigenvector is positive, so that equal matrices give equal signs. An indefinite matrix raises
    ValueError.

    Cost: about 9 m³ operations, 24 m² bytes.
    """
    # Increasing eigenvalues: the first is the most negative one.
    values, vectors = la.eigenpairs(A)
    if values[0] < -NEGATIVE_SHARE * values[-1]:
        raise ValueError(
            "the kernel matrix must be positive semidefinite, but its eigenvalues range from "
            f"{float(values[0]):.3g} to {float(values[-1]):.3g}"
        )
    count = max(int((values > cut).sum()), 1)
    count = min(count, most or count)
    values, vectors = xp.flip(values, 0)[:count], xp.flip(vectors, 1)[:, :count]
    # LAPACK may return either sign of an eigenvector, depending on the processor.
    largest = xp.take_along(vectors, xp.abs(vectors).argmax(axis=0, keepdims=True), axis=0)
    return values, vectors * xp.where(largest < 0, -1.0, 1.0)
