"""A square kernel matrix kept in memory: for curves in which only passes count, not seconds."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian.operators import DenseBlock, KernelOperator


class StoredSquare(KernelOperator):
    """An operator whose products come from its entries, evaluated once."""

    @classmethod
    def of(cls, K: KernelOperator) -> StoredSquare:
        return cls(K.kernel, K.rows, K.cols, K.engine, K.memory_bytes, K.meter)

    @cached_property
    def stored(self) -> DenseBlock:
        return DenseBlock(self.dense())

    @cached_property
    def _wide(self) -> StoredSquare:
        wide = xp.to_float64(super())
        return self if wide is self else StoredSquare.of(wide)

    def double(self) -> StoredSquare:
        return self._wide

    def __matmul__(self, v: Any) -> np.ndarray:
        return xp.cast(self.stored @ v, v.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows and columns, evaluated by the engine, or rows of what is kept."""
        if isinstance(key, tuple):
            plain = KernelOperator(self.kernel, self.rows, self.cols, self.engine)
            return plain[key]
        return self.stored[key]
