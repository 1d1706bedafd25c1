"""Products of compressed sparse rows, by compiled code where it was built, else by SciPy."""

from __future__ import annotations

import functools
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .rows import as_scipy, csr, of_scipy, stored_parts

logger = logging.getLogger("gramian")

NATIVE_MODULE = "gramian.engines._native"


class Columns:
    """Columns that occur in some sparse rows: other columns do not contribute to inner products.

    Computed by compiled code where it was built, by torch elsewhere.

    Parameters
    ----------
    x : Tensor of shape (m, d)

    Attributes
    ----------
    rows : Tensor of shape (m, u)
        The rows x without empty columns; the order of columns is arbitrary.
    """

    def __init__(self, x: Tensor) -> None:
        # Compiled code takes plain pointers, and so contiguous tensors.
        columns, native = x.col_indices().contiguous(), load_compiled()
        if native is None:
            # Sorted, as the search in `_find_columns` needs it. Compiled code numbers columns by a
            # hash table, in the order in which they come.
            self._known, positions = torch.unique(columns, return_inverse=True)
            count = len(self._known)
        else:
            positions = torch.empty_like(columns)
            self._compiled = native.Columns(columns, positions)
            count = self._compiled.count
        self.rows = csr(x.crow_indices(), positions, x.values(), (x.shape[0], count))

    def of(self, x: Tensor) -> Tensor:
        """Return the entries of sparse rows (b, d) in these columns, (b, u)."""
        shape = (x.shape[0], self.rows.shape[1])
        if load_compiled() is None:
            return csr(*self._find_columns(x), shape)
        parts = tuple(part.contiguous() for part in stored_parts(x))
        # Room for all entries: how many are in known columns is a result of the same pass.
        crow, col, values = (torch.empty_like(part) for part in parts)
        compiled_rows = self._compiled.narrow(*parts, crow, col, values)
        return csr(crow, col[:compiled_rows], values[:compiled_rows], shape)

    def normal(
        self,
        x: Tensor,
        w: Float[Tensor, "u t"] | None,
        weights: Float[Tensor, " b"] | None,
        targets: Float[Tensor, "b t"] | None,
    ) -> Float[Tensor, "u t"]:
        """Return X' W (X w - y) in float64, where X is these columns of sparse rows."""
        w, weights, targets = (
            None if part is None else part.double().contiguous() for part in (w, weights, targets)
        )
        if load_compiled() is None:
            return normal(self.of(x), w, weights, targets)
        # At least one of the two is not None; either has t columns.
        t = next(part.shape[1] for part in (w, targets) if part is not None)
        out = torch.zeros(self.rows.shape[1], t, dtype=torch.float64)
        parts = tuple(part.contiguous() for part in stored_parts(x))
        self._compiled.normal(*parts, w, weights, targets, out)
        return out

    def _find_columns(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        known_columns, col = self._known, x.col_indices()
        # An entry beyond the last known column gets the last number, which the comparison below
        # rejects; without the limit it would index past the end.
        number = torch.searchsorted(known_columns, col).clamp(max=max(len(known_columns) - 1, 0))
        is_known = (
            known_columns[number] == col
            if len(known_columns)
            else torch.zeros_like(col, dtype=torch.bool)
        )
        # counts[e] is how many of the first e entries stay: it turns the old row starts into the
        # new ones without a loop over rows.
        counts = torch.zeros(len(is_known) + 1, dtype=torch.int64)
        counts[1:] = is_known.cumsum(dim=0)
        return counts[x.crow_indices()], number[is_known], x.values()[is_known]


def transpose_sparse(x: Tensor) -> Tensor:
    """Return the transpose (u, m) of sparse rows (m, u), ready as the right factor of products."""
    transposed_rows = of_scipy(as_scipy(x).T.tocsr())
    if load_compiled() is not None:
        # Built now, outside the measured products, and kept for all blocks of left sides.
        _right_side(transposed_rows)
    return transposed_rows


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the dense product of sparse rows (b, u) with a sparse matrix (u, m).

    Computed by compiled code where it was built, by SciPy elsewhere.

    Parameters
    ----------
    left, right : Tensor of shape (b, u) and (u, m)
        Factors of one dtype.
    out : Tensor of shape (b, m), optional
        Memory for the product.
    """
    if out is None:
        out = torch.empty(left.shape[0], right.shape[1], dtype=left.dtype)
    if load_compiled() is None:
        return out.copy_(torch.from_numpy((as_scipy(left) @ as_scipy(right)).toarray()))
    # Compiled code writes into `out` where that is possible; else the product needs a temporary
    # matrix of its size.
    direct = out.dtype == left.dtype and out.is_contiguous()
    result = out if direct else torch.empty(out.shape, dtype=left.dtype)
    _right_side(right).product(*stored_parts(left), result)
    return out if direct else out.copy_(result)


_RIGHT_SIDES = WeakTensorKeyDictionary()
"""Compiled right sides of products, for the lifetime of their tensors."""


def _right_side(x: Tensor) -> Any:
    # Kept by tensor, not by contents: a right side is used for every block of a pass, and is
    # released with its tensor.
    right_side = _RIGHT_SIDES.get(x)
    if right_side is None:
        right_side = load_compiled().SparseRight("best", *stored_parts(x), x.shape[1])
        _RIGHT_SIDES[x] = right_side
    return right_side


def times(x: Tensor, v: Float[Tensor, "u t"]) -> Float[Tensor, "b t"]:
    """Return sparse rows (b, u) times v, in the dtype of v or of x, whichever has more digits."""
    return torch.from_numpy(as_scipy(x) @ v.numpy())


def normal(
    x: Tensor, w: Tensor | None, weights: Tensor | None, targets: Tensor | None
) -> Float[Tensor, "u t"]:
    """Return x' W (x w - y) in float64 for sparse rows x, (b, u)."""
    terms = [] if w is None else [times(x, w)]
    terms += [] if targets is None else [targets.neg()]
    # X w - y, of which either part may be missing.
    residual = torch.stack(terms).sum(dim=0)
    return transposed_times(x, residual if weights is None else residual * weights[:, None])


def transposed_times(x: Tensor, v: Float[Tensor, "b t"]) -> Float[Tensor, "u t"]:
    """Return x' v of sparse rows (b, u), in a dtype as in `times`."""
    return torch.from_numpy(as_scipy(x).T @ v.numpy())


@functools.cache
def load_compiled() -> Any:
    """Return the module of compiled code; None where it was not built.

    A module that was built from older sources is not used; a warning is logged.
    """
    if find_spec(NATIVE_MODULE) is None:
        return None
    module = import_module(NATIVE_MODULE)
    # A module without this class was built from older sources, whose functions may differ as well.
    if not hasattr(module, "Columns"):
        logger.warning(
            "%s was built from older sources: SciPy computes products of sparse rows until you "
            "rebuild it (pip install .)", NATIVE_MODULE
        )  # fmt: skip
        return None
    return module
