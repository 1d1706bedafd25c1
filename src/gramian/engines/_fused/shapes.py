"""Shapes of tiles, and the choice among them by timing."""

from __future__ import annotations

import functools
import threading
from typing import Any, NamedTuple

import torch
import triton

from .points import PADDED_ROWS


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
