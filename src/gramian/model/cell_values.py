"""Values and gradients of a model by cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from ..cells import Cells, Share
from ..data import RowSource
from ..data.rows.base import default_block_size
from ..operators import Engine
from .base import KernelPart

ROUTED_ENTRIES = 1 << 24
"""Entries of the rows that are routed in one block: each cell then predicts many rows at once."""

Parts = Callable[[int], KernelPart]
"""Returns the model of a cell, with its own centers, for mapped rows."""


def values_by_cell(
    cells: Cells,
    part: Parts,
    rows: RowSource,
    t: int,
    engine: str | Engine,
    memory_bytes: int | str,
) -> Float[Array, "n t"]:
    """Return the values at mapped rows, which are weighted sums over the cells of each row."""
    return rows.map(_Values(cells, part, t, engine, memory_bytes), size=_size(rows))


def gradients_by_cell(
    cells: Cells,
    part: Parts,
    rows: RowSource,
    t: int,
    engine: str | Engine,
    memory_bytes: int | str,
) -> Float[Array, "n t k"]:
    """Return the gradients at mapped rows, with the gradients of the weights."""
    values = _Gradients(cells, part, t, engine, memory_bytes)
    return rows.map(values, size=default_block_size(rows))


@dataclass(frozen=True, eq=False)
class _Values:
    """Function from a block of mapped rows to its values over all cells, which pickles."""

    cells: Cells
    part: Parts
    t: int
    engine: str | Engine
    memory_bytes: int | str

    def __call__(self, X: Float[Array, "b k"]) -> Array:
        """Return the values."""
        predictions = xp.zeros((len(X), self.t), xp.float64)
        for share in self.cells.route_in_parts(X):
            model = self.part(share.cell)
            values = _predict_values(model, X[share.index], self.engine, self.memory_bytes)
            # Bands of cells overlap: a row is the sum of several shares. The row numbers of one
            # share are distinct, as an indexed sum requires.
            predictions[share.index] += share.weight[:, None] * values
        return predictions


class _Gradients(_Values):
    """Function from a block of mapped rows to its gradients."""

    def __call__(self, X: Float[Array, "b k"]) -> Array:
        """Return the gradients."""
        gradients = xp.zeros((len(X), self.t, X.shape[1]), xp.float64)
        for share in self.cells.route_in_parts(X, slopes=True):
            model = self.part(share.cell)
            gradients[share.index] += _gradient(model, X, share, self.engine, self.memory_bytes)
        return gradients


def _gradient(
    model: KernelPart, X: Array, share: Share, engine: str | Engine, memory_bytes: int | str
) -> Float[Array, "b t k"]:
    X = X[share.index]
    gradients = model.gradient(X, engine=engine, memory_bytes=memory_bytes)
    gradients = share.weight[:, None, None] * gradients
    if share.slope is not None and bool(share.slope.any()):
        # Product rule: in a band the weights change with the row, too.
        values = _predict_values(model, X, engine, memory_bytes)
        gradients += values[:, :, None] * share.slope[:, None, :]
    return gradients


def _predict_values(
    model: KernelPart, X: Array, engine: str | Engine, memory_bytes: int | str
) -> Array:
    return model.predict(X, engine=engine, memory_bytes=memory_bytes)


def _size(rows: RowSource) -> int:
    return max(1, ROUTED_ENTRIES // max(rows.shape[1], 1))
