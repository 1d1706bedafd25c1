"""A square kernel matrix kept in memory: for curves in which only passes count, not seconds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gramian.operators import KernelOperator


class StoredSquare(KernelOperator):
    """An operator whose products come from its matrix, in the dtype of the rows."""

    @classmethod
    def of(cls, K: KernelOperator) -> StoredSquare:
        stored = cls(K.kernel, K.rows, K.cols, K.engine, K.memory_bytes, K.meter)
        object.__setattr__(stored, "matrix", K.dense())
        return stored

    def __matmul__(self, v: Any) -> Tensor:
        matrix: Tensor = self.matrix  # type: ignore[attr-defined]
        self.meter.evaluations += matrix.numel()
        return (matrix @ v.to(matrix.dtype)).to(v.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows and columns, evaluated by the engine, or rows of the matrix."""
        if isinstance(key, tuple):
            return super().__getitem__(key)
        return _Rows(self, key)


class _Rows:
    def __init__(self, K: StoredSquare, rows: Tensor) -> None:
        self.K, self.rows = K, rows

    def __matmul__(self, v: Tensor) -> Tensor:
        matrix: Tensor = self.K.matrix  # type: ignore[attr-defined]
        self.K.meter.evaluations += len(self.rows) * len(matrix)
        return (torch.index_select(matrix, 0, self.rows) @ v.to(matrix.dtype)).to(v.dtype)
