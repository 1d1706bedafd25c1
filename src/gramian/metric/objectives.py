r"""Objectives of a Nystrom fit as functions of its hyperparameters, with gradients by torch.

With :math:`LL^\top = K_{mm}`, :math:`A = L^{-1} K_{mn} W^{1/2}` and :math:`BB^\top = AA^\top +
N\lambda I`, the estimator, its effective dimension and its data fit follow from matrices of m
columns. Both objectives are from [1]_, which proposes the second one. This form, in which the trace
that the landmarks miss multiplies the data fit, agrees with the code of its authors.

References
----------
.. [1] Meanti, Carratino, De Vito, Rosasco, *Efficient hyperparameter tuning for large scale kernel
   ridge regression*, AISTATS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..kernels import Kernel
from ._entries import entries

RELATIVE_JITTER = 1e-8
"""Added to the diagonal of K_mm, so that it has a Cholesky factor even if two landmarks meet."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with targets and optional weights, all in float64.

    Attributes
    ----------
    X : Tensor of shape (n, d)
    Y : Tensor of shape (n, t)
    weights : Tensor of shape (n,), or None
    """

    X: Float[Tensor, "n d"]
    Y: Float[Tensor, "n t"]
    weights: Float[Tensor, " n"] | None = None

    def __getitem__(self, index: Tensor | slice) -> Rows:
        """Return the rows at an index."""
        return Rows(
            self.X[index], self.Y[index], None if self.weights is None else self.weights[index]
        )

    @property
    def total(self) -> float:
        """Sum N of the weights."""
        return float(len(self.X)) if self.weights is None else float(self.weights.sum())

    @property
    def root(self) -> Tensor:
        """Roots of the weights, (n, 1)."""
        if self.weights is None:
            return torch.ones(1, 1, dtype=torch.float64)
        return self.weights.sqrt()[:, None]


@dataclass(frozen=True, eq=False)
class Parameters:
    """Hyperparameters of a Nystrom fit.

    Attributes
    ----------
    log_scales : Tensor of shape (d,)
        Logarithms of the factors of the features, which are inverse lengthscales.
    log_penalty : Tensor of shape ()
        Logarithm of the penalty.
    Z : Tensor of shape (m, d)
        Landmarks, in the units of the rows.
    """

    log_scales: Float[Tensor, " d"]
    log_penalty: Float[Tensor, ""]
    Z: Float[Tensor, "m d"]

    def all(self) -> list[Tensor]:
        """Return the parameters in order."""
        return [self.log_scales, self.log_penalty, self.Z]

    def copies(self, *, free: bool = False) -> Parameters:
        """Return copies; if `free`, with gradients enabled in torch."""
        return Parameters(*(p.detach().clone().requires_grad_(free) for p in self.all()))


@dataclass(frozen=True, eq=False)
class NystromFit:
    """Nystrom estimator of some rows, with the factors of its objectives.

    Attributes
    ----------
    kernel : Kernel
        A kernel, whose lengthscale is not used: see `entries`.
    at : Parameters
    rows : Rows
    L : Tensor of shape (m, m)
    A : Tensor of shape (m, n)
    B : Tensor of shape (m, m)
    c : Tensor of shape (m, t)
        B⁻¹ A W^(1/2) Y.
    """

    kernel: Kernel
    at: Parameters
    rows: Rows
    L: Float[Tensor, "m m"]
    A: Float[Tensor, "m n"]
    B: Float[Tensor, "m m"]
    c: Float[Tensor, "m t"]

    @classmethod
    def of(cls, kernel: Kernel, at: Parameters, rows: Rows) -> NystromFit:
        """Fit, or raise `NotPositiveDefinite`. Cost: n m kernel evaluations, n m² operations."""
        # Logarithms keep scales and penalty positive at any step.
        scales, eye = at.log_scales.exp(), torch.eye(len(at.Z), dtype=torch.float64)
        Z = at.Z * scales
        L = _cholesky(entries(kernel, Z, Z) + RELATIVE_JITTER * eye)
        # Roots of the weights on both factors keep A A' symmetric.
        K_nm = entries(kernel, rows.X * scales, Z) * rows.root
        A = torch.linalg.solve_triangular(L, K_nm.t(), upper=False)
        shift = rows.total * at.log_penalty.exp()
        B = _cholesky(A @ A.t() + shift * eye)
        c = torch.linalg.solve_triangular(B, A @ (rows.Y * rows.root), upper=False)
        return cls(kernel, at, rows, L, A, B, c)

    def coef(self) -> Float[Tensor, "m t"]:
        """Return the coefficients of the landmarks."""
        whitened = torch.linalg.solve_triangular(self.B.t(), self.c, upper=True)
        coef: Tensor = torch.linalg.solve_triangular(self.L.t(), whitened, upper=True)
        return coef

    def predict(self, X: Float[Tensor, "v d"]) -> Float[Tensor, "v t"]:
        """Return predictions at rows X."""
        scales = self.at.log_scales.exp()
        values: Tensor = entries(self.kernel, X * scales, self.at.Z * scales) @ self.coef()
        return values

    def held_out(self, rows: Rows) -> Float[Tensor, ""]:
        """Return the mean squared error on held-out rows."""
        errors = (self.predict(rows.X) - rows.Y).square().mean(dim=1)
        if rows.weights is None:
            return errors.mean()
        mean: Tensor = errors @ rows.weights / rows.total
        return mean

    def complexity(self) -> Float[Tensor, ""]:
        """Return the complexity-penalised objective, per row and target.

        It is the sum of three terms: the data fit |W^(1/2) (f(X) - Y)|² + N penalty |f|² at its
        minimum; the effective dimension; and the trace of W K over N penalty missed by the
        landmarks, times the mean data fit.
        """
        rows, n = self.rows, self.rows.total
        size = (rows.Y * rows.root).square().sum()
        fit = (size - self.c.square().sum()) / rows.Y.shape[1]
        dimension = torch.linalg.solve_triangular(self.B, self.A, upper=False).square().sum()
        # The trace of W K is N for a kernel of diagonal 1. Rounding may exceed it by a little.
        missed = (n - self.A.square().sum()).clamp(min=0.0)
        bound: Tensor = fit + dimension + missed / (n * self.at.log_penalty.exp()) * fit / n
        return bound / n


def _cholesky(M: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    # `cholesky_ex` returns a status instead of an exception of torch's own.
    factor, info = torch.linalg.cholesky_ex(M)
    if int(info):
        raise la.NotPositiveDefinite(f"the matrix of {len(M)} landmarks is not positive definite")
    lower: Tensor = factor
    return lower
