"""Recipe: which preconditioner PCG builds, of what size, and at what cost."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...lowrank import pivoted_cholesky, randomized_nystrom
from ...preconditioners import (
    BlockCholesky,
    BlockLowRank,
    InverseOfEach,
    LowRankInverse,
    blocks_of_rows,
)
from ...preconditioners.blocks import COUPLING_ROWS, SAMPLE_ROWS, coupling
from ...preconditioners.low_rank import BLOCK_BYTES
from ...problems import FullProblem
from ..cost import ProblemSize

logger = logging.getLogger("gramian")

PRECONDITIONERS = (
    "rpcholesky", "nystrom", "greedy", "none", "cells", "nystrom+cells", "auto"
)  # fmt: skip

MOST_RANK = 1000
"""Rank at most if it is chosen: r² memory and r³ work stay out of sight."""

RANK_PER_ROOT = 2
"""Rank beside cells, over sqrt(n)."""

CELL_ROWS_PER_ROOT = {"nystrom+cells": 4, "cells": 10}
"""Rows of a cell, over sqrt(n): the setup, n s² operations, then takes about as long as a constant
number of products, n² entries."""

LITTLE_COUPLING = 1.0
"""Sum of K outside of cells over that within, below which a factor does not pay. Measured on 20,000
rows: 0.7 where cells alone were fastest, from 3.3 on where they were not."""

MUCH_COUPLING = 20.0
"""The same, above which the memory is better spent on more columns than on cells. Measured on
60,000 rows: with 17 cells beside few columns were as fast as columns alone or faster, with 44 they
took up to 1.45 times as long."""

Inverse = LowRankInverse | InverseOfEach | BlockCholesky | BlockLowRank


@dataclass(frozen=True)
class Recipe:
    """A preconditioner by name, with its sizes where they are given; see `PCG`.

    Attributes
    ----------
    kind : str
        Of `PRECONDITIONERS`.
    rank, cell_rows : int or None
        Chosen if None.
    memory_bytes : int
        For what is chosen.
    """

    kind: str
    rank: int | None
    cell_rows: int | None
    memory_bytes: int

    @property
    def has_cells(self) -> bool:
        """Whether blocks of K are factorised, or may be."""
        return self.kind in ("auto", *CELL_ROWS_PER_ROOT)

    def of(self, *, sparse: bool) -> Recipe:
        """Return the recipe for rows that are sparse or not: "auto" needs dense ones for cells."""
        return replace(self, kind="rpcholesky") if sparse and self.kind == "auto" else self

    def build(self, problem: FullProblem, rng: torch.Generator) -> Inverse | None:
        """Return the preconditioner, None for "none"."""
        recipe, K = self.of(sparse=problem.K.rows.sparse), problem.K
        if recipe.kind == "none":
            return None
        blocks = recipe._blocks(problem, rng)
        coupled = coupling(K, blocks, rng=rng) if recipe.kind == "auto" else math.nan
        if recipe.kind == "cells" or coupled < LITTLE_COUPLING:
            return BlockCholesky.build(K, blocks, problem.ridge)
        if coupled > MUCH_COUPLING:
            recipe = replace(recipe, kind="rpcholesky")
        factor, left = recipe._factor(problem, rng)
        if not recipe.has_cells or (recipe.kind == "auto" and left <= problem.shift):
            return LowRankInverse.build(factor, problem.ridge)
        return BlockLowRank.build(K, blocks, factor, problem.ridge)

    def rank_of(self, n: int) -> int:
        """Return the rank for n rows, one that is chosen before the spectrum is known."""
        if self.kind in ("none", "cells"):
            return 0
        if self.rank is not None:
            return min(self.rank, n)
        most = RANK_PER_ROOT * math.isqrt(n) if self.has_cells else n // 10 + 1
        return max(1, min(most, MOST_RANK, n, self._memory // (self._number_bytes * n)))

    def cell_rows_of(self, n: int, itemsize: int) -> int:
        """Return the rows of a cell at most, for n rows of numbers of so many bytes; 0 if none."""
        if not self.has_cells:
            return 0
        if self.cell_rows is not None:
            return min(self.cell_rows, n)
        most = CELL_ROWS_PER_ROOT.get(self.kind, 4) * math.isqrt(n)
        return max(1, min(n, most, self._memory // (itemsize * n)))

    def peak_bytes(self, size: ProblemSize) -> int:
        """Return the bytes of factors, and of what is beside them while they are made."""
        n, r = size.n, self.rank_of(size.n)
        s = self.cell_rows_of(n, size.itemsize)
        # the factor and R, and blocks of its rows while it is made and factorised
        factor = self._number_bytes * n * r + 8 * r * r + 2 * min(8 * n * r, BLOCK_BYTES)
        # blocks, one of them in float64 beside its entries and rows of the factor
        cells = n * s * size.itemsize + 16 * s * (s + r)
        # the rows that splits are found from, scaled, in float64
        split = 24 * min(n, SAMPLE_ROWS) * size.d if 0 < s < n else 0
        peak = factor + max(cells, split)
        if self.kind == "auto":  # which may have more columns and no cells
            return max(peak, replace(self, kind="rpcholesky").peak_bytes(size))
        return peak

    def evaluations(self, size: ProblemSize) -> int:
        """Return the kernel evaluations, those of "nystrom+cells" for "auto"."""
        looked_at = min(COUPLING_ROWS, size.n) if self.kind == "auto" else 0
        rank, rows = self.rank_of(size.n), self.cell_rows_of(size.n, size.itemsize)
        return size.n * (looked_at + rank + rows)

    def operations(self, size: ProblemSize) -> float:
        """Return the operations of the factorisations."""
        r, s = float(self.rank_of(size.n)), float(self.cell_rows_of(size.n, size.itemsize))
        return size.n * (2 * r**2 + s**2 / 3 + 2 * r * s)

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes that it reads each time that it is applied."""
        s = self.cell_rows_of(size.n, size.itemsize)
        return float(size.n) * (16 * self.rank_of(size.n) + size.itemsize * s)

    @property
    def _memory(self) -> int:
        """The bytes for a factor, and for cells."""
        both = self.has_cells and self.kind != "cells"
        return self.memory_bytes // 2 if both else self.memory_bytes

    @property
    def _number_bytes(self) -> int:
        """The bytes per entry of the factor, with copies on the way to it."""
        return 40 if self.kind == "nystrom" else 8

    def _blocks(self, problem: FullProblem, rng: torch.Generator) -> list[Tensor]:
        """Return the rows of the cells, none if there are no cells."""
        if not self.has_cells:
            return []
        n = problem.K.shape[0]
        size = self.cell_rows_of(n, problem.K.dtype.itemsize)
        return blocks_of_rows(problem.K, size, rng=rng)

    def _factor(
        self, problem: FullProblem, rng: torch.Generator
    ) -> tuple[Float[Tensor, "n r"], float]:
        """Return F, and the trace that it leaves."""
        rank = self.rank_of(problem.K.shape[0])
        if self.kind == "nystrom":
            return _nystrom(problem, rank, rng), math.nan
        method = "greedy" if self.kind == "greedy" else "accelerated"
        target = problem.shift if self.rank is None else 0.0
        found = pivoted_cholesky(problem.K, rank, target=target, method=method, rng=rng)
        return found.factor, found.residual_trace


def _nystrom(problem: FullProblem, rank: int, rng: torch.Generator) -> Float[Tensor, "n r"]:
    K = problem.K
    trace = float(K.diag().double().sum())
    found = randomized_nystrom(
        K.__matmul__, K.shape[0], rank, trace, dtype=K.dtype, device=K.device, rng=rng
    )
    # what is far below the ridge changes nothing but the cost
    kept = int((found.values > 1e-3 * float(problem.ridge.min())).sum())
    return found.factor[:, :kept]
