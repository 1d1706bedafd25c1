"""Preconditioner that inverts a diagonal plus F F' by two products with thin matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int


@dataclass(frozen=True)
class LowRankInverse:
    r"""Inverse of :math:`P = F F^\top + D`, for F of any low-rank approximation.

    .. math:: P^{-1} g = D^{-1} g - D^{-1} F (I + F^\top D^{-1} F)^{-1} F^\top D^{-1} g

    This form divides by no eigenvalue of :math:`F F^\top`, and F need not be orthogonal: with
    float32 factors it is two to four times as accurate as a form with eigenvectors.

    Attributes
    ----------
    factor : Array of shape (n, r)
        F, float32 or float64.
    ridge : Array of shape (n, 1), or ()
        The diagonal D.
    inner : Array of shape (r, r), by columns
        Cholesky factor of the matrix in brackets, float64.
    """

    factor: Float[Array, "n r"]
    ridge: Array
    inner: Float[Array, "r r"]

    @classmethod
    def build(cls, factor: Float[Array, "n r"], ridge: Array | float) -> LowRankInverse:
        """Factorise the matrix. Cost: n r² + r³ / 3 operations; memory r² and a block of F."""
        return cls.path(factor, ridge, [1.0])[0]

    @classmethod
    def path(
        cls, factor: Float[Array, "n r"], ridge: Array | float, scales: Sequence[float]
    ) -> list[LowRankInverse]:
        """Return inverses with the ridge times each scale: n r² operations, plus r³ / 3 each."""
        ridge = xp.asarray(ridge, dtype=xp.float64, like=factor)
        r = factor.shape[1]
        gram = la.by_columns(xp.zeros((r, r), xp.float64, like=factor))
        rows = max(1, BLOCK_BYTES // (8 * max(r, 1)))
        for start in range(0, len(factor) if r else 0, rows):
            # Sums of float32 products over many rows lose digits: blocks are converted one by one,
            # because a float64 copy of F would double the memory.
            F = xp.to_float64(factor[start : start + rows])
            D = ridge[start : start + rows] if ridge.ndim else ridge
            # A device sums the whole matrix: its library has no product that writes one triangle
            # alone. On the host, roots of the ridge on both factors keep the sum symmetric, of
            # which BLAS computes the upper triangle only, in half of the operations.
            if la.is_on_device(factor):
                gram += F.T @ (F / D)
            else:
                la.add_outer_(gram, (F / xp.sqrt(D)).T)
        return [cls(factor, scale * ridge, _inner(gram, scale)) for scale in scales]

    def __matmul__(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return P⁻¹ g in the dtype of `g`. Cost: 4 n r t operations."""
        F, scaled = self.factor, g / xp.cast(self.ridge, g.dtype)
        if len(self.inner) == 0:
            return scaled
        # Rows times F are six times as fast as F' times a few columns.
        small = xp.to_float64(xp.contiguous(xp.cast(scaled.T, F.dtype)) @ F).T
        inner = xp.contiguous(xp.cast(la.solve_cholesky(self.inner, small).T, F.dtype))
        projection = (inner @ F.T).T
        return scaled - xp.cast(projection, g.dtype) / xp.cast(self.ridge, g.dtype)

    def apply(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return P g."""
        low = self.factor @ (self.factor.T @ xp.cast(g, self.factor.dtype))
        return xp.cast(low, g.dtype) + xp.cast(self.ridge, g.dtype) * g


@dataclass(frozen=True)
class InverseOfEach:
    """Inverses with a common F, and a ridge for each of several columns.

    - `parts`: column numbers, and the inverse for these columns.
    """

    parts: tuple[tuple[Int[Array, " _"], LowRankInverse], ...]

    @classmethod
    def build(
        cls, factor: Float[Array, "n r"], ridge: Array | float, scales: Sequence[float]
    ) -> InverseOfEach:
        """Build the inverses for the ridge times a scale per column; cost as for `path`."""
        # Equal penalties share an inverse, which takes r³ / 3 operations.
        distinct = sorted(set(scales))
        inverses = LowRankInverse.path(factor, ridge, distinct)
        columns = (
            xp.array([k for k, s in enumerate(scales) if s == d], xp.int64) for d in distinct
        )
        return cls(tuple(zip(columns, inverses, strict=True)))

    def __matmul__(self, g: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return P⁻¹ g, each column with its own P, by two products with F for all columns."""
        F, ridge = self.parts[0][1].factor, xp.empty_like(g)
        groups = [(xp.to_device(columns, g.device), inverse) for columns, inverse in self.parts]
        for columns, inverse in groups:
            ridge[:, columns] = xp.cast(inverse.ridge, g.dtype)
        scaled = g / ridge
        if F.shape[1] == 0:
            return scaled
        # Rows times F are six times as fast as F' times a few columns.
        small = xp.to_float64(xp.contiguous(xp.cast(scaled.T, F.dtype)) @ F).T
        inner = xp.empty_like(small)
        for columns, inverse in groups:
            inner[:, columns] = la.solve_cholesky(inverse.inner, small[:, columns])
        projection = (xp.contiguous(xp.cast(inner.T, F.dtype)) @ F.T).T
        return scaled - xp.cast(projection, g.dtype) / ridge


def _inner(gram: Float[Array, "r r"], scale: float) -> Float[Array, "r r"]:
    """Return the Cholesky factor of I + gram / scale, from the upper triangle of gram."""
    # The Gram matrix serves all scales, so that each factor needs a copy.
    R = la.by_columns(xp.contiguous((gram / scale).T))
    xp.add_(xp.diagonal(R), 1.0)
    la.cholesky_(R)
    return R


BLOCK_BYTES = 1 << 24
"""Bytes of F copied at once."""
