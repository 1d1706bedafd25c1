"""Randomised Nystrom approximation of a positive semidefinite matrix, from its products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la


@dataclass(frozen=True)
class RandomizedNystrom:
    """Factor F with F F' approximately H, and F F' <= H up to the shift.

    Attributes
    ----------
    factor : Tensor of shape (p, r)
        F = U sqrt(Lambda): orthogonal columns, the longest first, in the dtype of the products.
    values : Tensor of shape (r,)
        Lambda, the squared lengths of the columns, float64: eigenvalues of the approximation.
    """

    factor: Float[Tensor, "p r"]
    values: Float[Tensor, " r"]


def randomized_nystrom(
    apply: Callable[[Tensor], Tensor],
    p: int,
    rank: int,
    trace: float,
    *,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
    rng: torch.Generator,
) -> RandomizedNystrom:
    r"""Approximate H by :math:`H \Omega (\Omega^\top H \Omega)^{-1} \Omega^\top H`.

    Algorithm 2 of [1]_, after [2]_: :math:`\Omega` has orthonormal random columns. A small shift
    makes the Cholesky factorisation possible, and is subtracted from the eigenvalues.

    Parameters
    ----------
    apply : callable
        Products of H with a Tensor of shape (p, r), in `dtype`.
    p, rank : int
        Rows of H; columns of Omega, at most p.
    trace : float
        Trace of H. The shift is eps(dtype) times the trace, multiplied by ten until it suffices.
    dtype : torch.dtype, default=torch.float64
        Dtype of the p x r matrices; r x r matrices are float64.
    device : str or torch.device, default="cpu"
        Device of the products.
    rng : torch.Generator

    Notes
    -----
    Cost: one product with r columns, and :math:`4 p r^2` operations. Memory: four p x r matrices.

    Departure: the thin SVD of B = Y C⁻¹ comes from the eigenvectors of B'B in float64, at a
    quarter of the cost; eigenvalues below eps64 times the largest are rounding either way.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070.
    .. [2] Tropp, Yurtsever, Udell, Cevher, *Fixed-rank approximation of a positive-semidefinite
       matrix from streaming data*, NeurIPS 2017, algorithm 3.
    """
    rank = min(rank, p)
    omega, _ = torch.linalg.qr(torch.randn(p, rank, dtype=dtype, generator=rng).to(device))
    H_omega = apply(omega)
    C, shift = _shifted_factor(omega, H_omega, torch.finfo(dtype).eps * max(trace, 1e-300))
    # In place, because the p x r matrices dominate the memory.
    Y = H_omega.add_(omega, alpha=shift)
    B = torch.linalg.solve_triangular(C.to(dtype), Y, upper=True, left=False)
    values, V = la.eigenpairs(B.t().double() @ B.double())
    # LAPACK returns increasing eigenvalues.
    values, V = values.flip(0).clamp(min=0), V.flip(1)
    lengths = (values - shift).clamp(min=0)
    # B'B has the eigenvalues with the shift, so each column is shortened to the length without it.
    scale = torch.where(lengths > 0, (lengths / values.clamp(min=1e-300)).sqrt(), 0.0)
    return RandomizedNystrom(B @ (V * scale).to(dtype), lengths)


def _shifted_factor(omega: Tensor, H_omega: Tensor, shift: float) -> tuple[Tensor, float]:
    """Return C, upper triangular, with C'C = Omega' H Omega + shift Omega' Omega, and the shift."""
    inner, gram = omega.t().double() @ H_omega.double(), omega.t().double() @ omega.double()
    # Products in the dtype of H are not symmetric to rounding, and the factor reads one triangle.
    inner = (inner + inner.t()) / 2
    while True:
        C = la.by_columns((inner + shift * gram).contiguous())
        try:
            la.cholesky_(C)
        except la.NotPositiveDefinite:
            shift *= 10
        else:
            return C.triu(), shift
