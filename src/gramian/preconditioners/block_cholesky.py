"""Preconditioners that invert the system within blocks of near rows, alone or after F F'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int, RandomStream
from ..cells import MedianSplits
from ..data import RowSource, as_rows, gather_rows
from ..data.rows.base import default_block_size
from ..operators import KernelOperator
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
            la.cholesky_with_jitter_(A, xp.float64, exact=True)
            # V is solved with the factor in float64, before that is rounded for storage.
            V[rows] = xp.solve_triangular(A.T, F, upper=False)
            factors.append(convert_factor(A, dtype))
        return cls(BlockCholesky(tuple(index), tuple(factors)), LowRankInverse.build(V, 1.0))

    def __matmul__(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return P⁻¹ g in the dtype of `g`. Cost: 2 n s t + 4 n r t operations."""
        return self.blocks.half(self.low @ self.blocks.half_T(g))


SAMPLE_ROWS = 100_000
"""Most rows that determine the splits."""

SAMPLED_SHARE = 0.95
"""Target size of a block, relative to the largest one, if a sample determines the splits."""

COUPLING_ROWS = 100
"""Rows whose entries within and outside of blocks are compared."""


def blocks_of_rows(K: KernelOperator, size: int, *, rng: RandomStream) -> list[Int[Array, " _"]]:
    """Divide the rows by median splits along principal directions of the kernel's coordinates.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
        Operator of any source of dense rows.
    size : int
        Largest number of rows of a block.
    rng : RandomStream
        Draws the sample, and the start of the search for directions.

    Returns
    -------
    list of Array of shape (s,)
        Increasing row indices; each row is in one block.

    Notes
    -----
    Memory: `SAMPLE_ROWS` d numbers. Cost: two passes over the rows. Blocks of identical rows, and
    blocks that are too large, are cut into equal parts.
    """
    n = K.shape[0]
    sampled, target_rows = xp.arange(n), size
    if n > SAMPLE_ROWS:
        sampled = xp.sort(rng.sample(n, SAMPLE_ROWS))
        # A sample misplaces the medians a little, and a cell above the limit would be cut in two.
        target_rows = max(1, int(SAMPLED_SHARE * size))
    sample = K.kernel.coordinates(K.rows.take(sampled))
    cells = MedianSplits(rows=target_rows, overlap=0.0).grow(sample, n, rng=rng)
    parts_of_cell: list[list[Array]] = [[] for _ in range(cells.count)]
    for part, X in K.rows.blocks(default_block_size(K.rows)):
        for share in cells.route(K.kernel.coordinates(X)):
            parts_of_cell[share.cell].append(part.start + share.index)
    members = [xp.concat(parts) for parts in parts_of_cell if parts]
    # Cells of equal rows cannot be split by a median, so that they are cut by number.
    return [index for cell in members for index in xp.array_split(cell, -(-len(cell) // size))]


def estimate_coupling(K: KernelOperator, blocks: Sequence[Array], *, rng: RandomStream) -> float:
    """Estimate the sum of absolute entries of K outside of the blocks over the sum within them.

    Cost: n times `COUPLING_ROWS` kernel evaluations.
    """
    n = K.shape[0]
    # The table replaces a search for the block of each row in each strip.
    block_of = xp.empty(n, xp.int64)
    for number, index in enumerate(blocks):
        block_of[index] = number
    columns = xp.sort(rng.sample(n, COUPLING_ROWS))
    within, total = 0.0, 0.0
    for part, entries in K.against(K.rows.take(columns)).strips():
        size = xp.to_float64(xp.abs(xp.to_host(entries)))
        within += float((size * (block_of[part, None] == block_of[columns])).sum())
        total += float(size.sum())
    return (total - within) / within if within > 0 else 0.0


def diagonal_blocks(
    K: KernelOperator, index: Sequence[Int[Array, " _"]]
) -> Iterator[Float[Array, "_ _"]]:
    """Yield K between the rows of each block: float64, by columns, a new tensor.

    Rows without random access are gathered first, in a file if they exceed the memory budget.
    """
    K = K.double()
    rows: RowSource = K.rows
    if not rows.random_access:
        # Each block would take a pass over a sequential source.
        rows = as_rows(gather_rows(rows, xp.arange(len(rows)), K.host_bytes))
    for block in index:
        block_rows = as_rows(rows.take(block))
        entries = replace(K, rows=block_rows, cols=block_rows).dense()
        # Subnormal entries would slow the factorisation down by an order of magnitude.
        la.prepare_(entries)
        yield la.by_columns(entries)


@dataclass(frozen=True)
class BlockCholesky:
    r"""Inverse of :math:`D = \mathrm{blockdiag}(K_i + \mathrm{ridge}_i)`.

    The inverse is exact if the kernel vanishes between blocks. Factors are computed in float64,
    because the ridge may be below the rounding of float32, and stored in float64 or rounded to
    float32: R'R stays positive definite after any rounding, in half of the memory and, because a
    solve reads the factors, in a quarter of the time. Rounding moves R'R by about eps sqrt(s) of
    its norm, like float32 products of K, so that float32 is accurate wherever they are
    (`FullProblem.needs_float64`).

    - `index`: rows of each block, on the host; each row belongs to one block.
    - `factors`: R with R'R = K_i + ridge_i; entries below the diagonal are arbitrary.
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
            # A ridge of the size of rounding may leave a block indefinite, hence the jitter.
            la.cholesky_with_jitter_(A, xp.float64, exact=True)
            factors.append(convert_factor(A, dtype))
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


def convert_factor(R: Float[Array, "s s"], dtype: xp.DType) -> Float[Array, "s s"]:
    """Convert a factor to a dtype, by columns."""
    # The factor is contiguous by columns, so that its transpose converts without a second copy.
    return la.by_columns(xp.cast(R.T, dtype))


def ridge_at(ridge: Array | float, rows: Int[Array, " s"]) -> Array | float:
    """Return the diagonal added to K at some rows."""
    if isinstance(ridge, float) or ridge.ndim == 0:
        return ridge
    return ridge[rows, 0]
