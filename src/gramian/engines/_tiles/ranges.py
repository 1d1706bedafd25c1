"""Ranges of rows for the workers of an engine, and the sum of their results."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from ..._arrays import Array

PARTS_PER_THREAD = 4
"""Row ranges per worker: enough to even out a busy machine, few enough to add up their sums."""


def bounds_of(n: int, rows: int, most: int) -> list[tuple[int, int]]:
    """Return at most `most` nearly equal ranges of n rows, each of at least `rows` rows."""
    count = max(min(most, n // rows), 1)
    # Integer products spread the remainder over all ranges instead of adding it to the last one.
    return [(n * i // count, n * (i + 1) // count) for i in range(count)]


def steps(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the ranges of at most `size` from `start` to `stop`, in order."""
    return ((i, min(i + size, stop)) for i in range(start, stop, max(size, 1)))


def sum_of(terms: Iterable[Array]) -> Array:
    """Return the sum of at least one array, in the memory of the first.

    A generator is closed, so that the computation of its terms ends if this function is
    interrupted.
    """
    iterator = iter(terms)
    try:
        total = next(iterator)
        for term in iterator:
            total += term
        return total
    finally:
        # Closing a generator runs its `finally`, which ends its workers even after an interruption.
        if isinstance(iterator, Generator):
            iterator.close()
