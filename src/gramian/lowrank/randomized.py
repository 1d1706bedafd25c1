"""Randomised Nystrom approximation of a positive semidefinite matrix, from its products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, RandomStream
from .sketches import TEST_MATRICES


@dataclass(frozen=True)
class RandomizedNystrom:
    """Factor F with F F' approximately H, and F F' <= H up to the shift.

    - `factor`: F = U sqrt(Lambda): orthogonal columns, the longest first, in the dtype of the
      products.
    - `values`: lambda, the squared lengths of the columns, float64: eigenvalues of the
      approximation.
    """

    factor: Float[Array, "p r"]
    values: Float[Array, " r"]


def randomized_nystrom(
    apply: Callable[[Array], Array],
    p: int,
    rank: int,
    trace: float,
    *,
    dtype: xp.DType = xp.float64,
    device: str | xp.Device = "cpu",
    test_matrix: str = "normal",
    rng: RandomStream,
) -> RandomizedNystrom:
    r"""Approximate H by :math:`H \Omega (\Omega^\top H \Omega)^{-1} \Omega^\top H`.

    Algorithm 2 of [1]_, after [2]_: :math:`\Omega` has orthonormal random columns. A small shift
    makes the Cholesky factorisation possible, and is subtracted from the eigenvalues.

    Parameters
    ----------
    apply : callable
        Products of H with an Array of shape (p, r), in `dtype`.
    p, rank : int
        Rows of H; columns of Omega, at most p.
    trace : float
        Trace of H. The shift is eps(dtype) times the trace, multiplied by ten until it suffices.
    dtype : dtype, default=float64
        Dtype of the p x r matrices; r x r matrices are float64.
    device : str or torch.device, default="cpu"
        Device of the products.
    test_matrix : str, default="normal"
        Law of :math:`\Omega` before its columns are orthonormal: ``"normal"``, ``"hadamard"``
        (random columns of a Hadamard matrix, SRHT) or ``"sparse_sign"`` (eight signs in each row).

    Notes
    -----
    Cost: one product with r columns, and :math:`4 p r^2` operations. Memory: four p x r matrices.

    Departure: the thin SVD of B = Y C⁻¹ comes from the eigenvectors of B'B in float64, at a
    quarter of the cost; eigenvalues below eps64 times the largest are rounding either way. Products
    with all test matrices are dense, so that none is faster: the columns are made orthonormal.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070.
    .. [2] Tropp, Yurtsever, Udell, Cevher, *Fixed-rank approximation of a positive-semidefinite
       matrix from streaming data*, NeurIPS 2017, algorithm 3.
    """
    rank = min(rank, p)
    omega, _ = xp.qr(xp.to_device(TEST_MATRICES[test_matrix](p, rank, dtype, rng), device))
    H_omega = apply(omega)
    C, shift = _shifted_factor(omega, H_omega, xp.finfo(dtype).eps * max(trace, 1e-300))
    # In place, because the p x r matrices dominate the memory.
    Y = xp.add_(H_omega, omega, alpha=shift)
    B = xp.solve_triangular(xp.cast(C, dtype), Y, upper=True, left=False)
    values, V = la.eigenpairs(xp.to_float64(B.T) @ xp.to_float64(B))
    # LAPACK returns increasing eigenvalues.
    values, V = xp.flip(values, 0).clip(min=0), xp.flip(V, 1)
    lengths = (values - shift).clip(min=0)
    # B'B has the eigenvalues with the shift, so each column is shortened to the length without it.
    scale = xp.where(lengths > 0, xp.sqrt(lengths / values.clip(min=1e-300)), 0.0)
    return RandomizedNystrom(B @ xp.cast(V * scale, dtype), lengths)


def _shifted_factor(omega: Array, H_omega: Array, shift: float) -> tuple[Array, float]:
    """Return C, upper triangular, with C'C = Omega' H Omega + shift Omega' Omega, and the shift."""
    inner, gram = (
        xp.to_float64(omega.T) @ xp.to_float64(H_omega),
        xp.to_float64(omega.T) @ xp.to_float64(omega),
    )
    # Products in the dtype of H are not symmetric to rounding, and the factor reads one triangle.
    inner = (inner + inner.T) / 2
    while True:
        C = la.by_columns(xp.contiguous(inner + shift * gram))
        try:
            la.cholesky_(C)
        except la.NotPositiveDefinite:
            shift *= 10
        else:
            return xp.triu(C), shift
