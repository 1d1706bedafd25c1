"""Columns that belong to rows, such as targets and weights: in memory, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from .array import ArrayRows
from .base import RowSource
from .digest import tensor_digest

if TYPE_CHECKING:
    from typing import TypeAlias


class Columns:
    """Numbers or labels with a value for each row, which `as_columns` returns for an array.

    `RemoteColumns` have the same methods for values on a cluster. Algorithms take arrays and
    `RemoteColumns` alike: they hand them to a pass over the rows, and ask their `Columns` for sums
    and conversions.

    Parameters
    ----------
    values : array-like, or tensor on a device, of shape (n,) or (n, t)
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape (n,) or (n, t)."""
        return tuple(np.shape(self.values))

    @cached_property
    def kind(self) -> np.dtype[Any]:
        """Type of the stored values."""
        return np.asarray(self.values).dtype

    @cached_property
    def texts(self) -> np.ndarray | None:
        """Values that are texts, each or the distinct ones; None for numbers."""
        return self.values if self.kind.kind in "UO" else None

    def fits(self) -> bool:
        """Return whether all values may be in the memory of this process; see `RowSource.fits`."""
        return True

    @cached_property
    def rows(self) -> RowSource:
        """The numbers as rows, (n, t)."""
        return ArrayRows(self.values.reshape(len(self.values), -1))

    @cached_property
    def ends(self) -> tuple[Float[Array, " t"], Float[Array, " t"]]:
        """The smallest and the largest number of each column; NaN if a number is NaN."""
        # Column by column, without a copy of the numbers.
        columns = self.values.reshape(len(self.values), -1).T
        ends = [(float(column.min()), float(column.max())) for column in columns]
        smallest, largest = np.array(ends).reshape(-1, 2).T
        return smallest, largest

    @cached_property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest of all numbers; NaN if a number is NaN."""
        return float(self.values.min()), float(self.values.max())

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers, as hexadecimal digits."""
        return tensor_digest(self.values)

    def moments(self, weights: Any, total: float) -> tuple[Float[Array, " t"], Float[Array, " t"]]:
        """Return weighted mean and standard deviation of each column; 0 for a constant column."""
        y = xp.to_float64(self.values)
        w = xp.ones((len(y), 1), like=y) if weights is None else xp.to_float64(weights)[:, None]
        mean = (w * y).sum(axis=0) / total
        scale = xp.sqrt((w * xp.square(y - mean)).sum(axis=0) / total)
        # A constant column has a deviation of rounding, in whose units every error would be huge.
        rounding = xp.finfo(self.values.dtype).eps * xp.abs(mean)
        return mean, xp.where(scale > rounding, scale, 0.0)

    def counts(self, weights: Any = None) -> tuple[np.ndarray, Int[Array, " k"]]:
        """Return the labels of the rows of positive weight, sorted, and their numbers of rows."""
        labels = self.values if weights is None else self.values[weights > 0]
        return np.unique(labels, return_counts=True)

    def distinct(self, most: int, at_once: int) -> np.ndarray | None:
        """Return the distinct numbers; None if there are more than `most`.

        Of a cluster, only the first `at_once` rows are read.
        """
        distinct = self.values[:0]
        for start in range(0, len(self.values), at_once):
            distinct = np.union1d(distinct, self.values[start : start + at_once])
            if len(distinct) > most:
                return None
        return distinct

    def select(self, columns: Int[Array, " k"], dtype: xp.DType) -> Any:
        """Return some columns of the numbers, of shape (n, k), in a type."""
        return np.ascontiguousarray(self.values.reshape(len(self.values), -1)[:, columns], dtype)

    def part(self, index: Int[Array, " k"]) -> Any:
        """Return the numbers at increasing indices, in memory if they are few."""
        return self.values[index]

    def gather(self) -> Array:
        """Return all numbers in memory."""
        return self.values

    def positive(self) -> Int[Array, " k"]:
        """Return the row indices of positive entries, 8 bytes for each."""
        return xp.flatnonzero(self.gather() > 0)

    def scale_by(self, standardizer: Any) -> Any:
        """Return numbers mapped by a `Standardizer`, computed in float64, in their own type."""
        scaled = (xp.to_float64(self.values) - standardizer.mean) / standardizer.scale
        return xp.cast(scaled, self.values.dtype)

    def times(self, other: Any) -> Any:
        """Return the products of two weights of each row."""
        return self.values * other

    def look_up(
        self,
        classes: np.ndarray,
        table: Float[Array, "k t"],
        *,
        flat: bool = False,
        unknown: float | None = None,
        weights: Any = None,
    ) -> Any:
        """Return the row of a table for each label.

        Parameters
        ----------
        classes : ndarray of shape (k,)
            Sorted labels.
        table : Array of shape (k, t)
        flat : bool, default=False
            Whether the shape of the result is (n,).
        unknown : float, optional
            Value for a label of no class; by default the first row of the table.
        weights : Array of shape (n,), optional
            Rows of weight zero may have labels of no class.

        Raises
        ------
        ValueError
            If an array has a label of no class, and there is no value for it.
        """
        # A label after all classes gets the place len(classes); the comparison then finds it.
        place = np.searchsorted(classes, self.values).clip(max=len(classes) - 1)
        is_unknown = classes[place] != self.values
        counts_row = is_unknown if weights is None else is_unknown & (weights > 0)
        if unknown is None and counts_row.any():
            label = self.values[counts_row].tolist()[0]
            raise ValueError(f"labels must be classes seen in training, not {label!r}")
        values = table[np.where(is_unknown, 0, place)]
        if unknown is not None:
            values[is_unknown] = unknown
        return values[:, 0] if flat else values

    def as_targets(self, dtype: xp.DType) -> Any:
        """Return numbers of shape (n, t), in float32 if these and the rows, of `dtype`, are."""
        y = np.asarray(self.values)
        # float32 only if both are: integers and float64 targets keep their digits.
        narrow = y.dtype == np.float32 and dtype == xp.float32
        y = np.ascontiguousarray(y, dtype=np.float32 if narrow else np.float64)
        return y[:, None] if y.ndim == 1 else y

    def as_weights(self, n: int, check: Callable[[Any], Any]) -> Any:
        """Return finite weights of n rows, at least zero, of shape (n,); `check` is of arrays."""
        return check(self.values)

    def check_with(self, check: Callable[[Any], Any]) -> Any:
        """Return the result of a function that needs all values in memory, if they are in memory.

        The values themselves take the place of None. On a cluster, where passes check the values,
        they stay unchanged.
        """
        result = check(self.values)
        return self.values if result is None else result


if TYPE_CHECKING:  # arrays of any library, or columns, which have what fits need of arrays
    Targets: TypeAlias = Array
    RowWeights: TypeAlias = Array
    AnyWeights: TypeAlias = Array
    RowNumbers: TypeAlias = Array
else:
    Targets = Float[Array, "n t"] | Columns
    RowWeights = Float[Array, " n"] | Columns
    AnyWeights = Float[Array, " _"] | Columns  # the caller checks how many there are
    RowNumbers = Array | Columns


def as_columns(values: Any) -> Columns:
    """Return the `Columns` of an array, or columns unchanged."""
    return values if isinstance(values, Columns) else Columns(values)


def all_finite(numbers: RowNumbers) -> bool:
    """Return whether all numbers, local or remote, are finite."""
    if len(numbers) == 0:
        return True
    # Without a temporary mask, which `isfinite` needs. NaN fails both comparisons.
    low, high = as_columns(numbers).range
    return bool(low > -np.inf and high < np.inf)
