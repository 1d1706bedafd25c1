"""The abstract source of rows that are on other machines, and the cluster that reads folders."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ..._arrays import Array
from ..rows.base import RowSource, Spread
from ..rows.reduce import Result, Rowwise


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
