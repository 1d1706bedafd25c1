"""Targets or weights that are stored with remote rows, on the workers of a cluster."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..rows.base import RowSource, default_block_size
from ..rows.transform import cast_rows
from ..rows.views import select, subset
from .reductions import MOST_VALUES, Count, Facts, Look, LookedUp, Positive

if TYPE_CHECKING:
    from typing import TypeAlias


MOST_TAKEN = 1 << 20
"""Rows up to which selected numbers are gathered; they fit in a few MB."""


class RemoteColumns:
    """Numbers that are stored with remote rows, in place of an array of shape (n, t) or (n,).

    Remote columns have the attributes that a fit of remote rows needs of targets and weights:
    shape, type and sums. Indexing by rows gathers some numbers in memory. A pass over rows reads
    them with the rows.

    Parameters
    ----------
    rows : RowSource of shape (n, t)
        Remote, in parts as long as the parts of the features.
    flat : bool, default=False
        Whether the shape is (n,), as for weights.
    labels : ndarray, optional
        Texts of the whole numbers 0, 1, ..., sorted.
    kind : numpy.dtype, optional
        Type of the stored numbers; by default the type of `rows`.
    """

    def __init__(
        self,
        rows: RowSource,
        *,
        flat: bool = False,
        labels: np.ndarray | None = None,
        kind: np.dtype[Any] | None = None,
    ) -> None:
        self.rows, self.flat, self.labels = rows, flat, labels
        own = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        self.kind = own if kind is None else kind
        self.shape = (rows.shape[0],) if flat else rows.shape
        self.ndim, self.dtype, self.device = len(self.shape), rows.dtype, "cpu"

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def double(self) -> RemoteColumns:
        """Return these numbers in float64."""
        return self.to(xp.float64)

    def to(self, dtype: xp.DType) -> RemoteColumns:
        """Return these numbers in another type."""
        return self if dtype == self.dtype else self.on(cast_rows(self.rows, dtype))

    def on(self, rows: RowSource) -> RemoteColumns:
        """Return columns of the same kind for other rows, at most as many."""
        return RemoteColumns(rows, flat=self.flat, labels=self.labels)

    def reshape(self, *, flat: bool) -> RemoteColumns:
        """Return one column as (n,) or as (n, 1)."""
        reshaped_columns = RemoteColumns(self.rows, flat=flat, labels=self.labels, kind=self.kind)
        # A cached property is in the dictionary of its object once it was computed: no second pass.
        if "facts" in vars(self):  # they are the same numbers
            reshaped_columns.facts = self.facts
        return reshaped_columns

    def stand_in(self) -> RowNumbers:
        """Return self, which type checkers then take for the array that it replaces."""
        return cast("Array", self)

    def part(self, index: Int[Array, " k"]) -> Any:
        """Return the numbers of some increasing rows, in memory if they are few."""
        # Few numbers are cheaper in memory than a change of every part.
        if len(index) <= MOST_TAKEN:
            return self[index]
        return self.on(subset(self.rows, index))

    def __getitem__(self, key: Any) -> Any:
        """Fetch the numbers of some rows into memory; or return some columns, still remote."""
        if isinstance(key, tuple):
            row_key, columns = key
            if row_key != slice(None):
                raise TypeError(
                    f"columns can only be selected for all rows, as [:, columns], got {key!r}"
                )
            return self.on(select(self.rows, np.asarray(columns).tolist()))
        if isinstance(key, slice):
            key = np.arange(*key.indices(len(self)))
        index = np.asarray(key)
        # A mask selects its rows, as it does of an array.
        index = np.flatnonzero(index) if index.dtype == bool else index
        numbers = self.rows.take(index)
        return numbers[:, 0] if self.flat else numbers

    def gather(self) -> Array:
        """Fetch all numbers into memory, 8 bytes for each."""
        local_numbers: Array = self.rows.map(xp.copy, size=default_block_size(self.rows))
        return local_numbers[:, 0] if self.flat else local_numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Fetch all numbers or labels into memory."""
        values = self.gather()
        # Codes travel as floats, because rows have no other type.
        values = self.labels[values.astype(np.int64)] if self.labels is not None else values
        values = values.astype(self.kind if self.labels is None else values.dtype, copy=False)
        return values if dtype is None else values.astype(dtype)

    @functools.cached_property
    def facts(self) -> Facts:
        """Extremes, sums and finiteness of all numbers; one pass at the first access."""
        return self.rows.fold(Look(), size=default_block_size(self.rows))

    def positive(self) -> Int[Array, " k"]:
        """Return the row indices of positive entries, 8 bytes for each."""
        row_numbers: Array = self.rows.fold(Positive(), size=default_block_size(self.rows))
        return row_numbers

    def sum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the sum of all numbers, or of each column, in float64."""
        return self.facts.total.sum() if axis is None or self.flat else self.facts.total

    def mean(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the mean of all numbers, or of each column, in float64."""
        means = self.facts.total / len(self)
        return means.mean() if axis is None else means

    def classes(self, weights: Any = None) -> np.ndarray:
        """Return the labels of the rows of positive weight, sorted.

        Raises
        ------
        ValueError
            If the numbers are not labels: they have fractions, or more than 10,000 values.
        """
        values = self.counts(weights)[0]
        return values.astype(self.kind) if self.labels is None else self.labels[values.astype(int)]

    def counts(self, weights: Any = None) -> tuple[Array, Array]:
        """Return the distinct numbers of the rows of positive weight, and their counts.

        Raises
        ------
        ValueError
            As in `classes`.
        """
        beside = () if weights is None else (weights,)
        counts_found = self.rows.fold(Count(), *beside, size=default_block_size(self.rows))
        values, counts = counts_found
        if not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity; drop these rows")
        # `Count` stops at one value more than allowed, so that the excess is seen.
        if len(values) > MOST_VALUES or not np.array_equal(values, np.floor(values)):
            raise ValueError(
                "the targets are numbers of a continuous range, but a classifier expects classes; "
                "fit numbers with KernelRidge"
            )
        return values, counts

    def looked_up(
        self,
        classes: np.ndarray,
        table: Float[Array, "k t"],
        *,
        flat: bool = False,
        unknown: float | None = None,
    ) -> RemoteColumns:
        """Return the row of a table for each label, as remote columns.

        Parameters
        ----------
        classes : ndarray of shape (k,)
            Sorted labels.
        table : Array of shape (k, t)
        flat : bool, default=False
            Whether the shape of the result is (n,).
        unknown : float, optional
            Value for a label of no class; the first row of the table by default.
        """
        # Texts are compared by their codes. A class that is not among the labels has no rows.
        if self.labels is not None:
            is_known = np.isin(classes, self.labels)
            classes, table = np.searchsorted(self.labels, classes[is_known]), table[is_known]
        values = np.asarray(classes).astype(np.float64)
        rows = self.rows.map_rows(partial(LookedUp, values=values, table=table, unknown=unknown))
        return RemoteColumns(rows, flat=flat)

    def __repr__(self) -> str:
        """Show shape and type."""
        return f"RemoteColumns({tuple(self.shape)}, {xp.dtype_name(self.dtype)})"


