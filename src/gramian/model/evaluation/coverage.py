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
        All rows, and the rows whose truth is in the interval.
    width, narrowest, widest : float
        Sum, minimum and maximum of the widths.
    ranks : Ranks
        Ranks of the widths, with the rows inside marked.
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
        """Compute the sums of one block."""
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

    Returns three numbers: rows, rows whose truth is in the set, and classes in all sets.
    """

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Tensor:
        """Compute the sums of one block."""
        true = beside[0].reshape(-1).long()
        # An unknown label, -1, cannot index: it reads class 0, and the factor then makes it
        # uncovered.
        is_covered = block.gather(1, true.clamp(min=0)[:, None])[:, 0] * (true >= 0)
        return torch.stack([block.new_tensor(len(block)), is_covered.sum(), block.sum()]).double()

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return a.add_(b)
