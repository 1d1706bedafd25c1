"""Kernel operator: a kernel, two sets of rows and an engine that behave like a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .. import _arrays as xp
from .. import data
from .._arrays import Array, Float, Int
from .._parallel.workers import default_threads
from .._sparse import dense, is_sparse
from ..data import (
    BlockFn,
    RowNumbers,
    RowSource,
    RowWeights,
    Rowwise,
    Targets,
    as_rows,
    cast_rows,
    subset,
)
from ..engines import Engine, choose_engine, choose_within_memory
from ..kernels import Kernel
from .block_functions import RowProduct, change_entries, evaluate_diagonal, evaluate_entries
from .budget import strip_rows
from .factors import Factors, have_factors
from .kept import Kept, KeptMatrix, KeptTriangle, triangle_entries
from .mirrored import evaluations, mirror_products
from .streaming import CostMeter, Streaming

MOST_TAKEN = 1 << 23
"""Entries of selected remote rows up to which they are gathered in memory."""


@dataclass(frozen=True, init=False)
class KernelOperator(Streaming):
    """The n x m matrix k(rows, cols), computed tile by tile and not stored.

    ``K @ v``, ``K.T @ u``, ``K[i]``, ``K[i, j]``, `diag`, `dense` and `normal` have the same
    meaning as for a matrix. If both sides are the same row source, the diagonal is exactly k(x, x).

    Parameters
    ----------
    kernel : Kernel
    rows, cols : RowSource, or anything `as_rows` takes
        n and m rows of d features. A product holds one side in memory and streams the other.
    engine : str or Engine, default="auto"
        See `choose_engine`: an engine without tiles for the kernel and these rows raises an error.
        In a derived operator, such as the result of `double`, the tiled engine on the same device
        replaces it.
    memory_bytes : int, default=2**30
        Budget for blocks and workspace; the caller provides the vectors of a product. On a device,
        the budget of the engine applies if it is less.
    meter : CostMeter, optional
        Counter of kernel evaluations, shared by all operators derived from this one.
    host_bytes : int, optional
        Budget for blocks that are assembled on the host; `memory_bytes` if None, which may be the
        budget of a device.
    device : str or torch.device, default="cpu"
        Device of returned entries, and of the vectors of algorithms that use this operator. A
        product is on the device of its vector.
    inherited : Engine, optional
        Engine of the operator from which this one is derived, passed by `dataclasses.replace`. The
        user has not chosen it for these rows, so it may be replaced.
    stored_entries : Kept, optional
        Stored entries, see `keeping`; dropped if they belong to other rows.

    Attributes
    ----------
    shape : tuple of int
        ``(n, m)``.
    engine : Engine
        Engine of all products, chosen from the kernel, the rows and their dtype.
    dtype : dtype
        Dtype of kernel entries: the wider one of the two sides. Sums run in float64, and a product
        has the dtype and the device of its vector.
    """

    kernel: Kernel
    rows: RowSource
    cols: RowSource
    engine: Engine
    memory_bytes: int
    meter: CostMeter = field(compare=False)
    host_bytes: int
    device: xp.Device
    inherited: Engine = field(compare=False, repr=False)
    stored_entries: Kept | None = field(compare=False, repr=False)
    factors: Factors | None = field(init=False, compare=False, repr=False)

    # Written out, because fields such as the rows are converted from arguments of other types.
    def __init__(
        self,
        kernel: Kernel,
        rows: Any,
        cols: Any,
        engine: str | Engine = "auto",
        memory_bytes: int = 1 << 30,
        meter: CostMeter | None = None,
        host_bytes: int | None = None,
        device: str | xp.Device = "cpu",
        *,
        inherited: Engine | None = None,
        stored_entries: Kept | None = None,
    ) -> None:
        source = as_rows(rows)
        _set(self, kernel=kernel, rows=source, cols=source if rows is cols else as_rows(cols))
        derived = inherited is not None and engine is inherited
        chosen, memory_bytes = self._engine_for(engine, memory_bytes, derived=derived)
        _set(self, engine=chosen, inherited=chosen, memory_bytes=memory_bytes)
        _set(self, meter=CostMeter() if meter is None else meter, device=xp.device(device))
        _set(self, host_bytes=memory_bytes if host_bytes is None else host_bytes, factors=None)
        stored = None if stored_entries is None else stored_entries.of(kernel, self.rows, self.cols)
        _set(self, stored_entries=stored)
        if self.rows.shape[1] != self.cols.shape[1]:
            raise ValueError(
                "rows and columns must have the same number of features, not "
                f"{self.rows.shape[1]} and {self.cols.shape[1]}"
            )

    @property
    def T(self) -> KernelOperator:
        """The transpose: rows and columns change places."""
        return replace(self, rows=self.cols, cols=self.rows)

    def double(self) -> KernelOperator:
        """Return this operator with entries computed in float64."""
        if self.dtype == xp.float64:
            return self
        rows = cast_rows(self.rows, xp.float64)
        # One object for both sides: engines find the exact diagonal by identity.
        cols = rows if self._same else cast_rows(self.cols, xp.float64)
        operator = replace(self, rows=rows, cols=cols)
        # Stored entries are dropped, because they have been rounded to float32; factors are built
        # again from the wider rows.
        return operator if self.factors is None else operator.with_factors(self.factors.nbytes)

    def keeping(self, memory_bytes: int, *, whole: bool = True) -> KernelOperator:
        """Return this operator with all entries evaluated and stored, if `memory_bytes` suffice.

        Later products, `normal`, and products with some of its rows then read the stored entries.

        Parameters
        ----------
        memory_bytes : int
        whole : bool, default=True
            If False and both sides are the same rows, store only the lower triangle, for products
            with all rows; other products evaluate the entries again.

        Notes
        -----
        Cost: n m kernel evaluations, or n² / 2 for a triangle, and as many numbers in the dtype of
        the entries. Rows on other machines, and entries on a device, are not kept.
        """
        n, m = self.shape
        triangle = not whole and self._same and not self.rows.sparse
        numbers = triangle_entries(n) if triangle else n * m
        # No error: without stored entries, products are slower but the same.
        if not self._keeps or numbers * self.dtype.itemsize > memory_bytes:
            return self
        stored_entries: Kept
        if triangle:
            self.meter.evaluations += numbers
            X = self._hold(self.rows, 1)
            stored_entries = KeptTriangle.build(self.kernel, self.rows, X, self.engine)
        else:
            stored_entries = KeptMatrix(self.kernel, self.rows, self.cols, self.dense())
        return replace(self, stored_entries=stored_entries)

    def __matmul__(self, v: Any) -> Array:
        """Return K v for a tensor or array of shape (m, t) or (m,), in its dtype.

        Integers and booleans are multiplied in float64, and so is their product.
        Cost: n m kernel evaluations; n (n + 1) / 2 if both sides are the same dense source with
        random access that fits the budget: each pair of rows is then evaluated once, except by
        engines that evaluate all entries, see `Engine.symmetric_evaluations`.
        """
        vector = _floating(xp.asarray(v))
        self._check_rows("v", vector, self.shape[1])
        if vector.ndim == 1:
            return self._product(vector[:, None])[:, 0]
        return self._product(vector)

    def row_product(self, v: Float[Array, "m t"]) -> RowProduct | None:
        """Return a function that computes k(rows, cols) v for any rows with the same features.

        Of few rows, a call costs little more than their kernel evaluations. None if a side is
        remote, the engine computes on a device, or the columns exceed the budget.
        """
        if not (self._keeps and self._budget(v.shape[1]).holds(self.shape[1])):
            return None
        return self._row_product(v)

    def normal(
        self,
        v: Float[Array, "m t"] | None,
        weights: RowWeights | None = None,
        targets: Targets | None = None,
    ) -> Float[Array, "m t"]:
        """Return K' W (K v - y) in one pass over the rows: the inner loop of FALKON.

        Parameters
        ----------
        v : Array of shape (m, t), or None
            Vectors; without them, the result is -K' W y.
        weights : Array of shape (n,), optional
            The diagonal of W; ones if None.
        targets : Array of shape (n, t), optional
            The targets y; zero if None.

        Returns
        -------
        Array of shape (m, t)
            The product in the dtype of `v`; in float64 without `v`.

        Notes
        -----
        Cost: n m kernel evaluations. The m columns are in memory; without `v`, only as many columns
        as fit, with a pass over the rows for each part.
        """
        v = None if v is None else _floating(v)
        like = v if v is not None else targets
        if like is None:
            raise ValueError("normal needs v or targets")
        n, m = self.shape
        for name, vector, rows in (("v", v, m), ("weights", weights, n), ("targets", targets, n)):
            self._check_rows(name, vector, rows)
        if v is None and not self._budget(like.shape[1]).holds(m):
            # Columns that do not fit are streamed by the transposed product, which needs no K v.
            u = xp.to_float64(like) if weights is None else xp.to_float64(weights)[:, None] * like
            return -(self.T @ u)
        return self._stream_normal(v, weights, targets, like)

    def gradients(self, rows: Any, coef: Any) -> Array:
        """Return the gradients of the predictor k(., cols) coef at other rows.

        Parameters
        ----------
        rows : RowSource, or anything `as_rows` takes
            s dense rows of d features. At a column, a kernel with a kink has the slope zero.
        coef : Array of shape (m, t) or (m,)
            The coefficients of t predictors.

        Returns
        -------
        Array of shape (s, t, d), or (s, d) of one predictor
            Entry (i, c) is the gradient of sum_j k(x, z_j) coef_jc at row i, in the dtype and on
            the device of `coef`.

        Raises
        ------
        ValueError
            If the kernel has no gradients, the rows are sparse or have other features, or the
            columns, which are held in memory, exceed the budget.

        Notes
        -----
        Cost: s m kernel evaluations and 2 s m t d operations. Memory: the budget and the result.
        """
        coef = _floating(xp.asarray(coef))
        self._check_rows("coef", coef, self.shape[1])
        if coef.ndim == 1:
            return self._stream_gradients(as_rows(rows), coef[:, None])[:, 0]
        return self._stream_gradients(as_rows(rows), coef)

    def __getitem__(self, key: Any) -> KernelOperator:
        """Return the rows ``K[i]``, or rows and columns ``K[i, j]``, without evaluating them."""
        if not isinstance(key, tuple):
            return replace(self, rows=self._select(self.rows, key))
        i, j = key
        rows = self._select(self.rows, i)
        # Identity of the row numbers keeps the diagonal exact. Equal copies do not.
        same = self.rows is self.cols and i is j
        return replace(
            self, rows=rows, cols=rows if same else self._select(self.cols, j, held=True)
        )

    def at(self, index: Int[Array, " k"]) -> KernelOperator:
        """Return the operator of the rows at increasing indices; remote rows stay remote."""
        return replace(self, rows=subset(self.rows, index))

    def columns(self, j: Int[Array, " k"] | slice) -> KernelOperator:
        """Return the columns K[:, j], without evaluating them."""
        return replace(self, cols=self._select(self.cols, j, held=True))

    def against(self, points: RowSource | Array) -> KernelOperator:
        """Return the operator of the same rows with other columns, which may be any points."""
        return replace(self, cols=as_rows(points))

    def diag(self) -> Float[Array, " n"]:
        """Return the diagonal; only an operator with the same rows and columns has one."""
        if not self._same:
            raise ValueError("diag needs an operator whose rows and columns are the same source")
        return self.rows.map(
            partial(evaluate_diagonal, self.kernel, self.dtype, self.device),
            size=self._budget(1).rows_per_pass(1),
        )

    def dense(self) -> Float[Array, "n m"]:
        """Return the matrix. Cost: n m kernel evaluations; memory: n m numbers and the budget.

        About half the evaluations suffice if both sides are the same rows with many features, on
        the host.
        """
        n, m = self.shape
        # Rows in memory on both sides are mapped and cast once.
        if self._on_host and self._fits_twice(1):
            x = self._gather(self.rows)
            if self._has_many_features:
                self.meter.evaluations += evaluations(n)
                return mirror_products(self.kernel, x, self.engine)
            self._count()
            return self.engine.block(self.kernel, x, x, diagonal=0)
        self._count()
        if self.holds_columns():
            return self._against_columns(self._hold(self.cols, 1), 0)
        out = xp.empty((n, m), self.dtype, device=self.device)
        for part, block in self.cols.blocks(self._budget(1).resident_rows(m)):
            out[:, part] = self._against_columns(dense(self._cast(block)), part.start)
        return out

    def strips(self) -> Iterator[tuple[slice, Float[Array, "b m"]]]:
        """Yield blocks of rows of the matrix, in order, for algorithms that need its entries."""
        self._count()
        z = self._hold(self.cols, 1)
        size = strip_rows(z.shape[0], z.itemsize, self.memory_bytes)
        for rows, block in self.fed_rows().blocks(size):
            # The block's first row is the column of that number, where the entry is exact.
            start = rows.start if self._same else None
            K = self.engine.block(self.kernel, self._cast(block), z, diagonal=start)
            yield rows, xp.to_device(K, self.device)

    def over_strips(self, change: BlockFn, *rowwise: Rowwise) -> Array:
        """Concatenate ``change(strip, *slices)`` over `strips` of local or remote rows.

        `change` returns a row for each row of a strip; for remote rows it must support pickle.
        """
        self._count()
        z = self._hold(self.cols, 1)
        size = strip_rows(z.shape[0], z.itemsize, self.memory_bytes)
        entries = partial(evaluate_entries, self.engine, self.kernel, z, 0, self.device)
        fn = partial(change_entries, entries, change, self._same)
        return self.fed_rows().map(fn, *self._row_numbers(), *rowwise, size=size)

    def points(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        """Return rows `index` as points, for columns; mapped from a file if beyond the budget."""
        return self.on_device(data.gather_rows(self.rows, index, self.host_bytes))

    def with_factors(self, most_bytes: int) -> KernelOperator:
        """Return this operator with factors of K in memory, if K has factors and they fit.

        Bilinear kernels of wide sparse rows have factors. Products and `normal` multiply by them:
        they contain only the columns in which the points have entries, so that later passes do not
        search for these columns. With all rows as columns, a product costs two multiplications for
        each entry of the rows, not n² kernel evaluations. Operators derived from this one have no
        factors, except `double`. Cost: a pass over the rows.
        """
        if not (xp.is_host(self.device) and self.engine.on_host and self.cols.sparse):
            return self
        if not self.holds_columns():
            return self
        z = self._hold(self.cols, 1)
        if not have_factors(self.kernel, self.rows, z):
            return self
        # The factors belong to a copy, because operators are immutable for their users.
        operator = replace(self)
        factors = Factors.of(
            self.kernel, self.rows, z,
            same=self._same, most_bytes=most_bytes, threads=default_threads(),
        )  # fmt: skip
        _set(operator, factors=factors)
        return operator

    def fitting_device(self, size: int) -> KernelOperator:
        """Return this operator, moved to the host if its device may lack `size` free bytes."""
        return self if size <= self.memory_bytes else replace(self, device="cpu")

    def on_device(self, points: Array) -> Array:
        """Return points on the device of this operator; sparse or too many points stay."""
        small = xp.size(points) * points.itemsize <= self.memory_bytes
        return points if is_sparse(points) or not small else xp.to_device(points, self.device)

    def _engine_for(
        self, engine: str | Engine, memory_bytes: int, *, derived: bool
    ) -> tuple[Engine, int]:
        """Return the engine of this operator, and the bytes for it."""
        # The side whose machine computes products: a side that this process cannot hold.
        side = self.cols if self.rows.fits() else self.rows
        kernel, dtype, sparse = self.kernel, self.dtype, self.rows.sparse or self.cols.sparse
        # An engine that the user named is refused rather than replaced, and an inherited one is
        # replaced.
        if not derived or isinstance(engine, str):
            ask = partial(choose_engine, engine, dtype=dtype, kernel=kernel, sparse=sparse)
            return side.call_at_rows(ask), memory_bytes
        chosen_engine = side.call_at_rows(partial(choose_engine, engine, dtype=dtype))
        return choose_within_memory(chosen_engine, kernel, memory_bytes, dtype=dtype, sparse=sparse)

    def _select(self, side: RowSource, key: Any, *, held: bool = False) -> RowSource:
        if isinstance(key, slice) and key == slice(None) and not side.fits():
            return side
        index = _row_numbers(side, key)
        room = self.host_bytes // side.dtype.itemsize
        most_entries = room if held else min(MOST_TAKEN, room)
        # Few remote rows are fetched once, because every product would fetch them again.
        if len(index) * side.width <= most_entries and not side.fits():
            return as_rows(side.take(index))
        return subset(side, index)

    def _check_rows(self, name: str, vector: RowNumbers | None, rows: int) -> None:
        if vector is not None and vector.shape[0] != rows:
            raise ValueError(
                f"K has shape {self.shape}, which does not match {name} of shape "
                f"{tuple(vector.shape)}: {name} needs {rows} rows"
            )


def _set(operator: KernelOperator, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(operator, name, value)


def _row_numbers(side: RowSource, key: Any) -> Int[Array, " k"]:
    if isinstance(key, slice):
        key = xp.arange(*key.indices(side.shape[0]))
    if not xp.is_array(key) or key.ndim != 1 or xp.dtype_of(key) not in (xp.int64, xp.int32):
        raise TypeError(
            "an index of rows or columns must be a slice or a 1-D array of row numbers (for a "
            f"mask, np.flatnonzero(mask)), not {key!r}"
        )
    return key


def _floating(v: Array) -> Array:
    """Return a vector of floating-point numbers, because integers would truncate a product."""
    if xp.is_complex(v):
        raise TypeError(f"a kernel matrix can only be multiplied by real vectors, not by {v.dtype}")
    return v if xp.is_floating(v) else xp.to_float64(v)
