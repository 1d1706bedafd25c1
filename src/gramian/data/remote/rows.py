"""The abstract source of rows on other machines, the cluster that reads folders, and folds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import Array, Float
from ..rows.base import RowSource, Spread
from ..rows.reduce import BlockReduction, Result, Rowwise
from ..rows.transform import Blockwise


class RemoteRows(RowSource):
    """Rows on other machines, to which passes are sent.

    A subclass implements `fold`, `map`, `map_rows` and `call_at_rows` as well, which send a small
    value to the machines of the rows, where `blocks` and `take` fetch rows over the network.
    """

    remote = True

    def fits(self, most_rows: float | int = math.inf) -> bool:
        """Return False: no algorithm holds all of these rows in this process."""
        return False

    @abstractmethod
    def spread(self) -> Spread:
        """See `RowSource.spread`."""

    @abstractmethod
    def by_group(
        self,
        members: Callable[[int, Array], list[Array]],
        solve: Callable[..., Result],
        count: int,
        *rowwise: Rowwise,
        size: int,
    ) -> Iterator[Result]:
        """Yield the result of each group of rows, assembled on a machine of the rows.

        Parameters
        ----------
        members : callable
            ``members(start, block)`` returns, for each group, the positions of its rows within the
            block, whose first row has the number `start`; groups may overlap. It supports plain
            pickle.
        solve : callable
            ``solve(group, rows, *slices)``, with the rows of a group in their order; its result is
            sent back. It supports plain pickle.
        count : int
            Number of groups.
        *rowwise : Rowwise of shape (n, ...)
        size : int
            Upper bound of the number of rows in one block.

        Yields
        ------
        T
            Results, in the order of the groups.
        """


FOLDER_CLIENT: ContextVar[Any] = ContextVar("FOLDER_CLIENT", default=None)
"""The client of the `gramian.data.dask.connect.connection` that surrounds a call; none outside."""


def client_of(path: str | Path) -> Any:
    """Return the client whose workers read a path: a folder within a connection; else None.

    A client that the process opened for something else has no effect. An address on an object store
    is no folder.
    """
    return FOLDER_CLIENT.get() if Path(path).is_dir() else None


MOST_VALUES = 10_000
"""Distinct values up to which numbers may be labels."""


@dataclass(frozen=True)
class Look(BlockReduction[Array]):
    """Reduction to smallest and largest numbers and sums of columns, (3, t), in float64.

    NaN where a number is NaN.
    """

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Float[Array, "3 t"]:
        x = block.astype(np.float64, copy=False)
        # Sums of numbers that are not finite are of no use, and the extremes tell.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([x.min(axis=0), x.max(axis=0), x.sum(axis=0)])

    def merge(self, a: Float[Array, "3 t"], b: Float[Array, "3 t"]) -> Float[Array, "3 t"]:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] + b[2]])


@dataclass(frozen=True)
class Count(BlockReduction[tuple[Array, Array]]):
    """Reduction of `RemoteColumns.counts`, which drops values beyond the limit for labels."""

    def __call__(self, start: int, block: Array, *weights: Any) -> tuple[Array, Array]:
        x = block[:, 0].astype(np.float64, copy=False)
        x = x[weights[0] > 0] if weights else x
        values, counts = np.unique(x, return_counts=True)
        # Cut off, because numbers of a continuous range would all come back; one more than allowed
        # shows that there were more.
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]

    def merge(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        values, place = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, np.concatenate([a[1], b[1]]))
        return values[: MOST_VALUES + 1], counts[: MOST_VALUES + 1]


class LookedUp(Blockwise):
    """Rows of a table that replace labels, looked up as labels are read.

    - `rows`, RowSource of shape (n, 1).
    - `values`, ndarray of shape (k,): labels, increasing.
    - `table`, ndarray of shape (k, t).
    - `unknown`: value for any other number; the first row of the table by default.
    """

    def __init__(
        self,
        rows: RowSource,
        values: Float[Array, " k"],
        table: Float[Array, "k t"],
        unknown: float | None = None,
    ) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], table.shape[1]), table.dtype
        self.feature_names = None
        self._values, self._table, self._unknown = values, table, unknown

    def change(self, block: Float[Array, "b 1"]) -> Float[Array, "b t"]:
        numbers = block[:, 0].astype(np.float64, copy=False)
        # A number beyond the last value would index past the end.
        place = np.searchsorted(self._values, numbers).clip(max=len(self._values) - 1)
        is_known = self._values[place] == numbers
        # The place of an unknown number times 0 is the first row.
        values = self._table[place * is_known]
        if self._unknown is not None:
            values[~is_known] = self._unknown
        return values
