"""Memory of a fit by cells, for rows, passes and temporary files, and cells solved at once."""

from __future__ import annotations

from ..._messages.checks import as_count, is_integer, readable_bytes
from ..._messages.errors import ParameterError, TextError
from ..._parallel.machine import machine_memory
from ..._parallel.workers import default_threads
from ..._parameters.types import CellsLike
from ...cells import MedianSplits, Partition, partitions
from ...data import RowSource
from ...operators import Engine
from ..settings.settings import FitSettings

BLOCK_BYTES = 1 << 28
"""Memory for rows that are routed at once: each cell then has many of them."""

BYTES_PER_ROW = 200
"""Bytes of a routed row in addition to three copies: cells and numbers, before sorting."""

ROUTING_SECONDS = 2e-6
"""Seconds to divide and write a row of a cell: 1.6e-6 for 6 features on one core of an EPYC."""

MEMORY_SHARE = 2
"""Rows by cells are held in memory if twice their bytes fit there."""

BLOCK_SHARE = 8
"""Rows that are routed at once take at most one part in eight of the memory."""


def partition_of(given: CellsLike) -> Partition:
    """Return the partition that the parameter ``cells`` names.

    Raise ValueError if it is not a number of rows, the name of a partition, or a partition.
    """
    if isinstance(given, Partition):
        return given
    if is_integer(given):
        return MedianSplits(rows=as_count(given, "cells"))
    if isinstance(given, str):
        return partitions.make(given)
    expected = (
        "None, the largest number of rows of a cell, the name of a partition "
        f"({', '.join(partitions)}) or an object of gramian.cells"
    )
    raise ParameterError("cells", given, expected)


def rows_bytes(partition: Partition, rows: RowSource, targets: int) -> int:
    """Return the bytes of the rows of all cells, with their row numbers and coefficients.

    Rows in the overlap of cells count several times.
    """
    n, d = rows.shape
    return int(partition.total_cell_rows(n) * (d * rows.dtype.itemsize + 8 + 8 * targets))


def passes_bytes(settings: FitSettings, rows: RowSource, targets: int) -> int:
    """Return the bytes of a pass over rows: its blocks, and targets before and after scaling.

    Remote rows take no local memory.
    """
    n, d = rows.shape
    if not rows.fits():
        return 0
    # Few rows do not fill a block.
    blocks = min(routed_block_bytes(settings), n * (BYTES_PER_ROW + 3 * d * rows.dtype.itemsize))
    return 2 * 8 * n * targets + blocks


def routed_block_bytes(settings: FitSettings) -> int:
    """Return the bytes of a block of rows that are routed to their cells at once."""
    limit = settings.limit
    return BLOCK_BYTES if limit is None else min(BLOCK_BYTES, limit // BLOCK_SHARE)


def temporary_file_bytes(
    settings: FitSettings, partition: Partition, rows: RowSource, targets: int
) -> int:
    """Return the bytes of temporary files of a fit by cells: 0 if all of it fits in memory.

    Raise ValueError if targets and blocks of rows alone do not fit in ``memory_limit``.
    """
    limit = machine_memory() if settings.limit is None else settings.limit
    least_bytes = passes_bytes(settings, rows, targets)
    if least_bytes > limit:
        raise TextError(
            f"a fit by cells needs {readable_bytes(least_bytes)} for targets and blocks of rows, "
            f"but {{memory_limit}} is {readable_bytes(limit)}; raise {{memory_limit}}"
        )
    need = rows_bytes(partition, rows, targets)
    # The solvers of the cells need memory, too: the rows may take half of the limit.
    return need if MEMORY_SHARE * need > limit else 0


def workers_of(cells: int, engine: Engine) -> int:
    """Return the number of cells to solve at once, which is the number of threads of the BLAS."""
    # A device computes one cell after the other: several would only share it.
    return min(default_threads(), cells) if engine.device_bytes() is None else 1
