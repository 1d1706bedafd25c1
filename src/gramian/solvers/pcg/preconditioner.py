"""Recipe of the preconditioner of PCG: its kind, its sizes and its construction."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...lowrank import pivoted_cholesky, randomized_nystrom
from ...preconditioners import (
    BlockCholesky,
    BlockLowRank,
    InverseOfEach,
    LowRankInverse,
    blocks_of_rows,
)
from ...preconditioners.block_cholesky import COUPLING_ROWS, SAMPLE_ROWS, estimate_coupling
from ...preconditioners.low_rank import BLOCK_BYTES
from ...problems import FullProblem
from ..cost import ProblemSize

logger = logging.getLogger("gramian")

PRECONDITIONER_KINDS = (
    "rpcholesky", "nystrom", "greedy", "none", "cells", "nystrom+cells", "auto"
)  # fmt: skip

MOST_RANK = 1000
"""Largest automatic rank, for which r² memory and r³ work are negligible."""

RANK_PER_ROOT = 2
"""Automatic rank next to cells, relative to sqrt(n)."""

CELL_ROWS_PER_ROOT = {"nystrom+cells": 4, "cells": 10}
"""Rows of a cell, relative to sqrt(n): the setup, n s² operations, then takes about as long as a
constant number of products, n² entries."""

LITTLE_COUPLING = 1.0
"""Ratio of the sum of K outside of cells to the sum within, below which a factor does not pay.
Measured on 20,000 rows: 0.7 where cells alone were fastest, 3.3 and more where they were not."""

MUCH_COUPLING = 20.0
"""Ratio above which memory is better spent on more columns than on cells. Measured on 60,000 rows:
at a ratio of 17, cells with few columns were as fast as columns alone or faster; at 44 they took
up to 1.45 times as long."""

Inverse = LowRankInverse | InverseOfEach | BlockCholesky | BlockLowRank


@dataclass(frozen=True)
class Recipe:
    """Preconditioner by name, with its sizes if they are set; see `PCG`.

    - `kind`: one of `PRECONDITIONER_KINDS`.
    - `rank`, `cell_rows`: automatic if None.
    - `memory_bytes`: memory for automatic sizes.
    """

    kind: str
    rank: int | None
    cell_rows: int | None
    memory_bytes: int

    @property
    def has_cells(self) -> bool:
        """Whether the preconditioner has, or for "auto" may have, blocks of K by cells."""
        return self.kind in ("auto", *CELL_ROWS_PER_ROOT)

    def of(self, *, sparse: bool) -> Recipe:
        """Return the recipe for dense or sparse rows; "auto" has no cells for sparse rows."""
        return replace(self, kind="rpcholesky") if sparse and self.kind == "auto" else self

    def build(self, problem: FullProblem, rng: RandomStream) -> Inverse | None:
        """Build the preconditioner; None for "none"."""
        recipe, K = self.of(sparse=problem.K.rows.sparse), problem.K
        if recipe.kind == "none":
            return None
        blocks = recipe._blocks(problem, rng)
        # NaN makes both comparisons below false for the kinds that the user names.
        coupled = estimate_coupling(K, blocks, rng=rng) if recipe.kind == "auto" else math.nan
        if recipe.kind == "cells" or coupled < LITTLE_COUPLING:
            # Cells alone: there is little between the cells for the columns of a low-rank factor to
            # describe, and each column would cost n kernel evaluations.
            return BlockCholesky.build(K, blocks, problem.ridge)
        if coupled > MUCH_COUPLING:
            recipe = replace(recipe, kind="rpcholesky")
        factor, residual_trace = recipe._factor(problem, rng)
        # The trace bounds the norm of K - F F': below the ridge, the low-rank part alone bounds the
        # condition number by two, and cells could not improve it.
        if not recipe.has_cells or (recipe.kind == "auto" and residual_trace <= problem.shift):
            return LowRankInverse.build(factor, problem.ridge)
        return BlockLowRank.build(K, blocks, factor, problem.ridge)

    def rank_of(self, n: int) -> int:
        """Return the rank for n rows; an automatic rank may decrease with the spectrum."""
        if self.kind in ("none", "cells"):
            return 0
        if self.rank is not None:
            return min(self.rank, n)
        largest = RANK_PER_ROOT * math.isqrt(n) if self.has_cells else n // 10 + 1
        return max(1, min(largest, MOST_RANK, n, self._memory // (self._number_bytes * n)))

    def cell_rows_of(self, n: int, itemsize: int) -> int:
        """Return the row limit of a cell, for n rows and the bytes of an entry; 0 without cells."""
        if not self.has_cells:
            return 0
        if self.cell_rows is not None:
            return min(self.cell_rows, n)
        largest = CELL_ROWS_PER_ROOT.get(self.kind, 4) * math.isqrt(n)
        return max(1, min(n, largest, self._memory // (itemsize * n)))

    def peak_bytes(self, size: ProblemSize) -> int:
        """Return the bytes of the factors, and of the work space to build them."""
        n, r = size.n, self.rank_of(size.n)
        s = self.cell_rows_of(n, size.itemsize)
        # The factor and R, and blocks of its rows while they are built.
        factor = self._number_bytes * n * r + 8 * r * r + 2 * min(8 * n * r, BLOCK_BYTES)
        # The blocks; one of them also in float64, with its entries and rows of the factor.
        cells = n * s * size.itemsize + 16 * s * (s + r)
        # The sampled rows that determine the splits, scaled, in float64.
        split = 24 * min(n, SAMPLE_ROWS) * size.d if 0 < s < n else 0
        peak = factor + max(cells, split)
        if self.kind == "auto":
            # "auto" may use more columns and no cells.
            return max(peak, replace(self, kind="rpcholesky").peak_bytes(size))
        return peak

    def evaluations(self, size: ProblemSize) -> int:
        """Return the kernel evaluations, for "auto" as for "nystrom+cells"."""
        sampled_rows = min(COUPLING_ROWS, size.n) if self.kind == "auto" else 0
        rank, rows = self.rank_of(size.n), self.cell_rows_of(size.n, size.itemsize)
        return size.n * (sampled_rows + rank + rows)

    def operations(self, size: ProblemSize) -> float:
        """Return the operations of the factorisations."""
        r, s = float(self.rank_of(size.n)), float(self.cell_rows_of(size.n, size.itemsize))
        return size.n * (2 * r**2 + s**2 / 3 + 2 * r * s)

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes that an application of the inverse reads."""
        s = self.cell_rows_of(size.n, size.itemsize)
        return float(size.n) * (16 * self.rank_of(size.n) + size.itemsize * s)

    @property
    def _memory(self) -> int:
        """Bytes for the factor, and for the cells: half of the memory if both exist, else all."""
        both = self.has_cells and self.kind != "cells"
        return self.memory_bytes // 2 if both else self.memory_bytes

    @property
    def _number_bytes(self) -> int:
        """Bytes per entry of the factor, including temporary copies."""
        return 40 if self.kind == "nystrom" else 8

    def _blocks(self, problem: FullProblem, rng: RandomStream) -> list[Array]:
        """Return the row indices of each cell; an empty list without cells."""
        if not self.has_cells:
            return []
        n = problem.K.shape[0]
        size = self.cell_rows_of(n, problem.K.dtype.itemsize)
        return blocks_of_rows(problem.K, size, rng=rng)

    def _factor(self, problem: FullProblem, rng: RandomStream) -> tuple[Float[Array, "n r"], float]:
        """Return the low-rank factor F, and the trace of K - F F'."""
        rank = self.rank_of(problem.K.shape[0])
        if self.kind == "nystrom":
            # The residual trace is unknown here, and only "auto" needs it.
            return _nystrom(problem, rank, rng), math.nan
        method = "greedy" if self.kind == "greedy" else "accelerated"
        # A residual trace of N penalty already bounds the condition number by two.
        target = problem.shift if self.rank is None else 0.0
        cholesky = pivoted_cholesky(problem.K, rank, target=target, method=method, rng=rng)
        return cholesky.factor, cholesky.residual_trace


def _nystrom(problem: FullProblem, rank: int, rng: RandomStream) -> Float[Array, "n r"]:
    K = problem.K
    trace = float(xp.to_float64(K.diag()).sum())
    low = randomized_nystrom(
        K.__matmul__, K.shape[0], rank, trace, dtype=K.dtype, device=K.device, rng=rng
    )
    # Eigenvalues far below the ridge only add cost.
    significant = int((low.values > 1e-3 * float(problem.ridge.min())).sum())
    return low.factor[:, :significant]
