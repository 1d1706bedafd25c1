"""Placement of the rows, vectors and matrices of a fit on the host or on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ... import _arrays as xp
from ..._messages.checks import readable_bytes
from ..._messages.errors import TextError
from ..._parallel.machine import machine_memory
from ...data import ArrayRows, RowSource
from ...operators import Engine
from ...solvers import BLOCK_BYTES, Solver
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

    Attributes
    ----------
    device : str
        Device of vectors, the matrix of the landmarks, factors and eigenvectors.
    with_rows : bool
        Whether the rows are copied to the device, once; else they are sent in each pass.
    host_bytes, device_bytes : int
        Bytes that a solver keeps on each, rows included, blocks excluded.
    block_bytes : int
        Memory for blocks of rows, on the device if the engine has one.
    host_blocks : int
        Memory of the host for blocks that are assembled on the host.
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

        Parameters
        ----------
        limit : int or None
            Bytes of the host; the engine states the memory of the device.
        held : int, default=0
            Bytes of the device that placed data already take.

        Raises
        ------
        ValueError
            If the fit exceeds both memories; the message says what would fit.
        """
        free_bytes = engine.free_bytes()
        if free_bytes is None:
            return cls._on_host(solver, size, limit)
        dense = dense_bytes(solver, size)
        least_bytes = _least_on_device(engine, solver, size)
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


def _least_on_device(engine: Engine, solver: Solver[Any, Any], size: FitSize) -> int:
    """Return the bytes of a device that must stay free for blocks and panels."""
    # With all rows as centers, the columns need not be held at once either.
    columns = 1 if size.full else size.m
    block = engine.workspace_bytes(columns, size.d, size.t, size.itemsize)
    block += BLOCK_ROWS * engine.row_bytes(size.d, size.t, size.itemsize)
    return max(least_blocks(size), 2 * block) + solver.panel_bytes(size)


def resident_bytes(rows: RowSource) -> int:
    """Return the bytes of rows that are on a device already; 0 for rows on the host."""
    # The first row of an array shows its device.
    if not isinstance(rows, ArrayRows) or xp.is_host(xp.device_of(next(rows.blocks(1))[1])):
        return 0
    return rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
