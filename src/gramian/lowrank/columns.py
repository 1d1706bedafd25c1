"""columns_factor: Nystrom factor of random columns, in the dtype of the rows."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..operators import KernelOperator

RELATIVE_JITTER = 1e-5
"""Added to the diagonal of K_SS: the error of float32 entries in the columns."""


def columns_factor(
    K: KernelOperator,
    rank: int,
    *,
    rng: torch.Generator,
) -> Float[Tensor, "n r"]:
    """Return F = K_nS R⁻¹ with F F' near K, for random rows S and R'R = K_SS + jitter.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    rank : int
        Number of columns, at most n.
    rng : torch.Generator

    Returns
    -------
    Tensor of shape (n, r)
        The factor F in the dtype of K, on the host.

    Notes
    -----
    Cost: n r kernel evaluations, n r² operations in the dtype of K, r³ / 3 in float64. On 16,512
    rows of eight features and r = 1,000 it took a third of the time of `pivoted_cholesky`, and
    conjugate gradient with it 10 to 20 % more iterations.
    """
    n = K.shape[0]
    S = torch.randperm(n, generator=rng)[: min(rank, n)].sort().values
    columns = K.columns(S)
    # The small matrix is float64, because its factor divides the columns.
    R = columns[S].double().dense().cpu()
    R.diagonal().mul_(1 + RELATIVE_JITTER)
    R = la.by_columns(R)
    la.cholesky_(R)
    upper = R.triu().to(K.dtype)
    F = torch.empty(n, len(S), dtype=K.dtype)
    for rows, strip in columns.strips():
        F[rows] = torch.linalg.solve_triangular(upper, strip.cpu(), upper=True, left=False)
    return F
