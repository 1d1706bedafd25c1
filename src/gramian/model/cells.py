"""CellCenters: which centers of a model are those of which cell; and predictions by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..cells import Cells, Share, cells_from_parts, kinds
from ..data import RowSource
from ..data.rows.base import comfortable_size

if TYPE_CHECKING:
    from .kernel_model import KernelModel

ROUTED = 1 << 24
"""Numbers of rows that are routed at once: each cell then has many of them."""

STARTS = "starts"


@dataclass(frozen=True, eq=False)
class CellCenters:
    """Cells, and where the centers of each begin.

    Attributes
    ----------
    cells : Cells
    starts : Tensor of shape (count + 1,)
        The cell c has the centers ``starts[c]`` to ``starts[c + 1] - 1``.

    Raises
    ------
    ValueError
        If there are not as many starts as cells, and one, or they decrease.
    """

    cells: Cells
    starts: Int[Tensor, " s"]

    def __post_init__(self) -> None:
        starts = self.starts
        if starts.shape != (self.cells.count + 1,) or starts.is_floating_point():
            raise ValueError(f"{self.cells.count} cells have one more start of centers than that")
        if int(starts[0]) != 0 or bool((starts.diff() < 0).any()):
            raise ValueError("starts of the centers of cells begin with 0 and do not decrease")

    def bounds(self, cell: int) -> tuple[int, int]:
        """Return the number of the first center of a cell, and that after its last."""
        return int(self.starts[cell]), int(self.starts[cell + 1])

    def to_dict(self) -> dict[str, str]:
        """Return all but the tensors, for JSON."""
        return {"kind": kinds.name_of(self.cells)}

    def tensors(self) -> dict[str, Tensor]:
        """Return what JSON is too long for."""
        return {**self.cells.tensors(), STARTS: self.starts}

    @classmethod
    def from_parts(cls, fields: object, tensors: Mapping[str, Tensor]) -> CellCenters:
        """Rebuild from what `to_dict` and `tensors` gave; ValueError if they are damaged."""
        if not isinstance(fields, dict) or set(fields) != {"kind"} or STARTS not in tensors:
            raise ValueError("the cells lack a part, or have an unknown one")
        rest = {name: tensor for name, tensor in tensors.items() if name != STARTS}
        return cls(cells_from_parts(fields["kind"], rest), tensors[STARTS])


Parts = Callable[[int], "KernelModel"]
"""The model of a cell, of its own centers, on rows as they are mapped."""


def values_by_cell(
    cells: Cells, part: Parts, rows: RowSource, t: int, engine: object, memory_bytes: object
) -> Float[Tensor, "n t"]:
    """Return the values at mapped rows: those of their cells, by their weights."""
    return rows.map(_Values(cells, part, t, engine, memory_bytes), size=_size(rows))


def gradients_by_cell(
    cells: Cells, part: Parts, rows: RowSource, t: int, engine: object, memory_bytes: object
) -> Float[Tensor, "n t k"]:
    """Return the gradients at mapped rows, those of the weights included."""
    values = _Gradients(cells, part, t, engine, memory_bytes)
    return rows.map(values, size=comfortable_size(rows))


@dataclass(frozen=True, eq=False)
class _Values:
    """The values at a block of mapped rows, of all cells: a value that can be sent."""

    cells: Cells
    part: Parts
    t: int
    engine: object
    memory_bytes: object

    def __call__(self, X: Float[Tensor, "b k"]) -> Tensor:
        """Return them."""
        found = torch.zeros(len(X), self.t, dtype=torch.float64)
        for share in self.cells.route_in_parts(X):
            model = self.part(share.cell)
            values = _predicted(model, X[share.index], self.engine, self.memory_bytes)
            found[share.index] += share.weight[:, None] * values
        return found


class _Gradients(_Values):
    """The gradients at a block of mapped rows."""

    def __call__(self, X: Float[Tensor, "b k"]) -> Tensor:
        """Return them."""
        found = torch.zeros(len(X), self.t, X.shape[1], dtype=torch.float64)
        for share in self.cells.route_in_parts(X, slopes=True):
            model = self.part(share.cell)
            found[share.index] += _gradient(model, X, share, self.engine, self.memory_bytes)
        return found


def _gradient(
    model: KernelModel, X: Tensor, share: Share, engine: object, memory_bytes: object
) -> Float[Tensor, "b t k"]:
    X = X[share.index]
    found = model.gradient(X, engine=engine, memory_bytes=memory_bytes)  # type: ignore[arg-type]
    found = share.weight[:, None, None] * found
    if share.slope is not None and bool(share.slope.any()):
        values = _predicted(model, X, engine, memory_bytes)
        found += values[:, :, None] * share.slope[:, None, :]
    return found


def _predicted(model: KernelModel, X: Tensor, engine: object, memory_bytes: object) -> Tensor:
    return model.predict(X, engine=engine, memory_bytes=memory_bytes)  # type: ignore[arg-type]


def _size(rows: RowSource) -> int:
    return max(1, ROUTED // max(rows.shape[1], 1))
