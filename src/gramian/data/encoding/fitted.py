"""FittedEncoding: an encoding, and what its training rows need beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..tables.base import Table

if TYPE_CHECKING:
    from .encoding import Encoding
    from .rows import EncodedRows


@dataclass(frozen=True, eq=False)
class FittedEncoding:
    """An encoding, and what its training rows need so that none sees its own target.

    Attributes
    ----------
    encoding : Encoding
        All that predictions need.
    folds : ndarray of int8 of shape (n,), or None
        -1 for rows that did not count. None if no column is encoded by means.
    without : mapping of str to ndarray of shape (L + 1, 5, t)
        Means without each fold, by column.
    """

    encoding: Encoding
    folds: np.ndarray | None
    without: Mapping[str, np.ndarray]

    def training_rows(self, table: Table) -> EncodedRows:
        """Return the rows that were learned from; means do not contain a row's own fold.

        Rows that did not count are encoded as new ones are.
        """
        from .rows import EncodedRows

        if self.folds is not None and len(self.folds) != table.num_rows:
            raise ValueError(
                f"{table.where} has {table.num_rows:,} rows, but the encoding was learned from "
                f"{len(self.folds):,}"
            )
        return EncodedRows(table, self.encoding, self.folds, self.without)
