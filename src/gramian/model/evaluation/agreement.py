"""How far values agree with the truth, as sums over blocks of rows: errors, R2, quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ...data import BlockReduction
from ..uncertainty.probabilities import likeliest


@dataclass(eq=False)
class Sums:
    """Sums over rows, of t columns.

    Attributes
    ----------
    weight : float
    mean, spread : Tensor of shape (t,)
        Of the truth, and the sum of the squares around it.
    squares, sizes : Tensor of shape (t,)
        Of the errors.
    """

    weight: float
    mean: Float[Tensor, " t"]
    spread: Float[Tensor, " t"]
    squares: Float[Tensor, " t"]
    sizes: Float[Tensor, " t"]

    @property
    def r2(self) -> float:
        """Mean of R2 over the columns, as in scikit-learn: 0 or 1 for a constant truth."""
        perfect = (self.squares == 0).double()
        varies = self.spread > 0
        r2_by_target = torch.where(
            varies, 1 - self.squares / torch.where(varies, self.spread, 1.0), perfect
        )
        return float(r2_by_target.mean())


@dataclass(frozen=True)
class Errors(BlockReduction[Sums]):
    """Fold of `Sums` over predictions, true values and optional weights."""

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Sums:
        """Compare one block."""
        y = beside[0].double().reshape(len(block), -1)
        w = beside[1].double()[:, None] if len(beside) > 1 else y.new_ones(len(y), 1)
        weight = float(w.sum())
        # Relative to the first row: the mean of equal numbers is exact, and their spread zero. The
        # bound of the divisor is for a block whose rows all have weight zero.
        mean = y[0] + (w * (y - y[0])).sum(dim=0) / max(weight, 1e-300)
        off = block.double() - y
        return Sums(
            weight,
            mean,
            (w * (y - mean).square()).sum(dim=0),
            (w * off.square()).sum(dim=0),
            (w * off.abs()).sum(dim=0),
        )

    def merge(self, a: Sums, b: Sums) -> Sums:
        """Add; spreads by the formula of Chan, Golub and LeVeque."""
        weight = a.weight + b.weight
        apart, share = b.mean - a.mean, b.weight / weight if weight > 0 else 0.0
        return Sums(
            weight,
            a.mean + share * apart,
            a.spread + b.spread + apart.square() * a.weight * share,
            a.squares + b.squares,
            a.sizes + b.sizes,
        )


@dataclass(frozen=True, eq=False)
class Confusion(BlockReduction[Tensor]):
    """Fold of a confusion matrix: weights of rows by true and by predicted class.

    Attributes
    ----------
    count : int
        Number of classes. Truth is given as class numbers; an additional row counts labels of no
        class, which are given as -1.
    """

    count: int

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Float[Tensor, "k1 k"]:
        """Count one block."""
        true = beside[0].reshape(-1).long()
        w = beside[1].double() if len(beside) > 1 else torch.ones(len(true), dtype=torch.float64)
        true = torch.where(true < 0, self.count, true)
        # A pair of classes is one number: a single sum fills the matrix.
        place = true * self.count + likeliest(block)
        total = torch.zeros((self.count + 1) * self.count, dtype=torch.float64)
        return total.index_add_(0, place, w).reshape(self.count + 1, self.count)

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return a.add_(b)


@dataclass(frozen=True)
class Pinball(BlockReduction[Tensor]):
    """Fold of the errors of quantiles: the loss of each level, and the rows at or below it.

    Returns a tensor of shape (q, 2). The pinball loss of a row is the larger one of level (y - f)
    and (level - 1) (y - f).

    Attributes
    ----------
    levels : tuple of q float
        Levels of the columns of the predictions.
    """

    levels: tuple[float, ...]

    def __call__(self, start: int, block: Tensor, *beside: Any) -> Float[Tensor, "q 2"]:
        """Compare one block."""
        off = beside[0].double().reshape(-1, 1) - block.double()
        level = torch.tensor(self.levels, dtype=torch.float64)
        loss = torch.maximum(level * off, (level - 1) * off).sum(dim=0)
        return torch.stack([loss, (off <= 0).double().sum(dim=0)], dim=1)

    def merge(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return a.add_(b)
