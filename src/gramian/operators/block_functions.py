"""Functions of one block of rows in products of a kernel operator, which workers can receive.

Each can be pickled, and contains no more than it needs, so that it can be sent to rows on other
machines; see `gramian.data.BlockReduction`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import cast
from ..data import BlockFn, BlockReduction, RowIndex, RowSource
from ..engines import Engine
from ..kernels import Kernel


@dataclass(frozen=True, eq=False)
class OneSide:
    """Base of functions of a block of rows, with the other side of the matrix in memory.

    - `z`: rows of this side, in the dtype of the entries.
    """

    engine: Engine
    kernel: Kernel
    z: Float[Array, "m d"]

    def cast(self, block: Array) -> Array:
        """Return a block in the dtype of the entries."""
        return cast(block, self.z.dtype)


@dataclass(frozen=True, eq=False)
class Normal(OneSide, BlockReduction[Array]):
    """Sum of K' W (K v - y) over blocks of rows.

    - `weighted`, `aimed`: whether the row-aligned arguments contain weights, and after them
      targets.
    - `negated`: whether to change the sign of the targets.
    - `shift`: offset of row numbers if the rows are also columns: minus the number of the first
      column.
    """

    v: Float[Array, "m t"] | None
    weighted: bool = False
    aimed: bool = False
    negated: bool = False
    shift: int | None = None

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Float[Array, "m t"]:
        """Return the part of one block in float64."""
        parts = iter(rowwise)
        w = next(parts) if self.weighted else None
        y = next(parts) if self.aimed else None
        return self.engine.normal(
            self.kernel,
            self.cast(block),
            self.z,
            self.v,
            weights=w,
            targets=-y if self.negated and y is not None else y,
            diagonal=None if self.shift is None else start + self.shift,
        )

    def merge(self, a: Array, b: Array) -> Array:
        """Add."""
        return xp.add_(a, b)


@dataclass(frozen=True, eq=False)
class Product(OneSide):
    """K v, for `RowSource.map`; row numbers are an argument if the rows are also columns.

    Attributes
    ----------
    v : Array of shape (m, t)
    device : str or torch.device
        Device of the result.
    dtype : dtype
        Dtype of the result.
    """

    v: Float[Array, "m t"]
    device: xp.Device
    dtype: xp.DType

    @cached_property
    def _against(self) -> Callable[[Array], Array]:
        return self.engine.against(self.kernel, self.z, self.v)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without the packed columns of the engine."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields of a frozen instance."""
        self.__dict__.update(state)

    def __call__(self, block: Array, at: RowIndex | None = None) -> Float[Array, "b t"]:
        """Return the rows of one block."""
        x = self.cast(block)
        if at is None:
            out = self._against(x)
        else:
            out = self.engine.matvec(self.kernel, x, self.z, self.v, diagonal=at.first)
        return xp.cast(xp.to_device(out, self.device), self.dtype)


@dataclass(frozen=True, eq=False)
class RowProduct:
    """K v for any rows on the host, without an operator for each of them.

    - `size`: rows in a block at most.
    """

    product: Product
    size: int

    def __call__(self, rows: RowSource) -> Float[Array, "n t"]:
        """Return the product with local rows, in the dtype of the vectors."""
        return rows.map(self.product, size=self.size)


def evaluate_entries(
    engine: Engine,
    kernel: Kernel,
    z: Float[Array, "m d"],
    first: int,
    device: xp.Device,
    block: Array,
    at: RowIndex | None = None,
) -> Float[Array, "b m"]:
    """Return rows of K on a device, in the dtype of `z`, whose first column has a number.

    Row numbers are an argument if the rows are also columns.
    """
    start = None if at is None else at.first - first
    K = engine.block(kernel, cast(block, z.dtype), z, diagonal=start)
    return xp.to_device(K, device)


def change_entries(
    entries: BlockFn, change: BlockFn, numbered: bool, block: Array, *rowwise: Any
) -> Array:
    """Return a function of a strip of entries and of the row-aligned arguments.

    If `numbered`, the first of these is the row numbers, for rows that are also columns.
    """
    at, other_arguments = (rowwise[:1], rowwise[1:]) if numbered else ((), rowwise)
    return change(entries(block, *at), *other_arguments)


def evaluate_gradients(
    engine: Engine,
    kernel: Kernel,
    z: Float[Array, "m d"],
    v: Float[Array, "m t"],
    device: xp.Device,
    dtype: xp.DType,
    block: Array,
) -> Float[Array, "b t d"]:
    """Return gradients of the predictor k(., z) v, on a device, in a dtype."""
    out = engine.gradients(kernel, cast(block, z.dtype), z, v)
    return xp.cast(xp.to_device(out, device), dtype)


def evaluate_diagonal(
    kernel: Kernel, dtype: xp.DType, device: xp.Device, block: Array
) -> Float[Array, " b"]:
    """Return k(x, x), computed in a dtype, on a device."""
    return xp.to_device(kernel.diag(cast(block, dtype)), device)
