"""Preconditioner that inverts F F' plus the rest of the system within each block of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int
from ..operators import KernelOperator
from .block_cholesky import BlockCholesky, convert_factor, diagonal_blocks, factorise_, ridge_at
from .low_rank import LowRankInverse


@dataclass(frozen=True)
class BlockLowRank:
    r"""Inverse of :math:`P = F F^\top + D`, which has the blocks of K + ridge on its diagonal.

    :math:`D = \mathrm{blockdiag}(K_i - F_i F_i^\top + \mathrm{ridge}_i)`. F represents the coupling
    between blocks, D the residual within them. With D = R'R and V = R⁻ᵀ F,

    .. math:: P^{-1} = R^{-1} (I + V V^\top)^{-1} R^{-\top},

    so that blocks are solved once for each half, and V replaces F. This stays positive definite
    after any rounding of R and V.

    - `blocks`: inverse of D.
    - `low`: inverse of I + V V'.
    """

    blocks: BlockCholesky
    low: LowRankInverse

    @classmethod
    def build(
        cls,
        K: KernelOperator,
        index: Sequence[Int[Array, " _"]],
        factor: Float[Array, "n r"],
        ridge: Array | float,
        *,
        dtype: xp.DType | None = None,
    ) -> BlockLowRank:
        """Factorise the matrix. Cost: n s kernel evaluations, n (s² / 3 + 2 s r + r²) operations.

        Parameters
        ----------
        K : KernelOperator of shape (n, n)
        index : sequence of Array of shape (s,)
            Rows of each block, see `blocks_of_rows`.
        factor : Array of shape (n, r)
            F with F F' <= K up to rounding, float64; it is overwritten by V.
        ridge : Array of shape (n, 1), or a number
            Diagonal added to K.
        dtype : dtype, optional
            Dtype of the stored block factors; the dtype of K if None.
        """
        dtype, V = K.dtype if dtype is None else dtype, factor
        factors = []
        for rows, A in zip(index, diagonal_blocks(K, index), strict=True):
            # The index makes a copy, so that the rows of V can be overwritten below.
            F = V[rows]
            if la.is_on_device(A):
                xp.addmm_(A, F, F.T, alpha=-1)
            else:
                la.add_outer_(A, F, -1.0)
                la.mirror_upper_(A)
            # Rounding may give negative entries if the ridge is small. The clamp mends these, and
            # the jitter of the factorisation any other indefiniteness.
            xp.add_(xp.clip_(xp.diagonal(A), min=0.0), ridge_at(ridge, rows))
            R = factorise_(A)
            # V is solved with the factor in float64, before that is rounded for storage.
            V[rows] = xp.solve_triangular(R.T, F, upper=False)
            factors.append(convert_factor(R, dtype))
        return cls(BlockCholesky(tuple(index), tuple(factors)), LowRankInverse.build(V, 1.0))

    def __matmul__(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return P⁻¹ g in the dtype of `g`. Cost: 2 n s t + 4 n r t operations."""
        return self.blocks.half(self.low @ self.blocks.half_T(g))
