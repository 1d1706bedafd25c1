"""Values and gradients of a model by cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from ..cells import Cells, Share
from ..operators import Engine
from .base import KernelPart

ROUTED_ENTRIES = 1 << 24
"""Entries of the rows that are routed in one block: each cell then predicts many rows at once."""

Parts = Callable[[int], KernelPart]
"""Returns the model of a cell, with its own centers, for mapped rows."""


@dataclass(frozen=True, eq=False)
class CellValues:
    """Function from a block of mapped rows to its values, weighted sums over the cells of each row.

    It pickles.
    """

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
            values = model.predict(
                X[share.index], engine=self.engine, memory_bytes=self.memory_bytes
            )
            # Bands of cells overlap: a row is the sum of several shares. The row numbers of one
            # share are distinct, as an indexed sum requires.
            predictions[share.index] += share.weight[:, None] * values
        return predictions


class CellGradients(CellValues):
    """Function from a block of mapped rows to its gradients, with these of the weights."""

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
        values = model.predict(X, engine=engine, memory_bytes=memory_bytes)
        gradients += values[:, :, None] * share.slope[:, None, :]
    return gradients
