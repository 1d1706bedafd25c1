"""BlockCholesky: inverse of the system between the rows of each block, zero elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import _linalg as la
from ..operators import KernelOperator
from .blocks import diagonal_blocks
from .jitter import least_jitter


@dataclass(frozen=True)
class BlockCholesky:
    r"""Inverse of :math:`D = \mathrm{blockdiag}(K_i + \mathrm{ridge}_i)`.

    It is exact if the kernel vanishes between blocks. Factors are computed in float64, because the
    ridge may be below the rounding of float32, and stored in float64 or rounded to float32: R'R
    stays positive definite after any rounding, in half of the memory and, because a solve reads the
    factors, in a quarter of the time. Rounding moves R'R by about eps sqrt(s) of its norm, like
    float32 products of K, so that float32 is accurate wherever they are
    (`FullProblem.needs_float64`).

    Attributes
    ----------
    index : tuple of Tensor of shape (s,)
        Rows of each block, on the host; each row belongs to one block.
    factors : tuple of Tensor of shape (s, s), by columns
        R with R'R = K_i + ridge_i; entries below the diagonal are arbitrary.
    """

    index: tuple[Int[Tensor, " _"], ...]
    factors: tuple[Float[Tensor, "_ _"], ...]

    @classmethod
    def build(
        cls,
        K: KernelOperator,
        index: Sequence[Int[Tensor, " _"]],
        ridge: Tensor | float,
        *,
        dtype: torch.dtype | None = None,
    ) -> BlockCholesky:
        """Factorise the blocks. Cost: n s kernel evaluations in float64, n s² / 3 operations.

        Parameters
        ----------
        K : KernelOperator of shape (n, n)
        index : sequence of Tensor of shape (s,)
            Rows of each block, see `blocks_of_rows`.
        ridge : Tensor of shape (n, 1), or a number
            Diagonal added to K.
        dtype : torch.dtype, optional
            Dtype of the stored factors; the dtype of K if None.
        """
        dtype = K.dtype if dtype is None else dtype
        factors = []
        for rows, A in zip(index, diagonal_blocks(K, index), strict=True):
            A.diagonal().add_(ridge_at(ridge, rows))
            factors.append(convert_factor(factorise_(A), dtype))
        return cls(tuple(index), tuple(factors))

    def __matmul__(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return D⁻¹ g in the dtype of `g`. Cost: 2 n s t operations."""
        return self.half(self.half_T(g))

    def half_T(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Solve R' x = g, in the dtype of `g`."""
        return self._solve(g, transpose=True)

    def half(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Solve R x = g, in the dtype of `g`."""
        return self._solve(g, transpose=False)

    def _solve(self, g: Tensor, *, transpose: bool) -> Tensor:
        out = torch.empty_like(g)
        for rows, R in zip(self.index, self.factors, strict=True):
            # torch reads the triangle in place; `dpotrs` takes three times as long.
            T = R.t() if transpose else R
            # The right side takes the dtype of the factor: to convert the factor would read it
            # twice.
            b = g[rows].to(R.dtype)
            out[rows] = torch.linalg.solve_triangular(T, b, upper=not transpose).to(g.dtype)
        return out


def factorise_(A: Float[Tensor, "s s"]) -> Float[Tensor, "s s"]:
    """Replace the upper triangle by its Cholesky factor, and return it; add a jitter if needed.

    An approximation may change the matrix a little: a matrix that is indefinite by rounding, with
    a ridge of that size, gets the least jitter for which the factorisation succeeds.
    """
    diagonal = A.diagonal().clone()
    # The first attempt has no jitter, so that a definite block is factorised exactly.
    jitter = least_jitter(A, torch.float64)
    while True:
        try:
            la.cholesky_(A)
        except la.NotPositiveDefinite:
            # The failed factorisation has overwritten the upper triangle.
            la.mirror_lower_(A)
            A.diagonal().copy_(diagonal + jitter)
            jitter *= 10
        else:
            return A


def convert_factor(R: Float[Tensor, "s s"], dtype: torch.dtype) -> Float[Tensor, "s s"]:
    """Convert a factor to a dtype, by columns."""
    # The factor is contiguous by columns, so that its transpose converts without a second copy.
    return la.by_columns(R.t().to(dtype))


def ridge_at(ridge: Tensor | float, rows: Int[Tensor, " s"]) -> Tensor | float:
    """Return the diagonal added to K at some rows."""
    if not isinstance(ridge, Tensor) or ridge.ndim == 0:
        return ridge
    return ridge[rows, 0]
