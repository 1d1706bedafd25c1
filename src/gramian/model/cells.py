"""Centers of a model by cells, ordered by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Int
from ..cells import Cells, cells_from_parts, kinds

STARTS_KEY = "starts"


@dataclass(frozen=True, eq=False)
class CellCenters:
    """Cells of a model, with the range of the centers of each cell.

    Attributes
    ----------
    cells : Cells
    starts : Array of shape (count + 1,)
        The cell c has the centers ``starts[c]`` to ``starts[c + 1] - 1``.

    Raises
    ------
    ValueError
        If the starts are not one more than the cells, or decrease.
    """

    cells: Cells
    starts: Int[Array, " s"]

    def __post_init__(self) -> None:
        starts = self.starts
        if starts.shape != (self.cells.count + 1,) or xp.is_floating(starts):
            raise ValueError(
                f"the starts of {self.cells.count} cells must be {self.cells.count + 1} whole "
                f"numbers, not {tuple(starts.shape)} of {starts.dtype}"
            )
        if int(starts[0]) != 0 or bool((xp.diff(starts) < 0).any()):
            raise ValueError("the starts of cells must begin with 0 and must not decrease")

    def bounds(self, cell: int) -> tuple[int, int]:
        """Return the range of the centers of a cell: the first index, and one past the last."""
        return int(self.starts[cell]), int(self.starts[cell + 1])

    def to_dict(self) -> dict[str, str]:
        """Return the kind of the cells, for JSON."""
        return {"kind": kinds.name_of(self.cells)}

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        return {**self.cells.tensors(), STARTS_KEY: self.starts}

    @classmethod
    def from_parts(cls, fields: object, tensors: Mapping[str, Array]) -> CellCenters:
        """Rebuild from the results of `to_dict` and `tensors`; ValueError if they are damaged."""
        if not isinstance(fields, dict) or set(fields) != {"kind"} or STARTS_KEY not in tensors:
            raise ValueError("the saved cells lack a field, or have an unknown one")
        other_tensors = {name: tensor for name, tensor in tensors.items() if name != STARTS_KEY}
        return cls(cells_from_parts(fields["kind"], other_tensors), tensors[STARTS_KEY])
