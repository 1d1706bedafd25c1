"""A linear map of rows, such as a learned metric: a matrix, or a factor for each feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import scale_columns
from ..rows.base import RowSource
from ..rows.transform import Blockwise


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Map of rows x to ``x @ matrix``, or to ``x * scales``; give one of the two.

    Distances of mapped rows are distances in a metric: ``M = matrix @ matrix.T``, or the diagonal
    metric of the squared scales.

    Parameters
    ----------
    matrix : Array of shape (d, k), optional
        Kept in float64.
    scales : Array of shape (d,), optional
        Kept in float64. A feature of scale zero has no effect.

    Raises
    ------
    ValueError
        If not exactly one of the two is given, its shape is wrong, or a value is not finite.
    """

    matrix: Any = None  # anything an array can be made of; kept is a Float[np.ndarray, "d k"]
    scales: Any = None  # Float[np.ndarray, " d"]

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.scales is None):
            raise ValueError("a linear map needs either a matrix or scales, and not both")
        name, ndim = ("scales", 1) if self.matrix is None else ("matrix", 2)
        array = np.asarray(xp.to_host(getattr(self, name)), np.float64, order="C")
        if array.ndim != ndim or array.size == 0:
            shape = "(d,)" if ndim == 1 else "(d, k)"
            raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of a linear map must be finite")
        # The dataclass is frozen, and the argument is replaced by its array in float64.
        object.__setattr__(self, name, array)

    @classmethod
    def of(cls, given: Any) -> LinearMap:
        """Convert an array to a linear map: a matrix, or a vector of scales."""
        if isinstance(given, cls):
            return given
        array = np.asarray(xp.to_host(given))
        return cls(scales=array) if array.ndim == 1 else cls(matrix=array)

    @property
    def array(self) -> np.ndarray:
        """The matrix, or the scales."""
        return np.asarray(self.scales if self.matrix is None else self.matrix)

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

    def forth(self, x: Float[Array, "b d"]) -> Float[Array, "b k"]:
        """Map an array of rows; the result has its dtype and device."""
        # Mapped in the type of the rows: float64 would double the cost of float32 rows.
        array = xp.cast(xp.to_device(self.array, xp.device_of(x)), x.dtype)
        return scale_columns(x, array) if self.matrix is None else x @ array

    def pull_back(self, gradients: Float[Array, "*b k"]) -> Float[Array, "*b d"]:
        """Return gradients with respect to rows, from gradients with respect to mapped rows."""
        array = xp.cast_like(self.array, gradients)
        return gradients * array if self.matrix is None else gradients @ array.T

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the matrix or the scales by name, for a file."""
        return {"scales" if self.matrix is None else "matrix": self.array}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> LinearMap:
        """Rebuild from the result of `tensors`; raise ValueError if it is damaged."""
        if set(tensors) not in ({"matrix"}, {"scales"}):
            raise ValueError("a linear map needs either a matrix or scales, and not both")
        for name, array in tensors.items():
            # The constructor converts any type; a file of another type was not written by
            # `tensors`.
            if array.dtype != np.float64:
                raise ValueError(f"{name} of a linear map must be float64, not {array.dtype}")
        return cls(**tensors)


class LinearRows(Blockwise):
    """Rows mapped by a linear map as they are read.

    - `rows`, RowSource of shape (n, d).
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

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b k"]:
        return self._map.forth(block)
