"""Approximate largest eigenvalues of a symmetric matrix, by products with a block of vectors."""

from __future__ import annotations

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, RandomStream

MATRIX_PRODUCTS = 4
"""Products with the matrix, including the one for Rayleigh's quotients.

Kernel matrices of 2,000 normal rows, 201 eigenvalues, float32, on an EPYC core: 4 products take
0.13 s, with errors of at most 0.4 % (20 features) and 1.3 % (5); `syevr` takes 0.26 s.
"""

LEAST_EXTRA_COLUMNS = 60
"""Least number of extra vectors in the block, which are a tenth of the result for large k."""


def block_columns(k: int) -> int:
    """Return the number of columns in the block for k eigenvalues."""
    return k + max(LEAST_EXTRA_COLUMNS, k // 10)


def subspace_eigenpairs(
    H: Float[Array, "m m"], k: int, rng: RandomStream
) -> tuple[Float[Array, " k"], Float[Array, "m k"]]:
    """Return the k largest eigenvalues, float64, and orthonormal vectors, in decreasing order.

    Subspace iteration from a random start with Rayleigh's quotients: [1]_, algorithms 4.4 and 5.3.

    Parameters
    ----------
    H : Array of shape (m, m)
        Symmetric positive semidefinite. Products are in its dtype.

    Notes
    -----
    Cost: with r = `block_columns` (k), 8 m² r + 12 m r² operations; memory four m x r matrices.
    Eigenvalues are never too large except for rounding; close ones are resolved as a subspace.

    References
    ----------
    .. [1] Halko, Martinsson, Tropp, *Finding structure with randomness*, SIAM Review 2011,
       arXiv:0909.4061.
    """
    r = min(block_columns(k), len(H))
    Q = xp.to_device(rng.standard_normal((len(H), r), H.dtype), H.device)
    for _ in range(MATRIX_PRODUCTS - 1):
        # Without orthogonal columns in each step, all of them would turn to the first eigenvector.
        Q, _ = xp.qr(H @ Q)
    # The small matrix is float64, because its eigenvalues are the result.
    B = xp.to_float64(Q.T) @ xp.to_float64(H @ Q)
    # Rounding makes B slightly unsymmetric.
    values, V = la.eigenpairs((B + B.T) / 2)
    return xp.flip(values, 0)[:k], Q @ xp.cast(xp.flip(V, 1)[:, :k], Q.dtype)
