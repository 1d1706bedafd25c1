"""Training data placed on the host or on a device, with their kernel operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ...data import ArrayRows, RowSource
from ...kernels import Kernel
from ...operators import Engine, KernelOperator
from ...solvers import Solver
from ..inputs.training_data import TrainingData
from .memory import FitSize
from .placement import COPIED_AT_ONCE, Placement, resident_bytes


@dataclass(frozen=True)
class PlacedData:
    """Training data on the host or on a device, and the kernel operator of all rows.

    Attributes
    ----------
    unplaced_data : TrainingData
        Data before placement, to place again if more landmarks than expected need the memory.
    K : KernelOperator of shape (n, n)
    limit : int or None
        Memory limit of the host in bytes; None for all memory of the machine.
    """

    unplaced_data: TrainingData
    data: TrainingData
    K: KernelOperator
    solver: Solver[Any, Any]
    size: FitSize
    limit: int | None

    @classmethod
    def place(
        cls,
        data: TrainingData,
        kernel: Kernel,
        engine: Engine,
        solver: Solver[Any, Any],
        size: FitSize,
        limit: int | None,
    ) -> PlacedData:
        """Move the data to a device if they fit there together with the solver's state."""
        data = data if solver.leaves_targets else data.with_local_numbers()
        where = Placement.of(engine, solver, size, limit)
        placed_data = _move_data(data, where, engine)
        rows = placed_data.rows
        K = KernelOperator(
            kernel, rows, rows, engine, where.block_bytes,
            host_bytes=where.host_blocks, device=where.device,
        )  # fmt: skip
        return cls(data, placed_data, K, solver, size, limit)

    def with_landmarks(self, m: int) -> PlacedData:
        """Return the data with memory for more landmarks than planned, if necessary on the host."""
        if m <= self.size.m:
            return self
        # The bytes of rows on the device count as free: the rows may move back to the host.
        size, held_bytes = replace(self.size, m=m), resident_bytes(self.data.rows)
        where = Placement.of(self.K.engine, self.solver, size, self.limit, held_bytes)
        return replace(self, size=size)._at(where)

    def _at(self, where: Placement) -> PlacedData:
        same = (where.device, where.with_rows) == (
            str(self.K.device),
            resident_bytes(self.data.rows) > 0,
        )
        # Always from the unplaced data: rows need not be read back from the device.
        data = self.data if same else _move_data(self.unplaced_data, where, self.K.engine)
        K = replace(
            self.K,
            rows=data.rows,
            cols=data.rows,
            memory_bytes=where.block_bytes,
            host_bytes=where.host_blocks,
            device=where.device,
        )
        return replace(self, data=data, K=K)


def _move_data(data: TrainingData, where: Placement, engine: Engine) -> TrainingData:
    """Return training data, which are on the host, moved to the device of a placement."""
    if xp.is_host(where.device):
        return data
    rows = data.rows
    # Rows that are on the device already are not copied.
    if where.with_rows and not rows.remote and not resident_bytes(rows):
        row_bytes = rows.shape[1] * rows.dtype.itemsize
        rows = _copy_rows(engine.feed(rows), max(1, COPIED_AT_ONCE // row_bytes))
    weights = None if data.weights is None else xp.to_device(data.weights, where.device)
    return replace(
        data, rows=rows, targets=xp.to_device(data.targets, where.device), weights=weights
    )


def _copy_rows(rows: RowSource, size: int) -> ArrayRows:
    """Return all rows as one array on the device of their blocks, read `size` rows at a time."""
    copied: Array | None = None
    for part, block in rows.blocks(size):
        # The first block tells the device and dtype, which the source itself may not know.
        copied = xp.empty(rows.shape, like=block) if copied is None else copied
        copied[part] = block
    if copied is None:
        raise ValueError(f"{rows!r} has no rows")
    return ArrayRows(copied, feature_names=rows.feature_names)
