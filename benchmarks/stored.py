"""A square kernel matrix kept in memory: for curves in which only passes count, not seconds."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gramian.operators import KernelOperator


class StoredSquare(KernelOperator):
    """An operator whose products come from its matrix, in the dtype of the rows."""

    @classmethod
    def of(cls, K: KernelOperator) -> StoredSquare:
        return cls(K.kernel, K.rows, K.cols, K.engine, K.memory_bytes, K.meter)

    @cached_property
    def matrix(self) -> Tensor:
        return self.dense()

    @cached_property
    def _wide(self) -> StoredSquare:
        wide = super().double()
        return self if wide is self else StoredSquare.of(wide)

    def double(self) -> StoredSquare:
        return self._wide

    def __matmul__(self, v: Any) -> Tensor:
        self.meter.evaluations += self.matrix.numel()
        return (self.matrix @ v.to(self.matrix.dtype)).to(v.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows and columns, evaluated by the engine, or rows of the matrix."""
        if isinstance(key, tuple):
            return KernelOperator.__getitem__(_plain(self), key)
        return _Rows(self, key)


def _plain(K: KernelOperator) -> KernelOperator:
    return KernelOperator(K.kernel, K.rows, K.cols, K.engine, K.memory_bytes, K.meter)


class _Rows:
    def __init__(self, K: StoredSquare, rows: Tensor) -> None:
        self.K, self.rows = K, rows

    def __matmul__(self, v: Tensor) -> Tensor:
        matrix = self.K.matrix
        self.K.meter.evaluations += len(self.rows) * len(matrix)
        return (torch.index_select(matrix, 0, self.rows) @ v.to(matrix.dtype)).to(v.dtype)
