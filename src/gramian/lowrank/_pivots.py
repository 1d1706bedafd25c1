"""Pivot rules: candidates that are drawn together, and their acceptance as pivots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream

LEAST_DRAWN_ROWS = 10
"""Least number of rows drawn together: fewer save nothing."""


class Elimination:
    """Partial Cholesky factorisation of a small matrix, one pivot after the other.

    - `H`: residual of the kernel at b drawn rows.
    - `floor`: diagonal entries up to which the residual is rounding.

    - `residual`: diagonal of the residual of H.
    - `chosen`: pivots so far.
    """

    def __init__(self, H: Float[Array, "b b"], floor: Float[Array, " b"]) -> None:
        self._H, self._L = H, xp.zeros_like(H)
        self.floor, self.residual = floor, xp.copy(xp.diagonal(H))
        self.chosen: list[int] = []

    @property
    def factor(self) -> Float[Array, "a a"]:
        """The lower triangular L with L L' = H at the chosen rows."""
        return self._L[self.chosen, : len(self.chosen)]

    def eliminate(self, j: int) -> None:
        """Use row j as the next pivot. Cost: b times the number of pivots."""
        a = len(self.chosen)
        column = (self._H[:, j] - self._L[:, :a] @ self._L[j, :a]) / xp.sqrt(self.residual[j])
        # Rows that are pivots have a residual of zero, up to rounding that would add up.
        column[self.chosen] = 0
        self._L[:, a] = column
        self.residual -= column**2
        self.residual[j] = 0
        self.chosen.append(j)


class Pivoting(ABC):
    """Rule that draws rows and accepts some of them as pivots."""

    @abstractmethod
    def draw(self, residual: Float[Array, " n"], rng: RandomStream) -> Int[Array, " b"]:
        """Draw candidates, each with a positive residual."""

    @abstractmethod
    def accept(self, H: Elimination, most: int, rng: RandomStream) -> None:
        """Eliminate some candidates of H, at most `most`."""

    def learn(self, accepted: int, rank: int, n: int) -> None:  # noqa: B027 - few rules learn
        """Adapt the number of candidates after a round."""


@dataclass
class OneByOne(Pivoting):
    """Rule for one row at a time, drawn by `pick`: random (simple) or the largest (greedy)."""

    pick: Callable[[Array, int, RandomStream], Array]

    def draw(self, residual: Array, rng: RandomStream) -> Array:
        return self.pick(residual, 1, rng)

    def accept(self, H: Elimination, most: int, rng: RandomStream) -> None:
        if H.residual[0] > H.floor[0]:
            H.eliminate(0)


@dataclass
class Block(Pivoting):
    """Rule for b rows drawn together: accept the largest until 1 / b of their trace is left.

    The remaining rows are nearly dependent, such as several rows of one cluster.
    """

    size: int

    def draw(self, residual: Array, rng: RandomStream) -> Array:
        drawn: Array = xp.unique(draw_by_residual(residual, self.size, rng))
        return drawn

    def accept(self, H: Elimination, most: int, rng: RandomStream) -> None:
        target = float(H.residual.sum()) / len(H.residual)
        # At least one row is accepted, or the factorisation would not end.
        while len(H.chosen) < most and (not H.chosen or float(H.residual.sum()) > target):
            j = int(H.residual.argmax())
            if H.residual[j] <= H.floor[j]:
                break
            H.eliminate(j)


@dataclass
class Rejection(Pivoting):
    """Rule for rows drawn together: accept each by the ratio of its present to its first residual.

    The first residual determined the draw. An accepted row then has the distribution of the simple
    method, given all earlier pivots. A repeated row has the residual zero and is rejected.

    The number of candidates is adapted so that their b² kernel entries cost about a quarter of the
    n entries per accepted row. Entries are counted and not timed, so that a seed gives the same
    pivots on a busy machine.
    """

    k: int | None
    size: int

    def draw(self, residual: Array, rng: RandomStream) -> Array:
        return draw_by_residual(residual, self.size, rng)

    def accept(self, H: Elimination, most: int, rng: RandomStream) -> None:
        # All coins are drawn first, so that the generator does not depend on how many rows are
        # accepted.
        coins = rng.random(len(H.residual), xp.float64)
        # Thresholds hold the residuals when drawn, before any elimination changes them.
        thresholds = xp.maximum(coins * H.residual, H.floor).tolist()
        for j, threshold in enumerate(thresholds):
            if len(H.chosen) == most:
                break
            if float(H.residual[j]) > threshold:
                H.eliminate(j)

    def learn(self, accepted: int, rank: int, n: int) -> None:
        largest = max(LEAST_DRAWN_ROWS, rank if self.k is None else self.k // 3)
        # The bounds differ by a factor of four, so that the size does not swing from round to
        # round.
        if self.size**2 <= n * accepted / 4:
            self.size = min(-(-3 * self.size // 2), largest)
        elif self.size**2 > n * accepted:
            self.size = max(self.size // 3, LEAST_DRAWN_ROWS)


def draw_by_residual(residual: Array, size: int, rng: RandomStream) -> Int[Array, " size"]:
    """Draw rows with replacement, with probabilities proportional to the residual. Cost: O(n)."""
    cumulative = residual.cumsum(axis=0)
    uniform = xp.cast_like(rng.random(size, xp.float64), residual)
    # The first row whose sum exceeds the draw, so that no row of zero residual is drawn.
    return xp.to_host(xp.find_insertions(cumulative, uniform * cumulative[-1], right=True))


def largest_residual(residual: Array, size: int, rng: RandomStream) -> Int[Array, " size"]:
    """Return the row of largest residual, the first one if several are equal."""
    return xp.to_host(residual.argmax()[None])


def pivoting(method: str, k: int | None, block: int | None) -> Pivoting:
    """Return a new rule called `method`, because a rule adapts during a factorisation."""
    start = LEAST_DRAWN_ROWS if k is None else max(LEAST_DRAWN_ROWS, -(-k // 10))
    if method == "accelerated":
        return Rejection(k, block or start)
    if method == "block":
        return Block(block or start)
    if method in ("simple", "greedy"):
        return OneByOne(draw_by_residual if method == "simple" else largest_residual)
    raise ValueError(f"method must be one of accelerated, simple, block, greedy, not {method!r}")
