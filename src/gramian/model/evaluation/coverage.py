"""How often intervals and sets hold the truth, and how large they are, as sums over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...data import BlockReduction
from .ranks import MOST_BINS, Ranks


@dataclass(eq=False)
class Covered:
    """The result of `Covering`.

    Attributes
    ----------
    rows, inside : int
        All of them, and those whose truth is in the interval.
    width, narrowest, widest : float
        The sum of the widths, and the least and the largest.
    ranks : Ranks
        Of the widths; rows within are marked.
    """

    rows: int
    inside: int
    width: float
    narrowest: float
    widest: float
    ranks: Ranks


@dataclass(frozen=True)
class Covering(BlockReduction[Covered]):
    """Fold of `Covered` over the ends of intervals and true values.

    Attributes
    ----------
    max_bins : int, default=2**18
        Bins of widths.
    """

    max_bins: int = MOST_BINS

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Covered:
        """Look at one block."""
        y, (low, high) = beside[0].double().reshape(-1), block.double().unbind(dim=1)
        inside, width = (low <= y) & (y <= high), high - low
        narrowest, widest = torch.aminmax(width)
        return Covered(
            len(y),
            int(inside.sum()),
            float(width.sum()),
            float(narrowest),
            float(widest),
            Ranks.of(width, inside, self.max_bins),
        )

    def merge(self, a: Covered, b: Covered) -> Covered:
        """Add."""
        return Covered(
            a.rows + b.rows,
            a.inside + b.inside,
            a.width + b.width,
            min(a.narrowest, b.narrowest),
            max(a.widest, b.widest),
            a.ranks.merge(b.ranks, self.max_bins),
        )


@dataclass(frozen=True)
class CoveringSets(BlockReduction[Tensor]):
    """Fold over sets of classes and numbers of true classes; -1 is in no set.

    Returns three numbers: rows, those whose truth is in the set, and the classes in all sets.
    """

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Tensor:
        """Look at one block."""
        true = beside[0].reshape(-1).long()
        is_covered = block.gather(1, true.clamp(min=0)[:, None])[:, 0] * (true >= 0)
        return torch.stack([block.new_tensor(len(block)), is_covered.sum(), block.sum()]).double()

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return a.add_(b)
