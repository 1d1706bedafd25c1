"""Mean and scale of each feature, estimated in one pass over rows of any number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import is_sparse
from ..checks import FiniteCheck
from ..copies import comparable
from ..rows.base import RowSource, default_block_size, slices
from ..rows.columns import RowWeights, Targets, as_columns
from ..rows.reduce import BlockReduction
from ..rows.transform import Standardized

# A strip stays in cache over all steps.
_STRIP_NUMBERS = 1 << 15

_FEW_FEATURES = 32
"""Features below which strips are turned: sums over columns of few numbers take ten times as
long in NumPy as sums over rows."""


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Map of each feature x to ``(x - mean) / scale``.

    Attributes
    ----------
    mean, scale : ndarray of shape (d,)
        Float64. A feature that does not vary has scale 1, so that it becomes zero.
    constant : tuple of int
        Indices of the columns that do not vary.
    """

    mean: Float[Array, " d"]
    scale: Float[Array, " d"]
    constant: tuple[int, ...] = ()
    _prepared: dict[Any, tuple[Array, ...]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit(
        cls,
        rows: RowSource,
        size: int | None = None,
        *,
        targets: np.ndarray | None = None,
        weights: RowWeights | None = None,
    ) -> Standardizer:
        """Estimate mean and standard deviation (over n, not n - 1); NaN or infinity is an error.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
            If sparse, the mean is taken as zero and the scale is the root mean square, zeros
            included: the matrix stays sparse.
        size : int, optional
            Rows per block; about a million numbers unless given.
        targets : ndarray of shape (n,), optional
            Targets that no column may equal, as in `check_finite`.
        weights : ndarray of shape (n,), optional
            Weights of the rows, above zero; a whole number is a repeated row. Not for sparse rows.

        Returns
        -------
        Standardizer

        Notes
        -----
        A feature counts as constant if it takes one value, or if its standard deviation is not
        above the rounding error of its mean, ``eps |mean|`` in the type of the rows.

        Cost: one pass over the data, 6 n d operations, one block and a megabyte of memory.

        References
        ----------
        .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, *Updating formulae and a pairwise
           algorithm for computing sample variances*, COMPSTAT 1982, eq. (2.1): how the sums of
           two blocks are merged without cancellation. Here the first row is subtracted before.
        """
        along = comparable(rows, targets)
        survey = _Survey(rows.feature_names, rows.shape[1], compares=len(along) > 0)
        # Targets first, weights last: `_Survey.add` takes them apart in this order.
        along += [] if weights is None else [weights]
        check, moments = rows.fold(survey, *along, size=size or default_block_size(rows))
        # Before the moments: with a NaN in the rows these are of no use.
        check.finish()
        mean, scale, constant = moments.finish(xp.finfo(rows.dtype).eps)
        # Before constant columns get scale 1, which would hide an overflow in a column whose mean
        # overflowed as well.
        check_range(scale, rows.feature_names)
        return cls(mean, np.where(constant, 1.0, scale), tuple(np.flatnonzero(constant).tolist()))

    def apply(self, rows: RowSource) -> RowSource:
        """Standardise rows as they are read.

        Parameters
        ----------
        rows : RowSource of shape (n, d)

        Returns
        -------
        RowSource of shape (n, d)
        """
        return rows.map_rows(
            partial(Standardized, mean=self.mean, scale=self.scale, prepared=self._prepared)
        )

    def scale_numbers(self, numbers: Targets) -> Targets:
        """Standardise numbers in float64; the result has their dtype."""
        return as_columns(numbers).scale_by(self)

    def to_dict(self) -> dict[str, list[float] | list[int]]:
        """Return plain lists, which JSON keeps without loss."""
        return {
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "constant": list(self.constant),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Standardizer:
        """Rebuild from the result of `to_dict`."""
        mean, scale = (np.array(saved[k], dtype=np.float64) for k in ("mean", "scale"))
        return cls(mean, scale, tuple(saved.get("constant", ())))


Seen = tuple[FiniteCheck, "_Moments"]


@dataclass(frozen=True)
class _Survey(BlockReduction[Seen]):
    """Reduction of `Standardizer.fit`, which checks values and copies of targets, and sums moments.

    - `compares`: whether targets are among the row-aligned arguments; weights may follow them.
    """

    names: tuple[str, ...] | None
    d: int
    compares: bool

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Seen:
        return self.add((FiniteCheck(self.names), _Moments(self.d)), start, block, *rowwise)

    def merge(self, a: Seen, b: Seen) -> Seen:
        return a[0].merge(b[0]), a[1].merge(b[1])

    def add(self, total: Seen, start: int, block: Array, *rowwise: Any) -> Seen:
        check, moments = total
        targets, weights = (rowwise[:1], rowwise[1:]) if self.compares else ((), rowwise)
        # A block with NaN is left out: the pass ends with an error anyway, and only continues for
        # its counts.
        if check.add(start, block, *targets):
            moments.add(xp.to_host(block), *weights)
        return total


class _Moments:
    """Row count, mean and centered sum of squares of each column of ``x - origin``.

    The origin is the first row: a column far from zero keeps its digits, and a constant one is
    zero throughout.
    """

    def __init__(self, d: int) -> None:
        self.n: float | np.ndarray = 0
        self.origin = np.zeros(d)
        self.mean = np.zeros(d)
        self.squares = np.zeros(d)

    def add(self, block: Array, weights: np.ndarray | None = None) -> None:
        """Merge a block, dense ones in strips that stay in cache over all steps."""
        if is_sparse(block):
            # Squares about zero; the mean stays zero.
            with np.errstate(over="ignore"):  # see `_merge`
                np.add.at(self.squares, block.indices, np.square(block.data, dtype=np.float64))
            self.n += block.shape[0]
            return
        if self.n == 0:
            # Any number near the data will do; the first row is at hand, and makes constants exact.
            self.origin = block[0].astype(np.float64)
        for part, strip in self._strips(block):
            w = None if weights is None else weights[part].astype(np.float64, copy=False)
            self._merge(strip, w)

    def _strips(self, block: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their differences to the origin, (d, b): new arrays in float64."""
        d = block.shape[1]
        for part in slices(len(block), max(1, _STRIP_NUMBERS // d)):
            order: Literal["C", "K"] = "C" if d < _FEW_FEATURES else "K"
            yield part, np.subtract(block[part].T, self.origin[:, None], order=order)

    def _merge(self, x: np.ndarray, weights: np.ndarray | None) -> None:
        """Merge moments of columns x, (d, b), which change: eq. (2.1) of the source.

        Weights replace the number of rows: of rows in shape (b,), of numbers in shape (d, b).
        """
        # Infinity shows that squares overflow, and NaN that a column has no number: callers look.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if weights is None:
                b: float | np.ndarray = x.shape[1]
                mean = x.mean(axis=1)
            else:
                b = weights.sum(axis=-1)
                mean = np.einsum("...j,...j->...", x, weights) / b
            # The order matters: `self.n` and `self.mean` are the old ones until the last two lines.
            delta = mean - self.mean
            # In place: the strip is ours, and stays in the cache.
            x -= mean[:, None]
            factors = (x, x) if weights is None else (x, x, weights)
            formula = ",".join(["...j"] * len(factors)) + "->..."
            self.squares += np.einsum(formula, *factors)
            self.squares += delta**2 * (self.n * b / (self.n + b))
            self.n += b
            self.mean += delta * (b / self.n)

    def merge(self, other: _Moments) -> _Moments:
        """Merge the moments of other rows, which may have another origin; return the sums."""
        if self.n == 0 or other.n == 0:
            # An empty side has no origin, and would divide by n = 0.
            return self if other.n == 0 else other
        delta = other.mean - self.mean + (other.origin - self.origin)
        n = self.n + other.n
        with np.errstate(over="ignore"):  # see `_merge`
            self.squares += other.squares + delta**2 * (self.n * other.n / n)
        self.n, self.mean = n, self.mean + delta * (other.n / n)
        return self

    def finish(self, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, scale and the indices of constant columns."""
        mean, scale = self.origin + self.mean, np.sqrt(self.squares / self.n)
        # What varies less than the rounding of its mean is rounding itself: dividing by it would
        # blow up noise.
        return mean, scale, scale <= eps * np.abs(mean)


def check_range(scale: np.ndarray, names: tuple[str, ...] | None) -> None:
    """Raise ValueError for a column whose scale overflowed, with the name of the column."""
    bad = np.flatnonzero(~np.isfinite(scale))
    if len(bad):
        column = int(bad[0])
        name = column if names is None else f"'{names[column]}'"
        raise ValueError(
            f"column {name} has numbers so large that their squares overflow; "
            "rescale it first, or leave it out"
        )
