"""Choice of pivots: the rows that are drawn at once, and those of them that are accepted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

LEAST_DRAWN_ROWS = 10
"""Rows that are drawn at once at least: fewer save nothing."""


class Elimination:
    """The partial Cholesky factor of a small matrix, one pivot after the other.

    Parameters
    ----------
    H : Tensor of shape (b, b)
        What is left of the kernel at b drawn rows.
    floor : Tensor of shape (b,)
        Up to where its diagonal is rounding.

    Attributes
    ----------
    rest : Tensor of shape (b,)
        The diagonal of what is left of H.
    chosen : list of int
        Pivots so far.
    """

    def __init__(self, H: Float[Tensor, "b b"], floor: Float[Tensor, " b"]) -> None:
        self._H, self._L = H, torch.zeros_like(H)
        self.floor, self.rest = floor, H.diagonal().clone()
        self.chosen: list[int] = []

    @property
    def factor(self) -> Float[Tensor, "a a"]:
        """The lower triangular L with L L' = H at the chosen rows."""
        return self._L[self.chosen, : len(self.chosen)]

    def eliminate(self, j: int) -> None:
        """Take row j as the next pivot. Cost: b times the number of pivots."""
        a = len(self.chosen)
        column = (self._H[:, j] - self._L[:, :a] @ self._L[j, :a]) / self.rest[j].sqrt()
        column[self.chosen] = 0
        self._L[:, a] = column
        self.rest -= column**2
        self.rest[j] = 0
        self.chosen.append(j)


class Pivoting(ABC):
    """A rule for drawing rows and accepting some of them as pivots."""

    @abstractmethod
    def draw(self, residual: Float[Tensor, " n"], rng: torch.Generator) -> Int[Tensor, " b"]:
        """Return candidates, each with a positive residual."""

    @abstractmethod
    def accept(self, H: Elimination, most: int, rng: torch.Generator) -> None:
        """Eliminate some candidates of H, at most `most`."""

    def learn(self, accepted: int, rank: int, n: int) -> None:  # noqa: B027 - few rules learn
        """Adapt the number of candidates after a round."""


@dataclass
class OneByOne(Pivoting):
    """One row at a time, chosen by `pick`: random (the simple law) or the largest (greedy)."""

    pick: Callable[[Tensor, int, torch.Generator], Tensor]

    def draw(self, residual: Tensor, rng: torch.Generator) -> Tensor:
        return self.pick(residual, 1, rng)

    def accept(self, H: Elimination, most: int, rng: torch.Generator) -> None:
        if H.rest[0] > H.floor[0]:
            H.eliminate(0)


@dataclass
class Block(Pivoting):
    """Rows drawn at once; the largest first, until the b drawn ones keep 1 / b of their trace.

    What is left out would be nearly dependent: several rows of one cluster.
    """

    size: int

    def draw(self, residual: Tensor, rng: torch.Generator) -> Tensor:
        drawn: Tensor = by_residual(residual, self.size, rng).unique()
        return drawn

    def accept(self, H: Elimination, most: int, rng: torch.Generator) -> None:
        enough = float(H.rest.sum()) / len(H.rest)
        while len(H.chosen) < most and (not H.chosen or float(H.rest.sum()) > enough):
            j = int(H.rest.argmax())
            if H.rest[j] <= H.floor[j]:
                break
            H.eliminate(j)


@dataclass
class Rejection(Pivoting):
    """Rows drawn at once and accepted with the ratio of their residual now and when drawn.

    So an accepted row has the law of the simple method given all pivots before it. A repeated
    row rejects itself.

    The number of candidates is adapted for their b² kernel entries to cost about a quarter of
    the n entries per accepted one; counted and not timed, so that a seed gives the same pivots
    on a busy machine.
    """

    k: int | None
    size: int

    def draw(self, residual: Tensor, rng: torch.Generator) -> Tensor:
        return by_residual(residual, self.size, rng)

    def accept(self, H: Elimination, most: int, rng: torch.Generator) -> None:
        coins = torch.rand(len(H.rest), generator=rng, dtype=torch.float64)
        needed = torch.maximum(coins * H.rest, H.floor).tolist()
        for j, least in enumerate(needed):
            if len(H.chosen) == most:
                break
            if float(H.rest[j]) > least:
                H.eliminate(j)

    def learn(self, accepted: int, rank: int, n: int) -> None:
        largest = max(LEAST_DRAWN_ROWS, rank if self.k is None else self.k // 3)
        if self.size**2 <= n * accepted / 4:
            self.size = min(-(-3 * self.size // 2), largest)
        elif self.size**2 > n * accepted:
            self.size = max(self.size // 3, LEAST_DRAWN_ROWS)


def by_residual(residual: Tensor, size: int, rng: torch.Generator) -> Int[Tensor, " size"]:
    """Draw with repeats, with probabilities proportional to the residual. O(n).

    `torch.multinomial` refuses more than 2²⁴ rows.
    """
    cumulative = residual.cumsum(0)
    uniform = torch.rand(size, generator=rng, dtype=torch.float64).to(residual)
    # the first row whose sum exceeds the draw: never one of residual zero
    return torch.searchsorted(cumulative, uniform * cumulative[-1], right=True).cpu()


def largest_residual(residual: Tensor, size: int, rng: torch.Generator) -> Int[Tensor, " size"]:
    """Return the row of largest residual; the first one of equals."""
    return residual.argmax()[None].cpu()


def pivoting(method: str, k: int | None, block: int | None) -> Pivoting:
    """Return the rule called `method`, new for each factorisation since it learns."""
    start = LEAST_DRAWN_ROWS if k is None else max(LEAST_DRAWN_ROWS, -(-k // 10))
    if method == "accelerated":
        return Rejection(k, block or start)
    if method == "block":
        return Block(block or start)
    if method in ("simple", "greedy"):
        return OneByOne(by_residual if method == "simple" else largest_residual)
    raise ValueError(
        f"unknown method {method!r} of pivoting; known: accelerated, simple, block, greedy"
    )
