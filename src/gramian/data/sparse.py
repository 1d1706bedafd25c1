"""Rows of a SciPy sparse matrix, kept sparse."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._sparse import WIDE
from .array import as_tensor, check_matrix, check_names
from .base import RowSource, check_index, slices
from .dtypes import NUMPY_OF, WIDE_INTEGERS, float_for, rounded_numbers, warn_of_rounding

PER_ENTRY = 3
"""Numbers that an entry takes: its value, and its column in 64 bits."""


class SparseRows(RowSource):
    """Rows of a sparse matrix; blocks are tensors in compressed sparse row form.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array of shape (n, d)
        Any format; the caller's matrix is not changed. A CSR matrix in canonical form (sorted
        indices, no duplicates) is used as it is, everything else is converted once.
    feature_names : sequence of str, optional
        One name per column.

    Notes
    -----
    The entries keep their type (counts in ``uint8`` stay so) and are converted per block. Index
    tensors are ``int64``.
    """

    sparse = True

    def __init__(self, matrix: Any, *, feature_names: Sequence[str] | None = None) -> None:
        self.shape = check_matrix(tuple(matrix.shape))
        self.dtype = float_for(matrix.dtype.name, "the sparse matrix")
        self.feature_names = check_names(feature_names, self.shape[1])
        self._matrix = canonical(matrix)
        if matrix.dtype.name in WIDE_INTEGERS:
            m = self._matrix
            for j in np.unique(m.indices[rounded_numbers(m.data)]):
                column = self.feature_names[j] if self.feature_names else int(j)
                warn_of_rounding(m.data[m.indices == j], column)
        n, d = self.shape
        if d > WIDE:
            self.entries = min(d, 1 + PER_ENTRY * self._matrix.nnz // n)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        m = self._matrix
        for rows in slices(self.shape[0], size):
            start, stop = m.indptr[rows.start], m.indptr[rows.stop]
            crow = m.indptr[rows.start : rows.stop + 1] - start
            yield rows, self._block(crow, m.indices[start:stop], m.data[start:stop])

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        part = self._matrix[index.cpu().numpy()]
        return self._block(part.indptr, part.indices, part.data)

    def _block(self, crow: np.ndarray, column: np.ndarray, values: np.ndarray) -> Tensor:
        return csr_block(crow, column, values, self.shape[1], self.dtype)


def csr_block(
    crow: np.ndarray, column: np.ndarray, values: np.ndarray, d: int, dtype: torch.dtype
) -> Tensor:
    """Return entries that SciPy has checked as compressed sparse rows of d features."""
    _spend_beta_warning()
    return torch.sparse_csr_tensor(
        as_tensor(np.require(crow, np.int64)),
        as_tensor(np.require(column, np.int64)),
        as_tensor(np.require(values, NUMPY_OF[dtype], ["C", "ALIGNED"])),
        size=(len(crow) - 1, d),
        check_invariants=False,  # unset, torch warns about the default
    )


def canonical(matrix: Any) -> Any:
    """Return a sparse matrix by rows, each with sorted columns that are there once."""
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is matrix else csr
        csr.sum_duplicates()  # sorts, too
    return csr


@functools.cache
def _spend_beta_warning() -> None:
    """Let torch say, unheard, that its sparse rows are in beta: it says so once per process.

    The filter lives for this one statement, not for as long as blocks are made.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = torch.zeros(1, dtype=torch.int64)
        torch.sparse_csr_tensor(zero, zero[:0], zero[:0], size=(0, 1), check_invariants=False)
