"""Compressed sparse rows: row slices, products and columns, which torch lacks."""

from __future__ import annotations

import functools
import itertools
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import scipy.sparse
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

logger = logging.getLogger("gramian")

MODULE = "gramian.engines._native"

WIDE = 1 << 14
"""Features beyond which points stay sparse that are made dense otherwise, such as landmarks.

Products with dense points are faster up to some thousand features; a million landmarks' features
have no room.
"""


def is_wide(x: Tensor) -> bool:
    """Return whether points are sparse, with more features than are made dense."""
    return is_sparse(x) and x.shape[1] > WIDE


def dense(x: Tensor) -> Tensor:
    """Return points without gaps; wide ones as they are."""
    return x.to_dense() if is_sparse(x) and not is_wide(x) else x


def is_sparse(x: Tensor) -> bool:
    """Return whether `x` is a matrix in compressed sparse row form."""
    return x.layout == torch.sparse_csr


def _csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(crow, col, values, size=shape, check_invariants=False)


def slice_rows(x: Tensor, start: int, stop: int) -> Tensor:
    """Return rows `start` to `stop` of `x`, (n, d), dense or sparse; values are not copied."""
    if not is_sparse(x):
        return x[start:stop]
    crow = x.crow_indices()[start : stop + 1]
    lo, hi = int(crow[0]), int(crow[-1])
    shape = (len(crow) - 1, x.shape[1])
    return _csr(crow - crow[0], x.col_indices()[lo:hi], x.values()[lo:hi], shape)


def scale_columns(x: Tensor, factor: Tensor) -> Tensor:
    """Return x diag(factor) for one factor, or one per column."""
    if not is_sparse(x):
        return x * factor
    scale = factor if factor.ndim == 0 else factor[x.col_indices()]
    return _csr(x.crow_indices(), x.col_indices(), x.values() * scale, (x.shape[0], x.shape[1]))


def scale_rows(x: Tensor, factor: Tensor) -> Tensor:
    """Return diag(factor) x for one factor per row."""
    if not is_sparse(x):
        return x * factor[:, None]
    values = x.values() * factor[_row_of_entry(x)]
    return _csr(x.crow_indices(), x.col_indices(), values, (x.shape[0], x.shape[1]))


def squared_norms(x: Tensor) -> Tensor:
    """Return the squared norm of each row of `x`, (n, d), as (n,)."""
    if not is_sparse(x):
        return (x * x).sum(dim=1)
    out = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
    return out.index_add_(0, _row_of_entry(x), x.values() ** 2)


def _row_of_entry(x: Tensor) -> Tensor:
    counts = x.crow_indices().diff()
    return torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), counts)


