"""columns_factor: Nystrom factor of random columns, in the dtype of the rows."""

from __future__ import annotations

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, RandomStream
from ..operators import KernelOperator

RELATIVE_JITTER = 1e-5
"""Added to the diagonal of K_SS: the error of float32 entries in the columns."""


def columns_factor(
    K: KernelOperator,
    rank: int,
    *,
    rng: RandomStream,
) -> Float[Array, "n r"]:
    """Return F = K_nS R⁻¹ with F F' near K, for random rows S and R'R = K_SS + jitter.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    rank : int
        Number of columns, at most n.

    Returns
    -------
    Array of shape (n, r)
        The factor F in the dtype of K, on the host.

    Notes
    -----
    Cost: n r kernel evaluations, n r² operations in the dtype of K, r³ / 3 in float64. On 16,512
    rows of eight features and r = 1,000 it took a third of the time of `pivoted_cholesky`, and
    conjugate gradient with it 10 to 20 % more iterations.
    """
    n = K.shape[0]
    S = xp.sort(rng.sample(n, min(rank, n)))
    columns = K.columns(S)
    # The small matrix is float64, because its factor divides the columns.
    R = xp.to_host(xp.to_float64(columns[S]).dense())
    xp.multiply_(xp.diagonal(R), 1 + RELATIVE_JITTER)
    R = la.by_columns(R)
    la.cholesky_(R)
    upper = xp.cast(xp.triu(R), K.dtype)
    F = xp.empty((n, len(S)), K.dtype)
    for rows, strip in columns.strips():
        F[rows] = xp.solve_triangular(upper, xp.to_host(strip), upper=True, left=False)
    return F
