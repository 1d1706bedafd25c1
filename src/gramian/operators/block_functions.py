"""Functions of one block of rows in products of a kernel operator, which workers can receive.

Each can be pickled, and contains no more than it needs, so that it can be sent to rows on other
machines; see `gramian.data.BlockReduction`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .._sparse import cast
from ..data import BlockFn, BlockReduction, RowIndex, Value
from ..engines import Engine
from ..kernels import Kernel


@dataclass(frozen=True, eq=False)
class OneSide(Value):
    """The side of a kernel matrix in memory, with the engine and the kernel.

    Attributes
    ----------
    engine : Engine
    kernel : Kernel
    z : Tensor of shape (m, d)
        Rows of this side, in the dtype of the entries.
    """

    engine: Engine
    kernel: Kernel
    z: Float[Tensor, "m d"]

    def cast(self, block: Tensor) -> Tensor:
        """Return a block in the dtype of the entries."""
        return cast(block, self.z.dtype)


@dataclass(frozen=True, eq=False)
class Normal(OneSide, BlockReduction[Tensor]):
    """Sum of K' W (K v - y) over blocks of rows.

    Attributes
    ----------
    v : Tensor of shape (m, t), or None
    weighted, aimed : bool
        Whether the row-aligned arguments contain weights, and after them targets.
    negated : bool
        Whether to change the sign of the targets.
    shift : int, optional
        Offset of row numbers if the rows are also columns: minus the number of the first column.
    """

    v: Float[Tensor, "m t"] | None
    weighted: bool = False
    aimed: bool = False
    negated: bool = False
    shift: int | None = None

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> Float[Tensor, "m t"]:
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

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return a.add_(b)


@dataclass(frozen=True, eq=False)
class Product(OneSide):
    """K v, for `RowSource.map`; row numbers are an argument if the rows are also columns.

    Attributes
    ----------
    v : Tensor of shape (m, t)
    device : torch.device
        Device of the result.
    dtype : torch.dtype
        Dtype of the result.
    """

    v: Float[Tensor, "m t"]
    device: torch.device
    dtype: torch.dtype

    def __call__(self, block: Tensor, at: RowIndex | None = None) -> Float[Tensor, "b t"]:
        """Return the rows of one block."""
        start = None if at is None else at.first
        out = self.engine.matvec(self.kernel, self.cast(block), self.z, self.v, diagonal=start)
        return out.to(self.device, self.dtype)


@dataclass(frozen=True, eq=False)
class Entries(OneSide):
    """K itself, for `RowSource.map`; row numbers are an argument if the rows are also columns.

    Attributes
    ----------
    first : int
        Number of the first column.
    device : torch.device
        Device of the result.
    """

    first: int
    device: torch.device

    def __call__(self, block: Tensor, at: RowIndex | None = None) -> Float[Tensor, "b m"]:
        """Return the rows of one block, in the dtype of the entries."""
        start = None if at is None else at.first - self.first
        K = self.engine.block(self.kernel, self.cast(block), self.z, diagonal=start)
        return K.to(self.device)


@dataclass(frozen=True, eq=False)
class Changed(Value):
    """Function of a strip of entries, for `RowSource.map`.

    Attributes
    ----------
    entries : Entries
    change : callable
        Function of a strip and of the row-aligned arguments. It can be pickled if rows are remote.
    numbered : bool
        Whether row numbers are the first argument, for rows that are also columns.
    """

    entries: Entries
    change: BlockFn
    numbered: bool

    def __call__(self, block: Tensor, *rowwise: Any) -> Tensor:
        """Return the result of one block."""
        at, other_arguments = (rowwise[:1], rowwise[1:]) if self.numbered else ((), rowwise)
        return self.change(self.entries(block, *at), *other_arguments)


@dataclass(frozen=True, eq=False)
class Gradients(OneSide):
    """Gradients of the predictor k(., z) v, for `RowSource.map`.

    Attributes
    ----------
    v : Tensor of shape (m, t)
    device : torch.device
        Device of the result.
    dtype : torch.dtype
        Dtype of the result.
    """

    v: Float[Tensor, "m t"]
    device: torch.device
    dtype: torch.dtype

    def __call__(self, block: Tensor) -> Float[Tensor, "b t d"]:
        """Return the gradients at the rows of one block."""
        out = self.engine.gradients(self.kernel, self.cast(block), self.z, self.v)
        return out.to(self.device, self.dtype)


@dataclass(frozen=True, eq=False)
class Diagonal(Value):
    """k(x, x), for `RowSource.map`.

    Attributes
    ----------
    kernel : Kernel
    dtype : torch.dtype
        Dtype of the computation.
    device : torch.device
        Device of the result.
    """

    kernel: Kernel
    dtype: torch.dtype
    device: torch.device

    def __call__(self, block: Tensor) -> Float[Tensor, " b"]:
        """Return the entries of one block."""
        return self.kernel.diag(cast(block, self.dtype)).to(self.device)
