"""Compressed sparse rows: row slices, scaled and appended columns, which torch lacks."""

from __future__ import annotations

import torch
from torch import Tensor


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
