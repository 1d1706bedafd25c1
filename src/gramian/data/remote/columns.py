"""Targets or weights that are stored with remote rows, on the workers of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..maps.standardizer import Standardizer
from ..rows.base import RowSource, default_block_size
from ..rows.columns import Columns, all_finite
from ..rows.digest import digest
from ..rows.transform import cast_rows
from ..rows.views import select, subset
from .rows import MOST_VALUES, Count, Look, LookedUp

MOST_TAKEN = 1 << 20
"""Rows up to which selected numbers are gathered; they fit in a few MB."""


class RemoteColumns(Columns):
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
        self.rows, self.texts, self.flat = rows, labels, flat
        own = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        self.kind = labels.dtype if labels is not None else own if kind is None else kind
        self.shape = (rows.shape[0],) if flat else rows.shape
        self.ndim, self.dtype, self.device = len(self.shape), rows.dtype, "cpu"

    def fits(self) -> bool:
        """Return False: they stay with their rows."""
        return False

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
        return RemoteColumns(rows, flat=self.flat, labels=self.texts)

    def reshape(self, *, flat: bool) -> RemoteColumns:
        """Return one column as (n,) or as (n, 1)."""
        reshaped_columns = RemoteColumns(self.rows, flat=flat, labels=self.texts, kind=self.kind)
        # A cached property is in the dictionary of its object once it was computed: no second pass.
        if "facts" in vars(self):  # they are the same numbers
            reshaped_columns.facts = self.facts
        return reshaped_columns

    def select(self, columns: Int[Array, " k"], dtype: xp.DType) -> RemoteColumns:
        return RemoteColumns(select(self.rows, columns.tolist())).to(dtype)

    def part(self, index: Int[Array, " k"]) -> Any:
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
        """See `Columns.gather`: 8 bytes for each number go over the network."""
        local_numbers: Array = self.rows.map(xp.copy, size=default_block_size(self.rows))
        return local_numbers[:, 0] if self.flat else local_numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Fetch all numbers or labels into memory."""
        values = self.gather()
        # Codes travel as floats, because rows have no other type.
        values = self.texts[values.astype(np.int64)] if self.texts is not None else values
        values = values.astype(self.kind, copy=False)
        return values if dtype is None else values.astype(dtype)

    @functools.cached_property
    def facts(self) -> Float[Array, "3 t"]:
        """Smallest and largest numbers and sums of columns; one pass at the first access."""
        return self.rows.fold(Look(), size=default_block_size(self.rows))

    @functools.cached_property
    def ends(self) -> tuple[Array, Array]:
        smallest, largest, _ = self.facts
        return smallest, largest

    @property
    def digest(self) -> str:
        return digest(self.rows)

    def moments(self, weights: Any, total: float) -> tuple[Array, Array]:
        """See `Columns.moments`: one pass."""
        standardizer = Standardizer.fit(self.rows, weights=weights)
        scale = xp.copy(standardizer.scale)
        scale[list(standardizer.constant)] = 0.0  # in a standardizer it is 1
        return standardizer.mean, scale

    def scale_by(self, standardizer: Standardizer) -> RemoteColumns:
        """See `Columns.scale_by`: computed as the numbers are read."""
        return self.on(standardizer.apply(self.rows))

    @functools.cached_property
    def range(self) -> tuple[float, float]:
        smallest, largest = self.ends
        return float(smallest.min()), float(largest.max())

    def times(self, other: Any) -> Any:
        """Raise ValueError: no pass multiplies two columns."""
        raise ValueError(
            "class_weight and sample_weight cannot be combined for remote rows; leave one out, and "
            "give the product as the other"
        )

    def sum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the sum of all numbers, or of each column, in float64."""
        return self.facts[2].sum() if axis is None or self.flat else self.facts[2]

    def mean(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the mean of all numbers, or of each column, in float64."""
        means = self.facts[2] / len(self)
        return means.mean() if axis is None else means

    def counts(self, weights: Any = None) -> tuple[np.ndarray, Array]:
        """See `Columns.counts`.

        Raises
        ------
        ValueError
            If the numbers are not labels: they have fractions, or more than 10,000 values.
        """
        beside = () if weights is None else (weights,)
        values, counts = self.rows.fold(Count(), *beside, size=default_block_size(self.rows))
        if not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity; drop these rows")
        # `Count` stops at one value more than allowed, so that the excess is seen.
        if len(values) > MOST_VALUES or not np.array_equal(values, np.floor(values)):
            raise ValueError(
                "the targets are numbers of a continuous range, but a classifier expects classes; "
                "fit numbers with KernelRidge"
            )
        labels = values.astype(self.kind) if self.texts is None else self.texts[values.astype(int)]
        return labels, counts

    def distinct(self, most: int, at_once: int) -> np.ndarray | None:
        distinct = np.unique(self[:at_once])
        return distinct if len(distinct) <= most else None

    def as_targets(self, dtype: xp.DType) -> RemoteColumns:
        if self.texts is not None:
            raise ValueError(
                f"the targets are texts, such as {str(self.texts[0])!r}, and KernelRidge predicts "
                "numbers; use KernelRidgeClassifier"
            )
        if not all_finite(self):
            raise ValueError("y contains NaN or infinity; leave out rows without a target")
        narrow = self.dtype == xp.float32 and dtype == xp.float32
        return self.reshape(flat=False).to(xp.float32 if narrow else xp.float64)

    def as_weights(self, n: int, check: Callable[[Any], Any]) -> RemoteColumns:
        """See `Columns.as_weights`: one pass."""
        if len(self) != n or self.rows.shape[1] != 1 or self.texts is not None:
            raise ValueError(f"sample_weight must be {n} numbers, not {self!r}")
        if not all_finite(self):
            raise ValueError("sample_weight contains NaN or infinity")
        if self.range[0] < 0:
            raise ValueError(
                f"sample_weight must not be negative; its least value is {self.range[0]:g}"
            )
        return self.reshape(flat=True).double()

    def check_with(self, check: Callable[[Any], Any]) -> RemoteColumns:
        return self

    def look_up(
        self,
        classes: np.ndarray,
        table: Float[Array, "k t"],
        *,
        flat: bool = False,
        unknown: float | None = None,
        weights: Any = None,
    ) -> RemoteColumns:
        """See `Columns.look_up`: looked up as the labels are read."""
        # Texts are compared by their codes. A class that is not among the labels has no rows.
        if self.texts is not None:
            is_known = np.isin(classes, self.texts)
            classes, table = np.searchsorted(self.texts, classes[is_known]), table[is_known]
        values = np.asarray(classes).astype(np.float64)
        rows = self.rows.map_rows(partial(LookedUp, values=values, table=table, unknown=unknown))
        return RemoteColumns(rows, flat=flat)

    def __repr__(self) -> str:
        """Show shape and type."""
        return f"RemoteColumns({tuple(self.shape)}, {xp.dtype_name(self.dtype)})"
