"""Gathering of the rows of each group on a worker, and a task for each group.

Each part is split once, into as many pieces as there are bundles of neighbouring groups; a bundle
is assembled from its pieces, in the order of the parts, and the tasks of its groups run on the same
worker. The pieces of a lost worker are split and assembled again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from .part import Changes, beside_of, change_rows
from .serialize import unpack_value

MOST_PIECES = 20_000
"""Pieces of all parts, a task of a millisecond each, unless bundles have no room then."""

BUNDLES_PER_SLOT = 4

Piece = dict[int, tuple[Array, ...]]
"""The rows of some groups, and their row-aligned numbers."""


def bundles_of(count: int, parts: int, slots: int, held: int, memory: int) -> int:
    """Return the number of bundles of `count` groups.

    There are four bundles for each task that runs at once, if `MOST_PIECES` allows; more if a
    bundle would take over a quarter of a worker's memory, because its pieces take as much again.

    - `count`, `parts`, `slots`: groups, parts, and tasks that run at once.
    - `held`: bytes of all rows.
    - `memory`: bytes of a worker; 0 without a limit.
    """
    bundles = min(max(1, MOST_PIECES // parts), BUNDLES_PER_SLOT * max(1, slots))
    small = math.ceil(4 * held / memory) if memory else 1
    return min(count, max(bundles, small))


def split(
    source: Any,
    changes: Changes,
    data: bytes,
    shared: Any,
    beside: Any,
    start: int,
    size: int,
    bounds: Sequence[int],
) -> list[Piece]:
    """Divide one part among bundles of groups."""
    members, along = (
        unpack_value(data, shared),
        [beside_of(aligned_part) for aligned_part in beside],
    )
    split_parts: list[list[list[Array]]] = [[] for _ in range(bounds[-1])]
    for rows, block in change_rows(source, changes).blocks(size):
        numbers = [block, *(aligned_part[rows] for aligned_part in along)]
        for group, index in enumerate(members(start + rows.start, block)):
            # Groups without rows in a block add nothing, and an empty array each would be sent.
            if len(index):
                split_parts[group].append([aligned_part[index] for aligned_part in numbers])
    # Pieces by bundle, without the groups that have no row here: each piece is a result of its own,
    # and travels alone.
    return [
        {
            group: tuple(np.concatenate(arrays) for arrays in zip(*split_parts[group], strict=True))
            for group in range(bounds[b], bounds[b + 1])
            if split_parts[group]
        }
        for b in range(len(bounds) - 1)
    ]


def bundle(pieces: Sequence[Piece]) -> Piece:
    """Concatenate the pieces of the groups of a bundle, in the order of the parts."""
    groups = sorted({group for piece in pieces for group in piece})
    return {
        group: tuple(
            np.concatenate(arrays)
            for arrays in zip(*(piece[group] for piece in pieces if group in piece), strict=True)
        )
        for group in groups
    }


def solve_group(data: bytes, shared: Any, found: Piece, group: int) -> Any:
    """Return the result of one group."""
    return unpack_value(data, shared)(group, *found[group])
