"""Uniform landmarks: every row has the same probability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from .. import _arrays as xp
from .._arrays import Array, RandomStream
from ..data import as_rows
from ..operators import KernelOperator, largest_diagonal
from .base import Landmarks, SizeOrPenalty, cap_size, selectors
from .leverage.candidates import group_keys, row_keys


@selectors.register("uniform")
@dataclass(frozen=True)
class Uniform(SizeOrPenalty):
    r"""Draw m distinct rows, each with the same probability.

    A row that equals an earlier one is skipped, since it would add nothing to the span of the
    landmarks, but counts in the weight of its equal. If m is at least the number of distinct rows,
    all of these are chosen: a repeated row and an observation weight then give the same landmarks.

    Use it if all rows are similar, and for files that are read sequentially.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. If it exceeds the number of rows, a warning is given and all rows are
        chosen.
    penalty : float, optional
        Penalty :math:`\lambda`: the number of landmarks is :math:`\kappa^2 / \lambda`, the largest
        :math:`k(x, x)` over the penalty, which bounds every leverage score times n; all rows if
        there are fewer.

    Notes
    -----
    Cost: reading m rows, one pass for a sequential source, and another if rows repeat; no kernel
    evaluations. Memory: the m rows, memory-mapped from a file if they exceed the budget of K.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.landmarks import Uniform
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge(landmarks=Uniform(100), random_state=0).fit(X, y)  # as landmarks=100
    >>> est.landmark_index_.shape
    (100,)
    """

    takes_remote: ClassVar[bool] = True

    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        n = K.shape[0]
        kappa2 = largest_diagonal(K)
        size = self.m or min(n, math.ceil(kappa2 / (self.penalty or 1.0)))
        index, points, times = _first_distinct(K, cap_size(size, n), rng)
        drawn_rows = float(times.sum())
        weight = times * (len(times) / drawn_rows)
        penalty = kappa2 / len(index)
        return Landmarks(points, weight, index, penalty=penalty, coverage=drawn_rows / n)

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        return 24 * m

    def evaluations(self, n: int, m: int) -> int:
        return 0

    def operations(self, n: int, d: int, m: int) -> float:
        return 0.0


def _first_distinct(K: KernelOperator, m: int, rng: RandomStream) -> tuple[Array, Array, Array]:
    """Draw rows in a random order until m are distinct, or all are drawn.

    Returns
    -------
    index, points, times
        Row numbers; values; number of draws of each.
    """
    order, keys = xp.empty(0, xp.int64), xp.empty(0, xp.int64)
    for candidates in _candidates(K.shape[0], m, rng):
        drawn = K.points(candidates)
        order, keys = xp.concat([order, candidates]), xp.concat([keys, row_keys(as_rows(drawn))])
        first, group = group_keys(keys)
        if len(first) >= m:
            break
    index = order[first[:m]]
    # Draws after the m-th distinct row do not count, as if drawing had ended there.
    groups = group if len(first) < m else group[: int(first[m - 1]) + 1]
    # Without equal rows the drawn rows are the landmarks, and are not read again.
    points = drawn if xp.array_equal(index, candidates) else K.points(index)
    return index, points, xp.to_float64(xp.bincount(groups))


def _candidates(n: int, m: int, rng: RandomStream) -> Iterator[Array]:
    """Yield distinct row indices in random order: first m, then twice as many, and so on."""
    if n <= 8 * m:
        order = rng.permutation(n)
    else:
        # A permutation of all rows would dominate time and memory at n = 10⁸.
        drawn = rng.integers(n, size=(4 * m,)).tolist()
        # A dictionary removes repeated numbers and keeps the order of the draws.
        order = xp.array(list(dict.fromkeys(drawn)), xp.int64)
    start, size = 0, m
    while start < len(order):
        yield order[start : start + size]
        start, size = start + size, 2 * size
    if len(order) < n:
        is_left = xp.ones(n, xp.bool)
        is_left[order] = False
        left_rows = xp.flatnonzero(is_left)
        yield left_rows[rng.permutation(len(left_rows))]
