"""Preconditioner that inverts the system within each block of rows, and ignores the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int
from ..operators import KernelOperator
from .blocks import diagonal_blocks
from .jitter import least_jitter


@dataclass(frozen=True)
class BlockCholesky:
    r"""Inverse of :math:`D = \mathrm{blockdiag}(K_i + \mathrm{ridge}_i)`.

    The inverse is exact if the kernel vanishes between blocks. Factors are computed in float64,
    because the ridge may be below the rounding of float32, and stored in float64 or rounded to
    float32: R'R stays positive definite after any rounding, in half of the memory and, because a
    solve reads the factors, in a quarter of the time. Rounding moves R'R by about eps sqrt(s) of
    its norm, like float32 products of K, so that float32 is accurate wherever they are
    (`FullProblem.needs_float64`).

    Attributes
    ----------
    index : tuple of Array of shape (s,)
        Rows of each block, on the host; each row belongs to one block.
    factors : tuple of Array of shape (s, s), by columns
        R with R'R = K_i + ridge_i; entries below the diagonal are arbitrary.
    """

    index: tuple[Int[Array, " _"], ...]
    factors: tuple[Float[Array, "_ _"], ...]

    @classmethod
    def build(
        cls,
        K: KernelOperator,
        index: Sequence[Int[Array, " _"]],
        ridge: Array | float,
        *,
        dtype: xp.DType | None = None,
    ) -> BlockCholesky:
        """Factorise the blocks. Cost: n s kernel evaluations in float64, n s² / 3 operations.

        Parameters
        ----------
        K : KernelOperator of shape (n, n)
        index : sequence of Array of shape (s,)
            Rows of each block, see `blocks_of_rows`.
        ridge : Array of shape (n, 1), or a number
            Diagonal added to K.
        dtype : dtype, optional
            Dtype of the stored factors; the dtype of K if None.
        """
        dtype = K.dtype if dtype is None else dtype
        factors = []
        for rows, A in zip(index, diagonal_blocks(K, index), strict=True):
            xp.add_(xp.diagonal(A), ridge_at(ridge, rows))
            factors.append(convert_factor(factorise_(A), dtype))
        return cls(tuple(index), tuple(factors))

    def __matmul__(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return D⁻¹ g in the dtype of `g`. Cost: 2 n s t operations."""
        return self.half(self.half_T(g))

    def half_T(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Solve R' x = g in the dtype of `g`, with R the Cholesky factor of each block."""
        return self._solve(g, transpose=True)

    def half(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Solve R x = g in the dtype of `g`, with R the Cholesky factor of each block."""
        return self._solve(g, transpose=False)

    def _solve(self, g: Array, *, transpose: bool) -> Array:
        out = xp.empty_like(g)
        for rows, R in zip(self.index, self.factors, strict=True):
            # The triangle is read in place; `dpotrs` takes three times as long.
            T = R.T if transpose else R
            # The right side takes the dtype of the factor: to convert the factor would read it
            # twice.
            b = xp.cast(g[rows], R.dtype)
            out[rows] = xp.cast(xp.solve_triangular(T, b, upper=not transpose), g.dtype)
        return out


def factorise_(A: Float[Array, "s s"]) -> Float[Array, "s s"]:
    """Replace the upper triangle by the Cholesky factor, with a jitter if needed, and return it.

    An approximation may change the matrix a little: a matrix that is indefinite by rounding, with
    a ridge of that size, gets the least jitter for which the factorisation succeeds.
    """
    diagonal = xp.copy(xp.diagonal(A))
    # The first attempt has no jitter, so that a definite block is factorised exactly.
    jitter = least_jitter(A, xp.float64)
    while True:
        try:
            la.cholesky_(A)
        except la.NotPositiveDefinite:
            # The failed factorisation has overwritten the upper triangle.
            la.mirror_lower_(A)
            xp.assign_(xp.diagonal(A), diagonal + jitter)
            jitter *= 10
        else:
            return A


def convert_factor(R: Float[Array, "s s"], dtype: xp.DType) -> Float[Array, "s s"]:
    """Convert a factor to a dtype, by columns."""
    # The factor is contiguous by columns, so that its transpose converts without a second copy.
    return la.by_columns(xp.cast(R.T, dtype))


def ridge_at(ridge: Array | float, rows: Int[Array, " s"]) -> Array | float:
    """Return the diagonal added to K at some rows."""
    if isinstance(ridge, float) or ridge.ndim == 0:
        return ridge
    return ridge[rows, 0]