if TYPE_CHECKING:  # what fits ask of an array is what remote columns have
    Targets: TypeAlias = Array
    RowWeights: TypeAlias = Array
    AnyWeights: TypeAlias = Array
    RowNumbers: TypeAlias = Array
else:
    Targets = Float[Array, "n t"] | RemoteColumns
    RowWeights = Float[Array, " n"] | RemoteColumns
    AnyWeights = Float[Array, " _"] | RemoteColumns  # of who checks by himself how many there are
    RowNumbers = Array | RemoteColumns


def as_remote_columns(numbers: object) -> RemoteColumns | None:
    """Return numbers if they are remote columns, else None."""
    return numbers if isinstance(numbers, RemoteColumns) else None


def take_numbers(numbers: RowNumbers, index: Int[Array, " k"]) -> RowNumbers:
    """Return the numbers of some rows, as remote columns if they are remote and many."""
    remote = as_remote_columns(numbers)
    return numbers[index] if remote is None else remote.part(index)


def gather_numbers(numbers: RowNumbers) -> Array:
    """Return local or remote numbers in memory."""
    remote = as_remote_columns(numbers)
    return numbers if remote is None else remote.gather()


def all_finite(numbers: RowNumbers) -> bool:
    """Return whether all numbers, local or remote, are finite."""
    remote = as_remote_columns(numbers)
    if remote is not None:
        return remote.facts.finite
    if numbers.size == 0:
        return True
    # Without a temporary mask, which `isfinite` needs. NaN fails both comparisons.
    return bool(numbers.min() > -np.inf and numbers.max() < np.inf)


def range_of(numbers: RowNumbers) -> tuple[float, float]:
    """Return the least and the largest of local or remote numbers."""
    remote = as_remote_columns(numbers)
    if remote is not None:
        return float(remote.facts.smallest.min()), float(remote.facts.largest.max())
    return float(numbers.min()), float(numbers.max())
