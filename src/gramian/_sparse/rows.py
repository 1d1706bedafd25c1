"""Compressed sparse rows: slices, columns, scales and norms, which torch lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

WIDE_FEATURES = 1 << 14
"""Features beyond which points stay sparse that are made dense otherwise, such as landmarks.

Products with dense points are faster up to some thousand features; a million landmarks' features
have no room.
"""


def is_wide(x: Tensor) -> bool:
    """Return whether points are sparse, with more features than are made dense."""
    return is_sparse(x) and x.shape[1] > WIDE_FEATURES


def dense(x: Tensor) -> Tensor:
    """Return points as a dense tensor; wide sparse points are returned unchanged."""
    return x.to_dense() if is_sparse(x) and not is_wide(x) else x


def is_sparse(x: Tensor) -> bool:
    """Return whether `x` is a matrix in compressed sparse row form."""
    return x.layout == torch.sparse_csr


def csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Build a sparse matrix from the three parts of `stored_parts`, without checks."""
    # Checks of the invariants would read all indices in each slice. The parts come from a valid
    # matrix.
    return torch.sparse_csr_tensor(crow, col, values, size=shape, check_invariants=False)


def slice_rows(x: Tensor, start: int, stop: int) -> Tensor:
    """Return rows `start` to `stop` of `x`, (n, d), dense or sparse; values are not copied."""
    if not is_sparse(x):
        return x[start:stop]
    # torch has no slices of sparse rows. Only the row starts are new memory.
    crow = x.crow_indices()[start : stop + 1]
    lo, hi = int(crow[0]), int(crow[-1])
    shape = (len(crow) - 1, x.shape[1])
    return csr(crow - crow[0], x.col_indices()[lo:hi], x.values()[lo:hi], shape)


def take_rows(x: Tensor, index: Int[Tensor, " k"]) -> Tensor:
    """Return rows of `x`, (n, d), dense or sparse, by their numbers, as new memory."""
    # torch lacks indexing of sparse rows by a tensor; SciPy has it, on the same memory.
    return of_scipy(as_scipy(x)[index.numpy()]) if is_sparse(x) else x[index]


def take_columns(x: Tensor, columns: Sequence[int]) -> Float[Tensor, "n k"]:
    """Return some columns of `x`, (n, d), dense or sparse, as a dense tensor."""
    chosen = list(columns)
    if not is_sparse(x):
        return x[:, chosen]
    return torch.from_numpy(as_scipy(x)[:, chosen].toarray()).to(x.device)


def scale_columns(x: Tensor, factor: Tensor) -> Tensor:
    """Return x diag(factor) for one factor, or one per column."""
    if not is_sparse(x):
        return x * factor
    # A diagonal matrix scales each entry by the factor of its column: the pattern stays.
    scale = factor if factor.ndim == 0 else factor[x.col_indices()]
    return csr(x.crow_indices(), x.col_indices(), x.values() * scale, (x.shape[0], x.shape[1]))


def scale_rows(x: Tensor, factor: Tensor) -> Tensor:
    """Return diag(factor) x for one factor per row."""
    if not is_sparse(x):
        return x * factor[:, None]
    values = x.values() * factor[_row_of_entry(x)]
    return csr(x.crow_indices(), x.col_indices(), values, (x.shape[0], x.shape[1]))


def squared_norms(x: Tensor) -> Tensor:
    """Return the squared norm of each row of `x`, (n, d), as (n,)."""
    if not is_sparse(x):
        return (x * x).sum(dim=1)
    # Entries are added up by row; rows without entries keep the zero.
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
    # 1. Each row grows by k entries, so that row i starts k i places later.
    new_crow = crow + k * torch.arange(n + 1, device=x.device)
    col = torch.empty(len(x.values()) + n * k, dtype=crow.dtype, device=x.device)
    values = torch.empty(len(col), dtype=x.dtype, device=x.device)
    # 2. Old entries move by k places for each row before theirs.
    old = torch.arange(len(x.values()), device=x.device) + k * _row_of_entry(x)
    col[old], values[old] = x.col_indices(), x.values()
    # 3. New entries fill the k places at the end of each row: column numbers stay sorted.
    for i, column in enumerate(columns):
        at = new_crow[1:] - k + i
        col[at], values[at] = d + i, column
    return csr(new_crow, col, values, (n, d + k))


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `x` with entries of `dtype`, in the layout of `x`."""
    if x.dtype == dtype or not is_sparse(x):
        return x.to(dtype)
    return csr(x.crow_indices(), x.col_indices(), x.values().to(dtype), (x.shape[0], x.shape[1]))


def are_equal(x: Tensor, z: Tensor) -> bool:
    """Return whether points are the same, sparse ones entry by entry as they are stored."""
    if not (is_sparse(x) and is_sparse(z)):
        # A dense and a sparse matrix of equal numbers count as the same.
        return torch.equal(dense(x), dense(z))
    return x.shape == z.shape and all(
        torch.equal(a, b) for a, b in zip(stored_parts(x), stored_parts(z), strict=True)
    )


def stored_parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three parts of sparse rows: starts of rows, and columns and values of entries."""
    return x.crow_indices(), x.col_indices(), x.values()


def as_scipy(x: Tensor) -> scipy.sparse.csr_array:
    """Return sparse rows as a matrix of SciPy."""
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return scipy.sparse.csr_array(
        tuple(part.cpu().numpy() for part in parts), shape=(x.shape[0], x.shape[1])
    )


def of_scipy(x: scipy.sparse.csr_array) -> Tensor:
    """Return sparse rows of SciPy, in its memory where the types allow that."""
    crow, col = (torch.from_numpy(part.astype("int64")) for part in (x.indptr, x.indices))
    return csr(crow, col, torch.from_numpy(x.data), (x.shape[0], x.shape[1]))


def distances(x: Float[Tensor, "s d"]) -> Float[Tensor, " p"]:
    """Return the Euclidean distances of all pairs of distinct sparse rows, in float64.

    They are computed from inner products, so that the distance of nearly equal rows is rounding.
    Cost: s² inner products for s rows.
    """
    # Equal rows are left out beforehand: their distance of 0 would come out as rounding.
    rows = as_scipy(cast(x, torch.float64))[_distinct(x)]
    G = torch.from_numpy((rows @ rows.T).toarray())
    squares = G.diagonal()
    i, j = torch.triu_indices(len(G), len(G), offset=1)
    # Cancellation can leave a small negative number for nearly equal rows, which has no root.
    return (squares[i] + squares[j] - 2 * G[i, j]).clamp(min=0).sqrt()


def _distinct(x: Tensor) -> list[int]:
    """Return the numbers of the distinct rows: the first of each group of equal rows."""
    crow = x.crow_indices().tolist()
    col, values = x.col_indices().numpy(), x.values().numpy()
    first: dict[bytes, int] = {}
    for i, (start, stop) in enumerate(itertools.pairwise(crow)):
        # A dictionary keeps the order of insertion, so that the numbers are increasing.
        first.setdefault(col[start:stop].tobytes() + values[start:stop].tobytes(), i)
    return list(first.values())
