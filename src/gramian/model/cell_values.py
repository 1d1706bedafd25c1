"""Values and gradients of a model by cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..cells import Cells, Share
from ..data import RowSource
from ..data.rows.base import default_block_size
from ..operators import Engine
from .base import KernelPart

ROUTED_ENTRIES = 1 << 24
"""Numbers of rows that are routed at once: each cell then has many of them."""

Parts = Callable[[int], KernelPart]
"""The model of a cell, of its own centers, on rows as they are mapped."""


def values_by_cell(
    cells: Cells,
    part: Parts,
    rows: RowSource,
    t: int,
    engine: str | Engine,
    memory_bytes: int | str,
) -> Float[Tensor, "n t"]:
    """Return the values at mapped rows: weighted sums over their cells."""
    return rows.map(_Values(cells, part, t, engine, memory_bytes), size=_size(rows))


def gradients_by_cell(
    cells: Cells,
    part: Parts,
    rows: RowSource,
    t: int,
    engine: str | Engine,
    memory_bytes: int | str,
) -> Float[Tensor, "n t k"]:
    """Return the gradients at mapped rows, with the gradients of the weights."""
    values = _Gradients(cells, part, t, engine, memory_bytes)
    return rows.map(values, size=default_block_size(rows))


@dataclass(frozen=True, eq=False)
class _Values:
    """The values at a block of mapped rows, of all cells: a value that can be sent."""

    cells: Cells
    part: Parts
    t: int
    engine: str | Engine
    memory_bytes: int | str

    def __call__(self, X: Float[Tensor, "b k"]) -> Tensor:
        """Return them."""
        predictions = torch.zeros(len(X), self.t, dtype=torch.float64)
        for share in self.cells.route_in_parts(X):
            model = self.part(share.cell)
            values = _predict_values(model, X[share.index], self.engine, self.memory_bytes)
            predictions[share.index] += share.weight[:, None] * values
        return predictions


class _Gradients(_Values):
    """The gradients at a block of mapped rows."""

    def __call__(self, X: Float[Tensor, "b k"]) -> Tensor:
        """Return them."""
        gradients = torch.zeros(len(X), self.t, X.shape[1], dtype=torch.float64)
        for share in self.cells.route_in_parts(X, slopes=True):
            model = self.part(share.cell)
            gradients[share.index] += _gradient(model, X, share, self.engine, self.memory_bytes)
        return gradients


def _gradient(
    model: KernelPart, X: Tensor, share: Share, engine: str | Engine, memory_bytes: int | str
) -> Float[Tensor, "b t k"]:
    X = X[share.index]
    gradients = model.gradient(X, engine=engine, memory_bytes=memory_bytes)
    gradients = share.weight[:, None, None] * gradients
    if share.slope is not None and bool(share.slope.any()):
        values = _predict_values(model, X, engine, memory_bytes)
        gradients += values[:, :, None] * share.slope[:, None, :]
    return gradients


def _predict_values(
    model: KernelPart, X: Tensor, engine: str | Engine, memory_bytes: int | str
) -> Tensor:
    return model.predict(X, engine=engine, memory_bytes=memory_bytes)


def _size(rows: RowSource) -> int:
    return max(1, ROUTED_ENTRIES // max(rows.shape[1], 1))
