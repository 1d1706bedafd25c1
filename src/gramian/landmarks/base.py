"""Landmarks and Selector: which m of n rows stand for all of them; Uniform draws them evenly."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import as_count
from .._registry import Registry
from .._sparse import is_sparse, slice_rows
from ..data import RowSource
from ..operators import KernelOperator


@dataclass(frozen=True)
class Landmarks:
    """The result of a selection.

    Attributes
    ----------
    points : Tensor of shape (m, d)
    weight : Tensor of shape (m,)
        1 / (n · probability) of being drawn, probabilities summing to one: ones if uniform.
    index : Tensor of shape (m,), or None
        Their row numbers; None if they are not rows of the data.
    info : mapping
        What the selector has learned, for instance ``effective_dimension``.
    """

    points: Float[Tensor, "m d"]
    weight: Float[Tensor, " m"]
    index: Int[Tensor, " m"] | None = None
    info: Mapping[str, float] = field(default_factory=dict)


class Selector(ABC):
    """An algorithm that chooses landmarks. Fields are its hyperparameters; it holds no state."""

    @abstractmethod
    def select(self, K: KernelOperator, *, rng: torch.Generator) -> Landmarks:
        """Choose among the rows of an (n, n) operator, whose meter counts the cost."""


selectors: Registry[Selector] = Registry("selector of landmarks")


@selectors.register("uniform")
@dataclass(frozen=True)
class Uniform(Selector):
    """Draw m distinct rows, each with the same probability.

    A row that equals one already drawn is passed over, since it would add nothing to the span of
    the landmarks: with m at least the number of distinct rows, all of those are chosen. So a
    repeated row and an observation weight give the same landmarks in that case, with weights
    that count the repetitions.

    Parameters
    ----------
    m : int
        More than there are rows: a warning, then all of them.

    Notes
    -----
    Cost: reading m rows, one pass for a sequential source; no kernel evaluations.
    """

    m: int

    def __post_init__(self) -> None:
        as_count(self.m, "the number of landmarks")

    def select(self, K: KernelOperator, *, rng: torch.Generator) -> Landmarks:
        n = K.shape[0]
        if self.m > n:
            warnings.warn(
                f"{self.m} landmarks were asked for but there are {n} rows; all rows are used",
                stacklevel=2,
            )
        index, points, times = _first_distinct(K.rows, min(self.m, n), rng)
        whole = float(times.sum()) == n  # every row was looked at
        weight = times * (len(times) / n) if whole else torch.ones_like(times)
        coverage = 1.0 if whole else len(times) / n
        return Landmarks(points, weight, index, {"coverage": coverage})


def _first_distinct(rows: RowSource, m: int, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Take rows in a random order until m are distinct, or there are no more.

    Returns
    -------
    index, points, times
        Row numbers; values; how often each was met.
    """
    times: dict[bytes, int] = {}
    index: list[Tensor] = []
    points: list[Tensor] = []
    for candidates in _candidates(rows.shape[0], m, rng):
        drawn = rows.take(candidates)
        new = torch.tensor(_unseen(drawn, times, m), dtype=torch.int64)
        index.append(candidates[new])
        points.append(drawn if rows.sparse else drawn[new])
        if len(times) == m:
            break
    chosen = torch.cat(index)
    values = rows.take(chosen) if rows.sparse else torch.cat(points)
    return chosen, values, torch.tensor(list(times.values()), dtype=torch.float64)


def _unseen(points: Tensor, times: dict[bytes, int], limit: int) -> list[int]:
    """Return positions of rows met for the first time, counting all, up to `limit` of them."""
    new = []
    for position in range(points.shape[0]):
        if len(times) == limit:
            break
        key = _key(slice_rows(points, position, position + 1))
        if key not in times:
            new.append(position)
        times[key] = times.get(key, 0) + 1
    return new


def _key(row: Tensor) -> bytes:
    if is_sparse(row):
        return bytes(row.col_indices().numpy()) + bytes(row.values().numpy())
    return bytes(row.numpy())


def _candidates(n: int, m: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Yield row numbers in random order without repeats: m, then twice as many, and so on."""
    if n <= 8 * m:
        order = torch.randperm(n, generator=rng)
    else:
        # A permutation of all rows would outweigh everything else at n = 10⁸.
        drawn = torch.randint(n, (4 * m,), generator=rng).tolist()
        order = torch.tensor(list(dict.fromkeys(drawn)))
    start, size = 0, m
    while start < len(order):
        yield order[start : start + size]
        start, size = start + size, 2 * size
    if len(order) < n:
        rest = torch.ones(n, dtype=torch.bool)
        rest[order] = False
        others = rest.nonzero()[:, 0]
        yield others[torch.randperm(len(others), generator=rng)]
