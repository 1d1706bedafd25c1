"""BlockCholesky: the inverse of the system between the rows of each block, zero elsewhere."""

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
    r"""The inverse of :math:`D = \mathrm{blockdiag}(K_i + \mathrm{ridge}_i)`.

    It is exact where the kernel does not reach from one block to another. Factors are made in
    float64, as the ridge may be below the rounding of float32, and kept as they are or rounded to
    float32: R'R stays positive definite however it is rounded, in half of the memory and, as a
    solve reads the factors, in a quarter of the time. Rounding moves R'R by about
    eps sqrt(s) of its norm: what float32 products of K do, so that float32 is right wherever they
    are (`FullProblem.needs_float64`).

    Attributes
    ----------
    index : tuple of Tensor of shape (s,)
        The rows of each block, on the host; each row is in one of them.
    factors : tuple of Tensor of shape (s, s), by columns
        R with R'R = K_i + ridge_i; what is below the diagonal is of no meaning.
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
        """Factorise. Cost: n s kernel evaluations in float64 and n s² / 3 operations.

        Parameters
        ----------
        K : KernelOperator of shape (n, n)
        index : sequence of Tensor of shape (s,)
            See `blocks_of_rows`.
        ridge : Tensor of shape (n, 1), or a number
            The diagonal that is added to K.
        dtype : torch.dtype, optional
            Of the factors that are kept; that of K if None.
        """
        dtype = K.dtype if dtype is None else dtype
        factors = []
        for rows, A in zip(index, diagonal_blocks(K, index), strict=True):
            A.diagonal().add_(ridge_at(ridge, rows))
            factors.append(kept(factorised_(A), dtype))
        return cls(tuple(index), tuple(factors))

    def __matmul__(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return D⁻¹ g in the dtype of `g`. Cost: 2 n s t operations."""
        return self.half(self.half_T(g))

    def half_T(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return the solution of R' x = g, in the dtype of `g`."""
        return self._solved(g, transpose=True)

    def half(self, g: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return the solution of R x = g, in the dtype of `g`."""
        return self._solved(g, transpose=False)

    def _solved(self, g: Tensor, *, transpose: bool) -> Tensor:
        out = torch.empty_like(g)
        for rows, R in zip(self.index, self.factors, strict=True):
            # torch reads the triangle where it is; `dpotrs` takes three times as long
            T = R.t() if transpose else R
            here = g[rows].to(R.dtype)
            out[rows] = torch.linalg.solve_triangular(T, here, upper=not transpose).to(g.dtype)
        return out


def factorised_(A: Float[Tensor, "s s"]) -> Float[Tensor, "s s"]:
    """Replace the upper triangle by its Cholesky factor, and return it; with a jitter if need be.

    What is approximated may be changed a little: a matrix that is indefinite by rounding, with a
    ridge as small, gets the least jitter with which it can be factorised.
    """
    diagonal = A.diagonal().clone()
    jitter = least_jitter(A, torch.float64)
    while True:
        try:
            la.cholesky_(A)
        except la.NotPositiveDefinite:
            la.mirror_lower_(A)
            A.diagonal().copy_(diagonal + jitter)
            jitter *= 10
        else:
            return A


def kept(R: Float[Tensor, "s s"], dtype: torch.dtype) -> Float[Tensor, "s s"]:
    """Return a factor in a dtype, by columns."""
    return la.by_columns(R.t().to(dtype))


def ridge_at(ridge: Tensor | float, rows: Int[Tensor, " s"]) -> Tensor | float:
    """Return the diagonal that is added at some rows."""
    if not isinstance(ridge, Tensor) or ridge.ndim == 0:
        return ridge
    return ridge[rows, 0]
