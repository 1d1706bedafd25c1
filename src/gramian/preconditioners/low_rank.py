"""LowRankInverse: inverse of a diagonal plus F F', applied in two thin products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import _linalg as la


@dataclass(frozen=True)
class LowRankInverse:
    r"""Inverse of :math:`P = F F^\top + D`, for F of any low-rank approximation.

    .. math:: P^{-1} g = D^{-1} g - D^{-1} F (I + F^\top D^{-1} F)^{-1} F^\top D^{-1} g

    This form divides by no eigenvalue of :math:`F F^\top`, and F need not be orthogonal: with
    float32 factors it is two to four times as accurate as a form with eigenvectors.

    Attributes
    ----------
    factor : Tensor of shape (n, r)
        F, float32 or float64.
    ridge : Tensor of shape (n, 1), or ()
        The diagonal D.
    inner : Tensor of shape (r, r), by columns
        Cholesky factor of the matrix in brackets, float64.
    """

    factor: Float[Tensor, "n r"]
    ridge: Tensor
    inner: Float[Tensor, "r r"]

    @classmethod
    def build(cls, factor: Float[Tensor, "n r"], ridge: Tensor | float) -> LowRankInverse:
        """Factorise the matrix. Cost: n r² + r³ / 3 operations; memory r² and a block of F."""
        return cls.path(factor, ridge, [1.0])[0]

    @classmethod
    def path(
        cls, factor: Float[Tensor, "n r"], ridge: Tensor | float, scales: Sequence[float]
    ) -> list[LowRankInverse]:
        """Return inverses with the ridge times each scale: n r² operations, plus r³ / 3 each."""
        ridge = torch.as_tensor(ridge, dtype=torch.float64, device=factor.device)
        r = factor.shape[1]
        gram = la.by_columns(torch.zeros(r, r, dtype=torch.float64, device=factor.device))
        rows = max(1, BLOCK_BYTES // (8 * max(r, 1)))
        for start in range(0, len(factor) if r else 0, rows):
            F = factor[start : start + rows].double()
            D = ridge[start : start + rows] if ridge.ndim else ridge
            if la.is_on_device(factor):
                gram += F.t() @ (F / D)
            else:
                la.add_outer_(gram, (F / D.sqrt()).t())
        return [cls(factor, scale * ridge, _inner(gram, scale)) for scale in scales]

    def __matmul__(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return P⁻¹ g in the dtype of `g`. Cost: 4 n r t operations."""
        F, scaled = self.factor, g / self.ridge.to(g.dtype)
        if len(self.inner) == 0:
            return scaled
        # Rows times F are six times as fast as F' times a few columns.
        small = (scaled.t().to(F.dtype).contiguous() @ F).double().t()
        inner = la.solve_cholesky(self.inner, small).t().to(F.dtype).contiguous()
        projection = (inner @ F.t()).t()
        return scaled - projection.to(g.dtype) / self.ridge.to(g.dtype)

    def apply(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return P g."""
        low = self.factor @ (self.factor.t() @ g.to(self.factor.dtype))
        return low.to(g.dtype) + self.ridge.to(g.dtype) * g


@dataclass(frozen=True)
class InverseOfEach:
    """Inverses with one F, and a ridge for each of several columns.

    Attributes
    ----------
    parts : tuple of (Tensor of shape (k,), LowRankInverse)
        Column numbers, and the inverse for these columns.
    """

    parts: tuple[tuple[Int[Tensor, " _"], LowRankInverse], ...]

    @classmethod
    def build(
        cls, factor: Float[Tensor, "n r"], ridge: Tensor | float, scales: Sequence[float]
    ) -> InverseOfEach:
        """Build the inverses for the ridge times a scale per column; cost as for `path`."""
        # Equal penalties share an inverse, which takes r³ / 3 operations.
        distinct = sorted(set(scales))
        inverses = LowRankInverse.path(factor, ridge, distinct)
        columns = (torch.tensor([k for k, s in enumerate(scales) if s == d]) for d in distinct)
        return cls(tuple(zip(columns, inverses, strict=True)))

    def __matmul__(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return P⁻¹ g, each column with its own P."""
        out = torch.empty_like(g)
        for columns, inverse in self.parts:
            numbers = columns.to(g.device)
            out[:, numbers] = inverse @ g[:, numbers]
        return out


def _inner(gram: Float[Tensor, "r r"], scale: float) -> Float[Tensor, "r r"]:
    """Return the Cholesky factor of I + gram / scale, from the upper triangle of gram."""
    # The Gram matrix serves all scales, so that each factor needs a copy.
    R = la.by_columns((gram / scale).t().contiguous())
    R.diagonal().add_(1.0)
    la.cholesky_(R)
    return R


BLOCK_BYTES = 1 << 24
"""Bytes of F copied at once."""
