"""Products of a kernel operator, computed block by block."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import cast, dense
from ..data import (
    ArrayRows,
    RowIndex,
    RowNumbers,
    RowSource,
    RowWeights,
    Targets,
    refuse_remote,
)
from ..engines import Engine
from ..engines._devices import lacks_memory, release_cached
from ..kernels import Kernel
from .block_functions import (
    Normal,
    Product,
    RowProduct,
    evaluate_entries,
    evaluate_gradients,
)
from .budget import Budget
from .factors import Factors
from .kept import Kept
from .mirrored import MANY_FEATURES

logger = logging.getLogger("gramian")

GRADIENT_COPIES = 3
"""Copies of the gradients of a block: sums, on the host, and in the requested dtype."""


@dataclass
class CostMeter:
    """Counter of kernel evaluations, a cost that does not depend on the hardware.

    The meter also stores the block size that fits a device, after a block has exceeded its memory.
    """

    evaluations: int = 0
    largest_block: int = sys.maxsize


class Streaming:
    """Products with one side of the matrix in the memory of the engine, the other streamed.

    Attributes as for `KernelOperator`, which defines the products; this class computes them.
    """

    kernel: Kernel
    rows: RowSource
    cols: RowSource
    engine: Engine
    memory_bytes: int
    host_bytes: int
    meter: CostMeter
    device: xp.Device
    stored_entries: Kept | None
    factors: Factors | None

    @property
    def shape(self) -> tuple[int, int]:
        """The pair (n, m)."""
        return self.rows.shape[0], self.cols.shape[0]

    @property
    def dtype(self) -> xp.DType:
        """Dtype of kernel entries."""
        dtype: xp.DType = xp.promote_types(self.rows.dtype, self.cols.dtype)
        return dtype

    def fed_rows(self) -> RowSource:
        """Return the rows as a source whose blocks are on the device of this operator."""
        return self.rows if xp.is_host(self.device) else self.engine.feed(self.rows)

    def _product(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        # The cheapest way comes first: stored entries, then factors of sparse rows, then each pair
        # once for both triangles, and finally one evaluation for each entry.
        if self.stored_entries is not None:
            return xp.cast_like(self.stored_entries.product(v), v)
        factors = self._factors_for(v.shape[1])
        if factors is not None:
            self._count()
            return xp.cast_like(factors.product(v), v)
        if self._fits_twice(v.shape[1]):
            self.meter.evaluations += self.engine.symmetric_evaluations(self.shape[0])
            x = self._hold(self.rows, v.shape[1])
            return xp.cast_like(self.engine.symmetric(self.kernel, x, self.engine.place(v)), v)
        self._count()
        can_hold = self.cols.fits() and self._budget(v.shape[1]).holds(self.shape[1])
        # Columns of rows that cannot be held must be; otherwise `_stream_rows` raises an error.
        if can_hold or not self.rows.fits():
            return self._stream_rows(v)
        # Keep as many rows as fit in memory, and pass over the columns: K v = k(cols, rows)' v.
        size = self._budget(v.shape[1]).resident_rows(self.shape[0])
        return self.rows.map(self._against_block(v, size), *self._row_numbers(), size=size)

    def _stream_normal(
        self,
        v: Array | None,
        weights: RowWeights | None,
        targets: Targets | None,
        like: RowNumbers,
    ) -> Array:
        """Return K' W (K v - y) with all columns in memory, in the dtype of v or float64."""
        if self.stored_entries is not None:
            # Without v there is no dtype to return the result in: float64, as the caller sums it
            # up.
            product = self.stored_entries.normal(v, weights, targets)
            return xp.cast(xp.to_device(product, like.device), xp.float64 if v is None else v.dtype)
        self._count()
        factors = self._factors_for(like.shape[1])
        if factors is not None:
            total = factors.normal(v, weights, targets)
            return xp.cast(total, xp.float64 if v is None else v.dtype)
        z, placed = (
            self._hold(self.cols, like.shape[1]),
            None if v is None else self.engine.place(v),
        )
        rowwise = [x for x in (weights, targets) if x is not None]
        fn = Normal(
            self.engine,
            self.kernel,
            z,
            placed,
            weighted=weights is not None,
            aimed=targets is not None,
            # Row numbers go along only where rows and columns are the same: they tell the engine
            # where the diagonal is, whose entries must be exact.
            shift=0 if self._same else None,
        )
        size = self._budget(like.shape[1]).rows_per_pass(self.shape[1])
        total = self._pass(self.rows, lambda rows, most: rows.fold(fn, *rowwise, size=most), size)
        return xp.cast(xp.to_device(total, like.device), xp.float64 if v is None else v.dtype)

    def _factors_for(self, t: int) -> Factors | None:
        """Return the factors, if they exist and their intermediate vectors fit in memory."""
        factors_found = self.factors
        return (
            None
            if factors_found is None or factors_found.vector_bytes(t) > self.memory_bytes
            else factors_found
        )

    def _against_columns(self, z: Array, first: int) -> Float[Array, "n k"]:
        """Return the side of the columns z, whose first column has the number `first`."""
        fn = partial(evaluate_entries, self.engine, self.kernel, z, first, self.device)
        n, _ = self.shape
        in_memory = self.rows.random_access and self.rows.fits() and not self.rows.sparse
        if in_memory and self._on_host and self._budget(1).holds_beside(n, z.shape[0]):
            # The workers write each entry to its place, so that no thread copies blocks.
            ((_, block),) = self.rows.blocks(n)
            return fn(block, *self._row_numbers())
        size = self._budget(1).rows_per_pass(z.shape[0], result=z.shape[0] * z.itemsize)
        return self.fed_rows().map(fn, *self._row_numbers(), size=size)

    def _stream_gradients(self, rows: RowSource, v: Array) -> Array:
        """Return gradients at any rows, with all columns in memory."""
        # Other rows than the rows of the operator: their number of features is not checked yet, and
        # the error of a product would not name the numbers.
        (s, d), t = rows.shape, v.shape[1]
        if d != self.cols.shape[1]:
            raise ValueError(
                f"rows and columns must have the same number of features, not {d} and "
                f"{self.cols.shape[1]}"
            )
        z, placed = self._hold(self.cols, t), self.engine.place(v)
        self.meter.evaluations += s * self.shape[1]
        fn = partial(evaluate_gradients, self.engine, self.kernel, z, placed, v.device, v.dtype)
        size = self._budget(t).rows_per_pass(self.shape[1], result=GRADIENT_COPIES * t * d * 8)
        return self._pass(rows, lambda source, most: source.map(fn, size=most), size)

    @property
    def _keeps(self) -> bool:
        """Whether entries may be stored, which requires the host and rows that can be held."""
        can_hold = self.rows.fits() and self.cols.fits()
        return can_hold and self.engine.on_host and xp.is_host(self.device)

    @property
    def _same(self) -> bool:
        return self.rows is self.cols

    def _fits_twice(self, t: int) -> bool:
        """Return whether the rows fit in memory on both sides at once."""
        can_hold = self.rows.random_access and self.rows.fits() and not self.rows.sparse
        n, _ = self.shape
        return self._same and can_hold and self._budget(t).holds_beside(n, n)

    @property
    def _has_many_features(self) -> bool:
        """Whether evaluating each pair of rows once, and copying it, saves time."""
        return self.rows.shape[1] >= MANY_FEATURES

    @property
    def _on_host(self) -> bool:
        """Whether entries are computed and stored on the host."""
        return self.engine.device_bytes() is None and xp.is_host(self.device)

    def _row_numbers(self) -> list[RowIndex]:
        return [RowIndex(self.shape[0])] if self._same else []

    def _count(self) -> None:
        self.meter.evaluations += self.shape[0] * self.shape[1]

    def _cast(self, block: Array) -> Array:
        return cast(block, self.dtype)

    def _row_product(self, v: Array) -> RowProduct:
        """Return K v as a function of the rows, with all columns in memory."""
        z, placed = self._hold(self.cols, v.shape[1]), self.engine.place(v)
        fn = Product(self.engine, self.kernel, z, placed, v.device, v.dtype)
        return RowProduct(fn, self._budget(v.shape[1]).rows_per_pass(self.shape[1]))

    def _stream_rows(self, v: Array) -> Array:
        K, at = self._row_product(v), self._row_numbers()
        return self._pass(self.rows, lambda rows, most: rows.map(K.product, *at, size=most), K.size)

    def _against_block(self, v: Array, held: int) -> Callable[..., Array]:
        size = self._budget(v.shape[1]).rows_per_pass(min(held, self.shape[0]))

        def outer(block: Array, at: RowIndex | None = None) -> Array:
            z = self.engine.place(dense(self._cast(block)))
            # Rows and columns have changed places, and with them the sign of the offset of the
            # diagonal.
            shift = None if at is None else -at.first
            fn = Normal(self.engine, self.kernel, z, None, aimed=True, negated=True, shift=shift)
            total = self._pass(self.cols, lambda cols, most: cols.fold(fn, v, size=most), size)
            return xp.cast_like(total, v)

        return outer

    def _pass(self, source: RowSource, run: Callable[[RowSource, int], Array], size: int) -> Array:
        """Stream a source in blocks of at most `size` rows, or of half if a device lacks memory.

        The pass then starts again, once, and later passes use the smaller size.
        """
        # Limits of devices are estimates, because other programs use them, too. The whole pass
        # starts again, as a fold cannot take back a block; the meter keeps the smaller size for all
        # operators that share it.
        rows, size = self.engine.feed(source), min(size, self.meter.largest_block)
        try:
            return run(rows, size)
        except RuntimeError as error:
            if not lacks_memory(error):
                raise
            block_size = min(size, source.shape[0])
            # Half a row does not exist: the device has no memory at all.
            if block_size == 1:
                raise
        self.meter.largest_block = block_size // 2
        logger.warning(
            "%s has not enough memory for blocks of %d rows; restarting the pass with %d",
            self.engine, block_size, block_size // 2,
        )  # fmt: skip
        # The allocator of torch keeps the freed blocks of the failed size, which would not be free
        # for smaller ones.
        release_cached()
        return run(rows, block_size // 2)

    def _hold(self, side: RowSource, t: int) -> Array:
        """Return all rows of one side in memory; raise ValueError if they exceed the budget."""
        refuse_remote(
            side,
            "all rows of {!r} would be centers in memory, but these rows are on a cluster; set "
            "{landmarks} and {solver='falkon'}",
            side,
        )
        self._budget(t).check(side.shape[0])
        return self._gather(side)

    def _gather(self, side: RowSource) -> Array:
        """Return all rows of one side in memory, which the budget must hold."""
        # An array is read as one block, without the copy that gathering its rows would make.
        if isinstance(side, ArrayRows):
            return self.engine.place(xp.cast(next(iter(side.blocks(side.shape[0])))[1], self.dtype))
        return self.engine.place(dense(self._cast(side.take(xp.arange(side.shape[0])))))

    def holds_columns(self) -> bool:
        """Return whether the memory budget holds all columns, as `strips` requires."""
        return self._budget(1).holds(self.shape[1])

    def _budget(self, t: int) -> Budget:
        d = max(self.rows.width, self.cols.width)
        itemsize, device = self.dtype.itemsize, self.engine.device_bytes()
        limit = self.memory_bytes if device is None else min(self.memory_bytes, device)
        return Budget(self.engine, limit, d, itemsize, t)
