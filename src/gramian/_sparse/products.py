"""Products of compressed sparse rows, by compiled code where it was built, else by SciPy."""

from __future__ import annotations

import weakref
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from .._arrays.elementwise import load_compiled
from .rows import as_scipy, of_scipy, stored_parts


class Columns:
    """Columns that occur in some sparse rows: other columns do not contribute to inner products.

    Computed by compiled code where it was built, by NumPy elsewhere.

    Parameters
    ----------
    x : Array of shape (m, d)

    Attributes
    ----------
    rows : Array of shape (m, u)
        The rows x without empty columns; the order of columns is arbitrary.
    """

    def __init__(self, x: Array) -> None:
        # Compiled code takes plain pointers, and so contiguous arrays.
        columns, native = xp.contiguous(xp.indices(x)), load_compiled()
        if native is None:
            # Sorted, as the search in `_find_columns` needs it. Compiled code numbers columns by a
            # hash table, in the order in which they come.
            self._known, positions = xp.unique(columns, return_inverse=True)
            count = len(self._known)
        else:
            positions = xp.empty_like(columns)
            self._compiled = native.Columns(columns, positions)
            count = self._compiled.count
        self.rows = xp.csr(xp.indptr(x), positions, xp.entries(x), (x.shape[0], count))

    def of(self, x: Array) -> Array:
        """Return the entries of sparse rows (b, d) in these columns, (b, u)."""
        shape = (x.shape[0], self.rows.shape[1])
        if load_compiled() is None:
            return xp.csr(*self._find_columns(x), shape)
        parts = tuple(xp.contiguous(part) for part in stored_parts(x))
        # Room for all entries: how many are in known columns is a result of the same pass.
        crow, col, values = (xp.empty_like(part) for part in parts)
        compiled_rows = self._compiled.narrow(*parts, crow, col, values)
        return xp.csr(crow, col[:compiled_rows], values[:compiled_rows], shape)

    def normal(
        self,
        x: Array,
        w: Float[Array, "u t"] | None,
        weights: Float[Array, " b"] | None,
        targets: Float[Array, "b t"] | None,
    ) -> Float[Array, "u t"]:
        """Return X' W (X w - y) in float64, where X is these columns of sparse rows."""
        w, weights, targets = (
            None if part is None else xp.contiguous(xp.to_float64(part))
            for part in (w, weights, targets)
        )
        if load_compiled() is None:
            return normal(self.of(x), w, weights, targets)
        # At least one of the two is not None; either has t columns.
        t = next(part.shape[1] for part in (w, targets) if part is not None)
        out = xp.zeros((self.rows.shape[1], t), xp.float64)
        parts = tuple(xp.contiguous(part) for part in stored_parts(x))
        self._compiled.normal(*parts, w, weights, targets, out)
        return out

    def _find_columns(self, x: Array) -> tuple[Array, Array, Array]:
        known_columns, col = self._known, xp.indices(x)
        # An entry beyond the last known column gets the last number, which the comparison below
        # rejects; without the limit it would index past the end.
        number = xp.find_insertions(known_columns, col).clip(max=max(len(known_columns) - 1, 0))
        is_known = (
            known_columns[number] == col
            if len(known_columns)
            else xp.zeros_like(col, dtype=xp.bool)
        )
        # counts[e] is how many of the first e entries stay: it turns the old row starts into the
        # new ones without a loop over rows.
        counts = xp.zeros(len(is_known) + 1, xp.int64)
        counts[1:] = is_known.cumsum(axis=0)
        return counts[xp.indptr(x)], number[is_known], xp.entries(x)[is_known]


def transpose_sparse(x: Array) -> Array:
    """Return the transpose (u, m) of sparse rows (m, u), ready as the right factor of products."""
    transposed_rows = of_scipy(as_scipy(x).T.tocsr())
    if load_compiled() is not None:
        # Built now, outside the measured products, and kept for all blocks of left sides.
        _right_side(transposed_rows)
    return transposed_rows


def product(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the dense product of sparse rows (b, u) with a sparse matrix (u, m).

    Computed by compiled code where it was built, by SciPy elsewhere.

    - `left`, `right`, Array of shape (b, u) and (u, m): factors of one dtype.
    - `out`, Array of shape (b, m): memory for the product.
    """
    if out is None:
        out = xp.empty((left.shape[0], right.shape[1]), left.dtype)
    if load_compiled() is None:
        return xp.assign_(out, (as_scipy(left) @ as_scipy(right)).toarray())
    # Compiled code writes into `out` where that is possible; else the product needs a temporary
    # matrix of its size.
    direct = out.dtype == left.dtype and xp.is_contiguous(out)
    result = out if direct else xp.empty(out.shape, left.dtype)
    _right_side(right).product(*stored_parts(left), result)
    return out if direct else xp.assign_(out, result)


_RIGHT_SIDES: weakref.WeakKeyDictionary[Array, Any] = weakref.WeakKeyDictionary()
"""Compiled right sides of products, for the lifetime of their rows."""


def _right_side(x: Array) -> Any:
    # Kept by object, not by contents: a right side is used for every block of a pass, and is
    # released with its rows.
    right_side = _RIGHT_SIDES.get(x)
    if right_side is None:
        right_side = load_compiled().SparseRight("best", *stored_parts(x), x.shape[1])
        _RIGHT_SIDES[x] = right_side
    return right_side


def times(x: Array, v: Float[Array, "u t"]) -> Float[Array, "b t"]:
    """Return sparse rows (b, u) times v, in the dtype of v or of x, whichever has more digits."""
    return as_scipy(x) @ v


def normal(
    x: Array, w: Array | None, weights: Array | None, targets: Array | None
) -> Float[Array, "u t"]:
    """Return x' W (x w - y) in float64 for sparse rows x, (b, u)."""
    terms = [] if w is None else [times(x, w)]
    terms += [] if targets is None else [xp.negative(targets)]
    # X w - y, of which either part may be missing.
    residual = xp.stack(terms).sum(axis=0)
    return transposed_times(x, residual if weights is None else residual * weights[:, None])


def transposed_times(x: Array, v: Float[Array, "b t"]) -> Float[Array, "u t"]:
    """Return x' v of sparse rows (b, u), in a dtype as in `times`."""
    return as_scipy(x).T @ v
