"""Gathering of the rows of each group on a worker, and a task for each group.

Each part is split once, into as many pieces as there are bundles of neighbouring groups; a bundle
is assembled from its pieces, in the order of the parts, and the tasks of its groups run on the same
worker. The pieces of a lost worker are split and assembled again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from ..._arrays import Array
from .part import Changes, beside_of, change_rows
from .serialize import unpack_value
from .workers import Sent, Workers, repeat_arguments

Result = TypeVar("Result")

MOST_PIECES = 20_000
"""Pieces of all parts, a task of a millisecond each, unless bundles have no room then."""

BUNDLES_PER_SLOT = 4

Piece = dict[int, tuple[Array, ...]]
"""The rows of some groups, and their row-aligned numbers."""


def by_group(
    workers: Workers,
    start_split: Callable[[Sent, Sequence[int]], list[Any]],
    members: Callable[[int, Array], list[Array]],
    solve: Callable[..., Result],
    count: int,
    *,
    parts: int,
    row_bytes: int,
) -> Iterator[Result]:
    """Yield the result of each group; see `RemoteRows.by_group`.

    - `start_split`: starts `split` on each part. Its arguments are `members`, as sent to workers,
      and the bounds of the bundles.
    - `count`: number of groups.
    - `parts`: number of parts.
    - `row_bytes`: bytes of all rows.

    1. Neighbouring groups form bundles of nearly equal numbers of groups.
    2. A task for each part divides its rows among the bundles.
    3. A task for each bundle puts its pieces together, in the order of the parts.
    4. The tasks of the groups of a bundle run where the bundle is.
    5. One result at a time comes to this process, in order. If the consumer stops early, the other
       groups are not solved.
    """
    bundles = bundles_of(count, parts, workers.slots(), row_bytes, min(workers.memory(), default=0))
    # Integer products spread the remainder, so that no bundle has two groups more than another.
    bounds = [count * b // bundles for b in range(bundles + 1)]
    halves = start_split(workers.value(members, parts), bounds)
    # A piece is a task, so that a bundle fetches only its pieces and not all of each part.
    pieces = workers.map(
        operator.getitem,
        [half for _ in range(bundles) for half in halves],
        [b for b in range(bundles) for _ in halves],
    )
    per_half = len(halves)
    together = workers.map(
        bundle, [pieces[b * per_half : (b + 1) * per_half] for b in range(bundles)]
    )
    del halves, pieces  # workers drop results that no future refers to
    value = workers.value(solve, parts)
    homes = [b for b in range(bundles) for _ in range(bounds[b], bounds[b + 1])]
    tasks: list[Any] = workers.map(
        solve_group,
        *repeat_arguments(value, count),
        [together[b] for b in homes],
        list(range(count)),
    )
    del together
    try:
        for group in range(count):
            (group_result,) = workers.results([tasks[group]])
            # The future of a result keeps it on its worker: dropped, the worker has room for the
            # next groups.
            tasks[group] = None
            yield group_result
    finally:
        workers.cancel(tasks)


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
