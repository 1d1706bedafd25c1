"""Sparse rows of NumPy, and of torch on a device."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from ._kinds import CsrArray, is_tensor, loaded_torch


def is_sparse(x: Any) -> bool:
    """Return whether rows are sparse, compressed by rows."""
    if type(x) is np.ndarray:
        return False
    if is_tensor(x):
        return x.layout is loaded_torch().sparse_csr
    return isinstance(x, CsrArray)


def csr(
    indptr: Any, indices: Any, values: Any, shape: tuple[int, int], *, check: bool = False
) -> Any:
    """Return sparse rows: the entries of row i are at ``indptr[i]`` to ``indptr[i + 1]``."""
    if is_tensor(values):
        _spend_beta_warning()
        return loaded_torch().sparse_csr_tensor(
            indptr, indices, values, size=shape, check_invariants=check
        )
    rows = CsrArray(indptr, indices, values, shape)
    if check:
        rows.check()
    return rows


@functools.cache
def _spend_beta_warning() -> None:
    """Trigger and suppress the warning about sparse rows that torch gives once per process.

    The filter applies to this one statement, not to all creation of rows.
    """
    # `catch_warnings` changes the filters of the whole process, which is not safe with threads: it
    # must not surround the work of a pass.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = loaded_torch().zeros(1, dtype=loaded_torch().int64)
        loaded_torch().sparse_csr_tensor(
            zero, zero[:0], zero[:0], size=(0, 1), check_invariants=False
        )


def indptr(x: Any) -> Any:
    """Return the starts of sparse rows."""
    return x.crow_indices() if is_tensor(x) else x.indptr


def indices(x: Any) -> Any:
    """Return the columns of the entries of sparse rows."""
    return x.col_indices() if is_tensor(x) else x.indices


def entries(x: Any) -> Any:
    """Return the stored values of sparse rows."""
    return x.values() if is_tensor(x) else x.data


def to_dense(x: Any) -> Any:
    """Return sparse rows as a dense array, and dense rows as they are."""
    if is_tensor(x):
        return x.to_dense()
    return x.toarray() if isinstance(x, CsrArray) else x
