"""Task: training data and what is to be fitted to them, placed where a fit keeps them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..data import RowSource, Subset
from ..kernels import Kernel
from ..operators import Engine, KernelOperator, copied
from ..solvers import Solver
from .memory import Size
from .placement import COPIED_AT_ONCE, Placement, resident_bytes


@dataclass(frozen=True)
class Data:
    """Validated training data: rows, targets (n, t) and weights."""

    rows: RowSource
    targets: Tensor
    weights: Tensor | None

    @classmethod
    def build(cls, rows: RowSource, targets: Tensor, weights: Tensor | None) -> Data:
        """Leave out rows of weight zero: they carry no information, not even as landmarks."""
        if weights is None or bool((weights > 0).all()):
            return cls(rows, targets, weights)
        keep = weights.nonzero()[:, 0]
        return cls(Subset(rows, keep), targets[keep], weights[keep])

    def placed(self, where: Placement, engine: Engine) -> Data:
        """Return the same where a fit keeps it."""
        rows = self.rows
        if where.with_rows and not resident_bytes(rows):
            each = rows.shape[1] * rows.dtype.itemsize
            rows = copied(engine.feed(rows), max(1, COPIED_AT_ONCE // each))
        weights = None if self.weights is None else self.weights.to(where.device)
        return Data(rows, self.targets.to(where.device), weights)


@dataclass(frozen=True)
class Task:
    """What is fitted: the data as they were given, and where they are kept with their operator."""

    given: Data
    data: Data
    K: KernelOperator
    solver: Solver[Any, Any]
    size: Size
    limit: int | None

    @classmethod
    def place(
        cls,
        data: Data,
        kernel: Kernel,
        engine: Engine,
        solver: Solver[Any, Any],
        size: Size,
        limit: int | None,
    ) -> Task:
        """Keep the data on a device if they fit there, with all that the solver keeps."""
        where = Placement.of(engine, solver, size, limit)
        K = KernelOperator(kernel, data.rows, data.rows, engine)
        return cls(data, data, K, solver, size, limit)._at(where)

    def with_landmarks(self, m: int) -> Task:
        """Return the task with more landmarks than were foreseen, elsewhere if need be."""
        if m <= self.size.m:
            return self
        size, held = replace(self.size, m=m), resident_bytes(self.data.rows)
        where = Placement.of(self.K.engine, self.solver, size, self.limit, held)
        return replace(self, size=size)._at(where)

    def _at(self, where: Placement) -> Task:
        same = (where.device, where.with_rows) == (
            str(self.K.device),
            resident_bytes(self.data.rows) > 0,
        )
        data = self.data if same else self.given.placed(where, self.K.engine)
        K = replace(
            self.K,
            rows=data.rows,
            cols=data.rows,
            memory_bytes=where.block_bytes,
            host_bytes=where.host_blocks,
            device=torch.device(where.device),
        )
        return replace(self, data=data, K=K)
