"""Placement of a fit on the host or on a device, and training data with their operator there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ..._messages.checks import readable_bytes
from ..._messages.errors import TextError
from ..._parallel.machine import machine_memory
from ...data import ArrayRows, RowSource
from ...kernels import Kernel
from ...operators import Engine, KernelOperator
from ...solvers import BLOCK_BYTES, Solver
from ..inputs.training_data import TrainingData
from .memory import (
    FitSize,
    chosen_bytes,
    dense_bytes,
    divide_memory,
    least_blocks,
)

SHARE_OF_BLOCKS = 4
"""One part in four of a device's memory stays free for blocks."""

BLOCK_ROWS = 1024
"""Rows of a block for which there must be room on a device."""

COPIED_AT_ONCE = 1 << 26
"""Bytes of the rows that are read at once when all of them go to a device."""


@dataclass(frozen=True)
class Placement:
    """Device of an engine if the state of a solver fits there, else the host.

    - `device`: device of vectors, the matrix of the landmarks, factors and eigenvectors.
    - `with_rows`: whether the rows are copied to the device, once; else they are sent in each
      pass.
    - `host_bytes`, `device_bytes`: bytes that a solver keeps on each, rows included, blocks
      excluded.
    - `block_bytes`: memory for blocks of rows, on the device if the engine has one.
    - `host_blocks`: memory of the host for blocks that are assembled on the host.
    """

    device: str
    with_rows: bool
    host_bytes: int
    device_bytes: int
    block_bytes: int
    host_blocks: int

    @classmethod
    def of(
        cls,
        engine: Engine,
        solver: Solver[Any, Any],
        size: FitSize,
        limit: int | None,
        held: int = 0,
    ) -> Placement:
        """Place rows, vectors and matrices of a fit where they fit.

        - `limit`: bytes of the host; the engine states the memory of the device.
        - `held`: bytes of the device that placed data already take.

        Raise ValueError if the fit exceeds both memories; the message says what would fit.
        """
        free_bytes = engine.free_bytes()
        if free_bytes is None:
            return cls._on_host(solver, size, limit)
        dense = dense_bytes(solver, size)
        # The bytes of a device that must stay free for blocks and panels.
        # With all rows as centers, the columns need not be held at once either.
        columns = 1 if size.full else size.m
        block = engine.workspace_bytes(columns, size.d, size.t, size.itemsize)
        block += BLOCK_ROWS * engine.row_bytes(size.d, size.t, size.itemsize)
        least_bytes = max(least_blocks(size), 2 * block) + solver.panel_bytes(size)
        # Too little memory on the device: the engine then gets blocks from the host.
        if dense + least_bytes > free_bytes + held:
            return cls._on_host(solver, size, limit)
        host = machine_memory() if limit is None else limit
        if host < least_blocks(size):
            raise TextError(
                f"sending blocks of rows to {engine.device} needs "
                f"{readable_bytes(least_blocks(size))} of host memory, but {{memory_limit}} is "
                f"{readable_bytes(host)}: raise the limit"
            )
        rows, remaining_bytes = size.n * size.d * size.itemsize, free_bytes + held - dense
        # Rows on the device save their transfer in each pass, if they leave enough for blocks.
        with_rows = (
            size.dense
            and rows + max(least_bytes, remaining_bytes // SHARE_OF_BLOCKS) <= remaining_bytes
        )
        remaining_bytes -= rows * with_rows
        waiting = max(least_blocks(size), min(BLOCK_BYTES, host // 4))
        blocks = max(least_bytes, remaining_bytes // 2)
        # Two blocks wait on the host, too.
        if not with_rows:
            blocks = min(blocks, max(least_bytes, host // 2))
        return cls(engine.device, with_rows, 0, dense + rows * with_rows, blocks, waiting)

    @classmethod
    def _on_host(cls, solver: Solver[Any, Any], size: FitSize, limit: int | None) -> Placement:
        kept_bytes, blocks = divide_memory(limit, solver, size)
        return cls("cpu", False, kept_bytes, 0, blocks, blocks)

    def bytes_with_blocks(
        self, engine: Engine, solver: Solver[Any, Any], size: FitSize
    ) -> tuple[int, int]:
        """Return the peak memory of host and device, including blocks of rows."""
        row_bytes = engine.row_bytes(size.d, size.t, size.itemsize)
        workspace = engine.workspace_bytes(size.m, size.d, size.t, size.itemsize)
        blocks = min(self.block_bytes, workspace + row_bytes * min(size.n, engine.largest_block))
        if engine.on_host:
            chosen = chosen_bytes(solver, size, self.block_bytes)
            return self.host_bytes + min(self.block_bytes, max(blocks, chosen)), 0
        # Two blocks wait in pinned memory while two others are on the device,
        # so that transfers and products overlap.
        streamed = min(size.n, max(1, (blocks - workspace) // row_bytes)) * size.d * size.itemsize
        pinned = 2 * min(streamed, COPIED_AT_ONCE) if self.with_rows else 2 * streamed
        return self.host_bytes + pinned + 8 * size.t * size.m, self.device_bytes + blocks


def resident_bytes(rows: RowSource) -> int:
    """Return the bytes of rows that are on a device already; 0 for rows on the host."""
    # The first row of an array shows its device.
    if not isinstance(rows, ArrayRows) or xp.is_host(xp.device_of(next(rows.blocks(1))[1])):
        return 0
    return rows.shape[0] * rows.shape[1] * rows.dtype.itemsize


@dataclass(frozen=True)
class PlacedData:
    """Training data on the host or on a device, and the kernel operator of all rows.

    - `unplaced_data`: data before placement, to place again if more landmarks than expected need
      the memory.
    - `limit`: memory limit of the host in bytes; None for all memory of the machine.
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
    if where.with_rows and rows.fits() and not resident_bytes(rows):
        row_bytes = rows.shape[1] * rows.dtype.itemsize
        # All rows as one array on the device of their blocks, read `size` rows at a time.
        rows = engine.feed(rows)
        copied: Array | None = None
        for part, block in rows.blocks(max(1, COPIED_AT_ONCE // row_bytes)):
            # The first block tells the device and dtype, which the source itself may not know.
            copied = xp.empty(rows.shape, like=block) if copied is None else copied
            copied[part] = block
        if copied is None:
            raise ValueError(f"{rows!r} has no rows")
        rows = ArrayRows(copied, feature_names=rows.feature_names)
    weights = None if data.weights is None else xp.to_device(data.weights, where.device)
    return replace(
        data, rows=rows, targets=xp.to_device(data.targets, where.device), weights=weights
    )
