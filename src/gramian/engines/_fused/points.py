"""Shapes of the fused tiles, the choice among them by timing, and rows padded to whole tiles."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from ...kernels._lengthscale import LengthscaleKernel
from .distances import Distance

PADDED_ROWS = 128
"""Rows are padded to whole multiples: the longest side of a tile."""


class Tile(NamedTuple):
    """Rows and columns of a tile, number of warps, and number of tiles loaded in advance."""

    rows: int
    columns: int
    warps: int
    stages: int


TILE_SHAPES = (
    Tile(128, 64, 8, 2),
    Tile(128, 64, 4, 3),
    Tile(64, 64, 4, 3),
    Tile(64, 128, 4, 2),
    Tile(128, 128, 8, 3),
)
"""The shapes among which tuning chooses; the first is used without."""

SYMMETRIC_TILES = (
    Tile(PADDED_ROWS, 64, 8, 1),
    Tile(PADDED_ROWS, 64, 8, 2),
    Tile(PADDED_ROWS, 64, 4, 3),
    Tile(PADDED_ROWS, 32, 4, 2),
    Tile(PADDED_ROWS, 128, 8, 2),
)
"""The same of a symmetric product, where a program has `ROWS` rows, and a square on the diagonal.

Each tile is multiplied from both sides, which takes twice the memory of a core. The first shape has
room on every GPU, however many columns v has; tuning leaves out those that have none.
"""

INTERPRETED_TILE = Tile(128, 128, 8, 2)
"""The shape that the interpreter walks through in the fewest steps."""


def options(tile: Tile) -> dict[str, int]:
    """Return the arguments with which a Triton program starts: sizes, warps, stages."""
    return {
        "BM": tile.rows,
        "BN": tile.columns,
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }


TUNING_LOCK = threading.Lock()
"""Held while a tuned program is started, and the first time while it is tuned."""


@functools.cache
def autotune_program(program: Any, shapes: tuple[Tile, ...], device: torch.device) -> Any:
    """Return a program that times the tiles in its first call for a shape, and keeps the fastest.

    Each trial writes all results, so that earlier results do not matter. A tuner stores its
    arguments while it runs: start it under `TUNING_LOCK`. Each device has its own tuner.
    """
    configs = [
        triton.Config({"BM": tile.rows, "BN": tile.columns}, tile.warps, tile.stages)
        for tile in shapes
    ]
    # Rows and columns are no part of the key, or each size of a block would be tuned again.
    return triton.autotune(configs, key=["D", "T", "PROFILE", "DISTANCE", "PRECISION"])(program)


PREPARED_NUMBERS = 1 << 22
"""Coordinates centered at once, in float64."""


@dataclass(frozen=True)
class Points:
    """Rows in lengthscales from the common origin, rounded once, padded with zeros.

    - `rows`, (n', d'): stored row by row for products, feature by feature for differences.
    - `norms`, (n',): squared norms times the scale of the kernel.
    - `n`: number of rows before padding.
    """

    rows: Tensor
    norms: Tensor
    n: int

    @classmethod
    def prepare(cls, points: Tensor, scale: float, distance: Distance) -> Points:
        """Arrange centered and scaled points, (n, d), for a way to compute distances."""
        n, d = points.shape
        if distance in ("difference", "absolute"):
            # Differences read one feature of many rows at a time, so each feature is contiguous.
            rows = points.new_zeros(d, -(-n // PADDED_ROWS) * PADDED_ROWS).t()
        else:
            rows = points.new_zeros(-(-n // PADDED_ROWS) * PADDED_ROWS, padded_features(d))
        rows[:n, :d] = points
        # The norms are of the rounded rows: s of a row with itself is then near zero, as it should
        # be.
        norms = points.new_zeros(len(rows))
        # They are computed in float64 and rounded once, because s is a small difference of large
        # norms.
        norms[:n] = scale * norm(points, 2).square_()
        return cls(rows, norms, n)

    def part(self, start: int, size: int) -> Points:
        """Return up to `size` rows from `start` on; both are multiples of `PADDED_ROWS`."""
        part_rows = slice(start, start + size)
        return Points(self.rows[part_rows], self.norms[part_rows], min(self.n - start, size))


def padded_features(d: int) -> int:
    """Return d rounded up to a multiple of 16, or of 32 where that adds little."""
    wide = -(-d // 32) * 32
    return wide if wide * 7 <= d * 8 else -(-d // 16) * 16


def in_lengthscales(kernel: LengthscaleKernel, points: Tensor, origin: Tensor) -> Tensor:
    """Return (points - origin) / lengthscale, computed in float64, rounded to float32."""
    out = torch.empty_like(points, dtype=torch.float32)
    step = max(PREPARED_NUMBERS // points.shape[1], 1)
    for i in range(0, len(points), step):
        out[i : i + step] = kernel.scaled(points[i : i + step].double() - origin)
    return out


def norm(points: Tensor, p: int) -> Tensor:
    """Return the p-norm of each row, in float64."""
    norms: Tensor = torch.linalg.vector_norm(points, p, dim=1, dtype=torch.float64)
    return norms