def append_columns(x: Tensor, *columns: Tensor) -> Tensor:
    """Return [x, columns...], (n, d + k), in the layout of `x`."""
    if not is_sparse(x):
        return torch.cat([x, *(column[:, None] for column in columns)], dim=1)
    (n, d), k = x.shape, len(columns)
    crow = x.crow_indices()
    new_crow = crow + k * torch.arange(n + 1, device=x.device)
    col = torch.empty(len(x.values()) + n * k, dtype=crow.dtype, device=x.device)
    values = torch.empty(len(col), dtype=x.dtype, device=x.device)
    old = torch.arange(len(x.values()), device=x.device) + k * _row_of_entry(x)
    col[old], values[old] = x.col_indices(), x.values()
    for i, column in enumerate(columns):
        at = new_crow[1:] - k + i
        col[at], values[at] = d + i, column
    return _csr(new_crow, col, values, (n, d + k))


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `x` with entries of `dtype`, in the layout of `x`."""
    if x.dtype == dtype or not is_sparse(x):
        return x.to(dtype)
    return _csr(x.crow_indices(), x.col_indices(), x.values().to(dtype), (x.shape[0], x.shape[1]))


def are_equal(x: Tensor, z: Tensor) -> bool:
    """Return whether points are the same, sparse ones entry by entry as they are stored."""
    if not (is_sparse(x) and is_sparse(z)):
        return torch.equal(dense(x), dense(z))
    return x.shape == z.shape and all(
        torch.equal(a, b) for a, b in zip(_stored(x), _stored(z), strict=True)
    )


def _stored(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.crow_indices(), x.col_indices(), x.values()


class Columns:
    """The columns that occur in sparse rows, by numbers: others have no part in inner products.

    By compiled code where it was built, by torch elsewhere.

    Parameters
    ----------
    x : Tensor of shape (m, d)

    Attributes
    ----------
    rows : Tensor of shape (m, u)
        These rows, of which columns without entries are left out; what is left is in no order that
        says anything.
    """

    def __init__(self, x: Tensor) -> None:
        columns, native = x.col_indices().contiguous(), _compiled()
        if native is None:
            self._known, there = torch.unique(columns, return_inverse=True)
            count = len(self._known)
        else:
            there = torch.empty_like(columns)
            self._compiled = native.Columns(columns, there)
            count = self._compiled.count
        self.rows = _csr(x.crow_indices(), there, x.values(), (x.shape[0], count))

    def of(self, x: Tensor) -> Tensor:
        """Return what sparse rows (b, d) have in these columns, (b, u)."""
        shape = (x.shape[0], self.rows.shape[1])
        if _compiled() is None:
            return _csr(*self._found(x), shape)
        given = tuple(part.contiguous() for part in _stored(x))
        crow, col, values = (torch.empty_like(part) for part in given)
        kept = self._compiled.narrow(*given, crow, col, values)
        return _csr(crow, col[:kept], values[:kept], shape)

    def normal(
        self,
        x: Tensor,
        w: Float[Tensor, "u t"] | None,
        weights: Float[Tensor, " b"] | None,
        targets: Float[Tensor, "b t"] | None,
    ) -> Float[Tensor, "u t"]:
        """Return X' W (X w - y) in float64 of sparse rows (b, d) in these columns, X of (b, u)."""
        w, weights, targets = (
            None if part is None else part.double().contiguous() for part in (w, weights, targets)
        )
        if _compiled() is None:
            return normal(self.of(x), w, weights, targets)
        t = next(part.shape[1] for part in (w, targets) if part is not None)
        out = torch.zeros(self.rows.shape[1], t, dtype=torch.float64)
        given = tuple(part.contiguous() for part in _stored(x))
        self._compiled.normal(*given, w, weights, targets, out)
        return out

    def _found(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        known, col = self._known, x.col_indices()
        number = torch.searchsorted(known, col).clamp(max=max(len(known) - 1, 0))
        kept = known[number] == col if len(known) else torch.zeros_like(col, dtype=torch.bool)
        counts = torch.zeros(len(kept) + 1, dtype=torch.int64)
        counts[1:] = kept.cumsum(dim=0)
        return counts[x.crow_indices()], number[kept], x.values()[kept]


def transposed(x: Tensor) -> Tensor:
    """Return sparse rows (m, u) by columns: (u, m), made ready to be the right side of products."""
    found = of_scipy(as_scipy(x).T.tocsr())
    if _compiled() is not None:
        _right_side(found)
    return found


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the dense product of sparse rows (b, u) with a sparse matrix (u, m).

    By compiled code where it was built, by SciPy elsewhere.

    Parameters
    ----------
    left, right : Tensor of shape (b, u) and (u, m)
        Of one dtype.
    out : Tensor of shape (b, m), optional
        Where to write it.
    """
    if out is None:
        out = torch.empty(left.shape[0], right.shape[1], dtype=left.dtype)
    if _compiled() is None:
        return out.copy_(torch.from_numpy((as_scipy(left) @ as_scipy(right)).toarray()))
    direct = out.dtype == left.dtype and out.is_contiguous()
    found = out if direct else torch.empty(out.shape, dtype=left.dtype)
    _right_side(right).product(*_stored(left), found)
    return out if direct else out.copy_(found)


_RIGHT_SIDES = WeakTensorKeyDictionary()
"""What compiled code has made of the right sides of products, for as long as these are there."""


def _right_side(x: Tensor) -> Any:
    found = _RIGHT_SIDES.get(x)
    if found is None:
        found = _compiled().SparseRight("best", *_stored(x), x.shape[1])
        _RIGHT_SIDES[x] = found
    return found


def times(x: Tensor, v: Float[Tensor, "u t"]) -> Float[Tensor, "b t"]:
    """Return sparse rows (b, u) times v, in the dtype of v or of x, whichever has more digits."""
    return torch.from_numpy(as_scipy(x) @ v.numpy())


def normal(
    x: Tensor, w: Tensor | None, weights: Tensor | None, targets: Tensor | None
) -> Float[Tensor, "u t"]:
    """Return x' W (x w - y) of sparse rows (b, u) and float64; the rest as `Columns.normal`."""
    terms = [] if w is None else [times(x, w)]
    terms += [] if targets is None else [targets.neg()]
    residual = torch.stack(terms).sum(dim=0)
    return transposed_times(x, residual if weights is None else residual * weights[:, None])


def transposed_times(x: Tensor, v: Float[Tensor, "b t"]) -> Float[Tensor, "u t"]:
    """Return x' v of sparse rows (b, u), as `times` does."""
    return torch.from_numpy(as_scipy(x).T @ v.numpy())


@functools.cache
def _compiled() -> Any:
    """Return the module of compiled code; None where it was not built.

    Nor is one taken that was built from older sources, as a log message says.
    """
    if find_spec(MODULE) is None:
        return None
    module = import_module(MODULE)
    if not hasattr(module, "Columns"):
        logger.warning(
            "%s was built from older sources: products of sparse rows are computed by SciPy until "
            "it is built again (pip install .)", MODULE
        )  # fmt: skip
        return None
    return module


def as_scipy(x: Tensor) -> scipy.sparse.csr_array:
    """Return sparse rows as SciPy has them."""
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return scipy.sparse.csr_array(
        tuple(part.cpu().numpy() for part in parts), shape=(x.shape[0], x.shape[1])
    )


def of_scipy(x: scipy.sparse.csr_array) -> Tensor:
    """Return sparse rows of SciPy, in its memory where the types allow that."""
    crow, col = (torch.from_numpy(part.astype("int64")) for part in (x.indptr, x.indices))
    return _csr(crow, col, torch.from_numpy(x.data), (x.shape[0], x.shape[1]))


def embedded(x: Float[Tensor, "s d"]) -> Float[Tensor, "s k"]:
    """Return dense rows of at most s features with the inner products of sparse rows.

    So are their distances; rows that are equal stay equal. Cost: s² inner products and the
    eigenvalues of their matrix.
    """
    first, group = _distinct(x)
    rows = as_scipy(cast(x, torch.float64))[first]
    G = torch.from_numpy((rows @ rows.T).toarray())
    values, vectors = torch.linalg.eigh(G)
    points: Tensor = vectors * values.clamp(min=0).sqrt()
    return points[group]


def _distinct(x: Tensor) -> tuple[list[int], Tensor]:
    """Return the numbers of distinct rows, and which of them each row is."""
    crow = x.crow_indices().tolist()
    col, values = x.col_indices().numpy(), x.values().numpy()
    seen: dict[bytes, int] = {}
    first: list[int] = []
    group: list[int] = []
    for i, (start, stop) in enumerate(itertools.pairwise(crow)):
        key = col[start:stop].tobytes() + values[start:stop].tobytes()
        if key not in seen:
            seen[key] = len(first)
            first.append(i)
        group.append(seen[key])
    return first, torch.tensor(group)
