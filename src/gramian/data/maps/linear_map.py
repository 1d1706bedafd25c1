"""A linear map of rows, such as a learned metric: a matrix, or a factor for each feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..._sparse import scale_columns
from ..rows.base import RowSource
from ..rows.reduce import Value
from ..rows.transform import Blockwise


@dataclass(frozen=True, eq=False)
class LinearMap(Value):
    """Map of rows x to ``x @ matrix``, or to ``x * scales``; give one of the two.

    Distances of mapped rows are distances in a metric: ``M = matrix @ matrix.T``, or the diagonal
    metric of the squared scales.

    Parameters
    ----------
    matrix : Tensor of shape (d, k), optional
        Kept in float64.
    scales : Tensor of shape (d,), optional
        Kept in float64. A feature of scale zero has no effect.

    Raises
    ------
    ValueError
        If not exactly one of the two is given, its shape is wrong, or a value is not finite.
    """

    matrix: Any = None  # anything a tensor can be made of; kept is a Float[Tensor, "d k"]
    scales: Any = None  # Float[Tensor, " d"]

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.scales is None):
            raise ValueError("a linear map needs either a matrix or scales, and not both")
        name, ndim = ("scales", 1) if self.matrix is None else ("matrix", 2)
        # A metric that was learned by torch has gradients, which a model must not keep.
        tensor = torch.as_tensor(getattr(self, name)).detach()
        if tensor.ndim != ndim or tensor.numel() == 0:
            shape = "(d,)" if ndim == 1 else "(d, k)"
            raise ValueError(f"{name} must have shape {shape}, not {tuple(tensor.shape)}")
        stored_tensor = tensor.to("cpu", torch.float64).contiguous()
        if not bool(stored_tensor.isfinite().all()):
            raise ValueError(f"{name} of a linear map must be finite")
        # The dataclass is frozen, and the argument is replaced by its tensor in float64.
        object.__setattr__(self, name, stored_tensor)

    @classmethod
    def of(cls, given: Any) -> LinearMap:
        """Return a linear map as it is, or make one of an array; a vector holds the scales."""
        if isinstance(given, cls):
            return given
        array = torch.as_tensor(given)
        return cls(scales=array) if array.ndim == 1 else cls(matrix=array)

    @property
    def array(self) -> Tensor:
        """The matrix, or the scales."""
        tensor_of_map: Tensor = self.scales if self.matrix is None else self.matrix
        return tensor_of_map

    @property
    def inputs(self) -> int:
        """Number of features d of the rows that are mapped."""
        return self.array.shape[0]

    @property
    def outputs(self) -> int:
        """Number of features k of mapped rows."""
        return self.array.shape[-1]

    def apply(self, rows: RowSource) -> RowSource:
        """Map rows as they are read.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
            Dense rows; with `scales` also sparse rows.

        Returns
        -------
        RowSource of shape (n, k)
            Mapped rows of the same type. Features made by a matrix have no names.
        """
        return rows.map_rows(partial(LinearRows, map_=self))

    def forth(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """Return mapped numbers, in their own type and on their device."""
        # Mapped in the type of the rows: float64 would double the cost of float32 rows.
        array = self.array.to(x.device, x.dtype)
        return scale_columns(x, array) if self.matrix is None else x @ array

    def pull_back(self, gradients: Float[Tensor, "*b k"]) -> Float[Tensor, "*b d"]:
        """Return gradients with respect to rows, from gradients with respect to mapped rows."""
        array = self.array.to(gradients)
        return gradients * array if self.matrix is None else gradients @ array.T

    def tensors(self) -> dict[str, Tensor]:
        """Return the matrix or the scales by name, for a file."""
        return {"scales" if self.matrix is None else "matrix": self.array}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> LinearMap:
        """Rebuild from the result of `tensors`; raise ValueError if it is damaged."""
        if set(tensors) not in ({"matrix"}, {"scales"}):
            raise ValueError("a linear map needs either a matrix or scales, and not both")
        for name, tensor in tensors.items():
            # The constructor converts any type; a file of another type was not written by
            # `tensors`.
            if tensor.dtype != torch.float64:
                raise ValueError(f"{name} of a linear map must be float64, not {tensor.dtype}")
        return cls(**tensors)


class LinearRows(Blockwise):
    """Rows mapped by a linear map as they are read.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    map_ : LinearMap
    """

    def __init__(self, rows: RowSource, map_: LinearMap) -> None:
        super().__init__(rows)
        if rows.shape[1] != map_.inputs:
            raise ValueError(
                f"the rows have {rows.shape[1]} features, but the linear map takes {map_.inputs}"
            )
        if map_.matrix is not None:
            if rows.sparse:
                raise ValueError(
                    "a matrix would fill the zeros of sparse rows; pass scales, one for each "
                    "feature, or dense rows (x.toarray())"
                )
            self.shape, self.feature_names = (rows.shape[0], map_.outputs), None
        self._map = map_

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """Map; see `Blockwise.change`."""
        return self._map.forth(block)
