"""Stored entries: a kernel matrix that is evaluated once, for many products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float, Int
from .._parallel.workers import default_threads, run
from ..data import Complement, RowSource, Subset
from ..engines import Engine
from ..engines._tiles.sizes import PARTS_PER_THREAD, bounds_of, sum_of
from ..kernels import Kernel
from .stored_rows import StoredRows, residual, transpose_vectors

STRIP_ROWS = 256
"""Rows of a strip of a triangle."""


@dataclass(frozen=True, eq=False)
class Kept(ABC):
    """The entries of the matrix of a kernel between two row sources.

    An operator derived from the operator of these sources uses them if it has the same columns.
    """

    kernel: Kernel
    rows: RowSource
    cols: RowSource

    @abstractmethod
    def of(self, kernel: Kernel, rows: RowSource, cols: RowSource) -> Kept | None:
        """Return the stored entries of given rows and columns; None if they are not stored."""

    @abstractmethod
    def product(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        """Return K v in float64."""

    @abstractmethod
    def normal(
        self,
        v: Float[Array, "m t"] | None,
        weights: Float[Array, " n"] | None,
        targets: Float[Array, "n t"] | None,
    ) -> Float[Array, "m t"]:
        """Return K' W (K v - y) in float64; see `KernelOperator.normal`."""


@dataclass(frozen=True, eq=False)
class KeptMatrix(Kept):
    """All stored entries of a kernel matrix.

    - `row_index`: indices of the rows in use; None for all rows.
    - `turned`: whether the matrix is the transpose of these entries.
    - `compiled`: whether to use compiled products if available; None: if they are faster.
    """

    entries: Float[Array, "n m"]
    row_index: Int[Array, " k"] | None = None
    turned: bool = False
    compiled: bool | None = None

    def of(self, kernel: Kernel, rows: RowSource, cols: RowSource) -> KeptMatrix | None:
        if kernel is not self.kernel:
            return None
        # An operator and its transpose share the entries, so both orientations are compared.
        for turned, (own, other_rows) in enumerate(((rows, cols), (cols, rows))):
            if other_rows is not self.cols:
                continue
            if own is self.rows:
                return replace(self, row_index=None, turned=bool(turned))
            if (row_numbers := numbers_in(self.rows, own)) is not None:
                return replace(self, row_index=row_numbers, turned=bool(turned))
        return None

    def product(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        if self.turned:
            # E' v is the normal product of the targets -v without its first term.
            return self._sum(None, None, -v, v.shape[1])
        out = xp.empty((self._count, v.shape[1]), xp.float64)
        vectors = transpose_vectors(v, self.entries.dtype)
        parts = self._parts()
        for _ in run(default_threads(), lambda part: part.write_product(vectors, out), parts):
            pass
        return out

    def normal(
        self,
        v: Float[Array, "m t"] | None,
        weights: Float[Array, " n"] | None,
        targets: Float[Array, "n t"] | None,
    ) -> Float[Array, "m t"]:
        if self.turned:
            # The transposed matrix is multiplied in two passes, because its rows are columns in
            # memory.
            u = residual(None if v is None else self.product(v), weights, targets)
            return replace(self, turned=False).product(u)
        like = targets if v is None else v
        assert like is not None
        return self._sum(v, weights, targets, like.shape[1])

    def _sum(
        self,
        v: Float[Array, "m t"] | None,
        weights: Float[Array, " k"] | None,
        targets: Float[Array, "k t"] | None,
        t: int,
    ) -> Float[Array, "m t"]:
        """Return E' W (E v - y) for the entries of the rows in use."""
        vectors = None if v is None else transpose_vectors(v, self.entries.dtype)
        w, y = (None if x is None else xp.contiguous(xp.to_float64(x)) for x in (weights, targets))

        def part(rows: StoredRows) -> Array:
            return rows.normal(vectors, w, y, t)

        return sum_of(run(default_threads(), part, self._parts()))

    @property
    def _count(self) -> int:
        return len(self.entries) if self.row_index is None else len(self.row_index)

    def _parts(self) -> list[StoredRows]:
        """Divide the rows into ranges for the worker threads."""
        bounds = bounds_of(self._count, 1, PARTS_PER_THREAD * default_threads())
        return [StoredRows(self.entries, self.row_index, part, self.compiled) for part in bounds]


@dataclass(frozen=True, eq=False)
class KeptTriangle(Kept):
    """Entries of the lower triangle of the matrix of some rows with themselves.

    - `strips`: strips of `STRIP_ROWS` rows (the last may have fewer), up to the diagonal entry of
      their last row.
    - `compiled`: whether to use compiled products if available; None: if they are faster.
    """

    strips: Sequence[Array]
    compiled: bool | None = None

    @classmethod
    def build(
        cls, kernel: Kernel, rows: RowSource, X: Float[Array, "n d"], engine: Engine
    ) -> KeptTriangle:
        """Evaluate and store the lower triangle. Cost: n² / 2 + 128 n kernel evaluations."""
        strips = []
        for first in range(0, len(X), STRIP_ROWS):
            last = min(first + STRIP_ROWS, len(X))
            # A strip ends with its square on the diagonal, of which both triangles are stored.
            strips.append(engine.block(kernel, X[first:last], X[:last], diagonal=first))
        return cls(kernel, rows, rows, strips)

    def of(self, kernel: Kernel, rows: RowSource, cols: RowSource) -> KeptTriangle | None:
        same = kernel is self.kernel and rows is self.rows and cols is self.cols
        return self if same else None

    def product(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        """Return K v in float64; an off-diagonal entry is read once for both its sides."""
        vectors = transpose_vectors(v, self.strips[0].dtype)
        workers = min(default_threads(), len(self.strips))

        def part(worker: int) -> Array:
            out = xp.zeros(vectors.shape, xp.float64)
            for number in range(worker, len(self.strips), workers):
                strip, first = self.strips[number], number * STRIP_ROWS
                # A worker takes every `workers`-th strip: strips grow along the triangle, and
                # consecutive ones would leave the last worker with the longest.
                rows = StoredRows(strip, None, (0, len(strip)), self.compiled)
                rows.add_both(vectors, slice(first, first + len(strip)), out)
            return out

        return sum_of(run(workers, part, range(workers))).T

    def normal(
        self,
        v: Float[Array, "m t"] | None,
        weights: Float[Array, " n"] | None,
        targets: Float[Array, "n t"] | None,
    ) -> Float[Array, "m t"]:
        return self.product(residual(None if v is None else self.product(v), weights, targets))


def triangle_entries(n: int) -> int:
    """Return the number of entries of a `KeptTriangle` of n rows."""
    whole_strips, remaining_rows = divmod(n, STRIP_ROWS)
    return STRIP_ROWS**2 * whole_strips * (whole_strips + 1) // 2 + remaining_rows * n


def numbers_in(whole: RowSource, part: RowSource) -> Int[Array, " k"] | None:
    """Return the indices in `whole` of the rows of another source; None if they are unknown."""
    if not isinstance(part, Subset | Complement):
        return None
    inner = None if part.rows is whole else numbers_in(whole, part.rows)
    if inner is None and part.rows is not whole:
        return None
    index = part.index
    if isinstance(part, Complement):
        # A `Complement` knows the rows that it leaves out, and not the rows that it keeps.
        stays = xp.ones(len(part.rows), xp.bool)
        stays[part.index] = False
        index = xp.flatnonzero(stays)
    return index if inner is None else inner[index]
