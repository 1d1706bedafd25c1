"""Placement: where a fit keeps its rows, vectors and matrices, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import readable_bytes
from ..operators import Engine
from ..solvers import Solver
from .memory import Size, dense_bytes, divided, least_blocks, machine_memory

SHARE_OF_BLOCKS = 4
"""One part of so many of a device's memory stays free for blocks, however many rows there are."""


@dataclass(frozen=True)
class Placement:
    """The device of an engine if what a solver keeps fits there, else the host.

    Attributes
    ----------
    device : str
        Where vectors, the matrix of the landmarks, factors and eigenvectors are.
    with_rows : bool
        Whether the rows are copied there, once; else they are sent in each pass.
    host_bytes, device_bytes : int
        What a solver keeps on each, rows included; without blocks.
    block_bytes : int
        Memory for blocks of rows, on the device if the engine has one.
    """

    device: str
    with_rows: bool
    host_bytes: int
    device_bytes: int
    block_bytes: int

    @classmethod
    def of(
        cls, engine: Engine, solver: Solver[Any, Any], size: Size, limit: int | None
    ) -> Placement:
        """Place a fit.

        Parameters
        ----------
        engine : Engine
        solver : Solver
        size : Size
        limit : int or None
            Bytes of the host; what the device allows is the engine's to say.

        Raises
        ------
        ValueError
            If it fits on neither; the message says what would.
        """
        available = engine.device_bytes()
        dense = dense_bytes(solver, size)
        if engine.on_host or available is None or dense + least_blocks(size) > available:
            kept, blocks = divided(limit, solver, size)
            return cls("cpu", False, kept, 0, blocks)
        return cls._on_device(engine.device, available, dense, size, limit)

    @classmethod
    def _on_device(
        cls, device: str, available: int, dense: int, size: Size, limit: int | None
    ) -> Placement:
        least, rows = least_blocks(size), size.n * size.d * size.itemsize
        if limit is not None and limit < least:
            raise ValueError(
                f"sending blocks of rows to {device} needs {readable_bytes(least)} of the host, "
                f"but memory_limit is {readable_bytes(limit)}: raise the limit"
            )
        free = available - dense
        with_rows = size.pairs_once and rows <= free - max(least, free // SHARE_OF_BLOCKS)
        kept = dense + rows * with_rows
        blocks = max(least, (available - kept) // 2)
        if not with_rows:  # blocks wait on the host, too
            host = machine_memory() if limit is None else limit
            blocks = min(blocks, max(least, host // 2))
        return cls(device, with_rows, 0, kept, blocks)

    def bytes_with_blocks(self, engine: Engine, size: Size) -> tuple[int, int]:
        """Return the peak of the host and of the device, with what blocks of rows take."""
        each = engine.row_bytes(size.d, size.t, size.itemsize)
        workspace = engine.workspace_bytes(size.m, size.d, size.t, size.itemsize)
        blocks = min(self.block_bytes, workspace + each * min(size.n, engine.largest_block))
        if engine.on_host:
            return self.host_bytes + blocks, 0
        # two blocks wait in pinned memory while two others are on the device
        streamed = min(size.n, max(1, (blocks - workspace) // each))
        pinned = 0 if self.with_rows else 2 * streamed * size.d * size.itemsize
        return self.host_bytes + pinned + 8 * size.t * size.m, self.device_bytes + blocks
