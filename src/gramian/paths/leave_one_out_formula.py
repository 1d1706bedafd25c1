"""Leave-one-out errors at all penalties, from one factorisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la

RELATIVE_JITTER = 1e-10
"""Added to the diagonal of K_mm, so that it has a Cholesky factor for landmarks close together."""

SHIFT_NUMBERS = 1 << 20
"""Most numbers of residuals for several shifts together, unless the eigenvectors have more."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigenvectors of a kernel matrix of weighted rows.

    Attributes
    ----------
    values : Tensor of shape (r,)
        Eigenvalues of :math:`W^{1/2} K W^{1/2}`, or of its Nystrom approximation.
    vectors : Tensor of shape (n, r)
    full : bool
        Whether r = n: the vectors then span the whole space.
    weights : Tensor of shape (n,)
    dual : Tensor of shape (m, r), or None
        For landmarks: the dual vectors of the first m rows, :math:`R^{-\top} e_c` for the factor
        :math:`R^\top R = K_{mm}`, in the basis of eigenvectors. Their inner product with the
        coefficients of the features is the coefficient of center c.
    dual_rest : Tensor of shape (m,), or None
        Squared norms of these vectors in the complement of the eigenvectors.
    """

    values: Float[Tensor, " r"]
    vectors: Float[Tensor, "n r"]
    full: bool
    weights: Float[Tensor, " n"]
    dual: Float[Tensor, "m r"] | None = None
    dual_rest: Float[Tensor, " m"] | None = None

    @classmethod
    def of(cls, K: Float[Tensor, "n n"], weights: Float[Tensor, " n"]) -> Spectrum:
        """Decompose the kernel matrix of all rows as centers. Cost: about 5 n³ operations."""
        root = weights.double().sqrt()
        # The weights enter symmetrically, so that the eigenvectors are orthogonal.
        A = root[:, None] * K.double() * root
        # Products of tiny entries are denormal numbers, which slow LAPACK down.
        la.flush_tiny_(A)
        values, vectors = la.eigenpairs(A)
        # Rounding leaves eigenvalues below zero, and a shift could then meet a pole.
        return cls(values.clamp(min=0.0), vectors, True, weights)

    @classmethod
    def of_landmarks(cls, K_nm: Float[Tensor, "n m"], weights: Float[Tensor, " n"]) -> Spectrum:
        """Decompose the Nystrom approximation whose landmarks are the first m of n distinct rows.

        Cost: 3 n m² operations and about 6 m³.
        """
        K_mm = K_nm[: K_nm.shape[1]].double()
        identity = torch.eye(len(K_mm), dtype=torch.float64)
        # The absolute term is for a kernel whose diagonal is zero.
        jitter = RELATIVE_JITTER * float(K_mm.diagonal().mean()) + 1e-300
        R = torch.linalg.cholesky(K_mm + jitter * identity)
        # 1. Features F, with the Nystrom approximation F F'. R is the lower factor.
        features = torch.linalg.solve_triangular(R, K_nm.double().t(), upper=False).t()
        features = weights.double().sqrt()[:, None] * features
        # 2. The m x m side has the same eigenvalues as the n x n side, at a fraction of the cost.
        values, vectors = la.eigenpairs(features.t() @ features)
        # Smaller eigenvalues are rounding; `dual_rest` accounts for their directions.
        is_positive = values > 1e-14 * values.max()
        values, vectors = values[is_positive], vectors[:, is_positive]
        # 3. Dual vectors of the centers, in the basis of the eigenvectors.
        inverse = torch.linalg.solve_triangular(R, identity, upper=False)
        dual = inverse.t() @ vectors
        dual_rest = (inverse.square().sum(dim=0) - dual.square().sum(dim=1)).clamp(min=0.0)
        # 4. Eigenvectors of the n x n side.
        left_vectors = features @ vectors / values.sqrt()
        return cls(values, left_vectors, False, weights, dual, dual_rest)

    def losses(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float], *, eps: float = 0.0
    ) -> list[float]:
        r"""Return the weighted mean squared leave-one-out error, for each shift.

        Infinity replaces values that are not finite.

        Parameters
        ----------
        Y : Tensor of shape (n, t)
        shifts : sequence of float
            Shifts :math:`N \lambda`, for the penalties :math:`\lambda`.
        eps : float, default=0.0
            Rounding of the kernel entries in predictions. Errors of `eps` times the coefficients
            are added to the loss, because coefficients of a tiny penalty are too large for float32.

        Notes
        -----
        With H the matrix that maps targets to predictions, the leave-one-out error of row i is (y -
        H y)_i / (1 - H_ii). A row is left out with its whole weight w, like w equal rows. A
        landmark is left out both as a row and as a center; see `_remove_centers`. Cost: n r (t + 1)
        operations for each shift.
        """
        weights = self.weights.double()
        total = float(weights.sum()) * Y.shape[1]
        losses = []
        for shift, residual, complement in self._residuals(Y, shifts):
            loss = float((residual / complement[:, None]).square().sum()) / total
            # Coefficients of the full problem are the residuals over the shift.
            coef = weights.sqrt()[:, None] * residual / shift
            loss += eps**2 * float(coef.square().sum()) / Y.shape[1]
            losses.append(loss if math.isfinite(loss) else math.inf)
        return losses

    def spreads(self, Y: Float[Tensor, "n t"], shifts: Sequence[float]) -> list[float]:
        r"""Return the geometric mean variance of one-step-ahead predictions, for each shift.

        .. math:: \frac{1}{nt}\, \mathrm{tr}(Y^\top C^{-1} Y)\, \det(C)^{1/n},
            \qquad C = K + s W^{-1}

        up to a factor that depends on the weights alone. Minus half its logarithm is the log
        marginal likelihood of a Gaussian process, per number of Y and up to a constant, at the most
        likely amplitude. All rows are centers. Cost: n (t + 1) operations for each shift.
        """
        y = self.weights.double().sqrt()[:, None] * Y.double()
        inside = (self.vectors.t() @ y).square().mean(dim=1)
        spreads = []
        for shift in shifts:
            total = self.values + shift
            # By logarithms, because the product of n eigenvalues would overflow.
            spread = float((inside / total).mean()) * math.exp(float(total.log().mean()))
            spreads.append(spread if math.isfinite(spread) else math.inf)
        return spreads

    def predict_left_out(self, Y: Float[Tensor, "n t"], shift: float) -> Float[Tensor, "n t"]:
        """Return the leave-one-out predictions at one shift; see `losses`."""
        ((_, residual, complement),) = self._residuals(Y, [shift])
        return Y.double() - residual / complement[:, None] / self.weights.double().sqrt()[:, None]

    def _residuals(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float]
    ) -> Iterator[tuple[float, Float[Tensor, "n t"], Float[Tensor, " n"]]]:
        """Yield (shift, W^(1/2) (y - H y), diagonal of 1 - H) for each shift.

        At a landmark's row, the last two belong to a fit without this landmark as a center. Two
        products serve all shifts.
        """
        y = self.weights.double().sqrt()[:, None] * Y.double()
        inside = self.vectors.t() @ y
        squares = self.vectors.square()
        outside = 0.0 if self.full else y - self.vectors @ inside
        # Directions outside of the eigenvectors are not fitted, whatever the shift.
        complement_outside = 0.0 if self.full else 1 - squares.sum(dim=1)
        (n, r), t = self.vectors.shape, y.shape[1]
        # Shifts share a product up to the memory of the eigenvectors themselves.
        at_once = max(1, max(r, SHIFT_NUMBERS // n) // t)
        for start in range(0, len(shifts), at_once):
            part = torch.tensor(shifts[start : start + at_once], dtype=torch.float64)
            remainder = part / (self.values[:, None] + part)  # (r, k)
            within = self.vectors @ (remainder[:, :, None] * inside[:, None]).flatten(1)
            complement = squares @ remainder
            for k, shift in enumerate(part.tolist()):
                residual = outside + within[:, k * t : (k + 1) * t]
                complement_k = complement_outside + complement[:, k]
                yield shift, *self._remove_centers(shift, inside, residual, complement_k)

    def _remove_centers(
        self,
        shift: float,
        inside: Float[Tensor, "r t"],
        residual: Float[Tensor, "n t"],
        complement: Float[Tensor, " n"],
    ) -> tuple[Float[Tensor, "n t"], Float[Tensor, " n"]]:
        r"""Remove each landmark from the centers of the fit without its own row.

        A row that is a landmark c has its own column, :math:`k(\cdot, x_c)`, which no other row
        determines: leaving out the row alone overstates its error. Removing the center constrains
        its coefficient to zero, a rank-one change of the inverse
        :math:`A^{-1} = (F^\top W F + s I)^{-1}`, which becomes
        :math:`A^{-1} - A^{-1} u u^\top A^{-1} / u^\top A^{-1} u` with the dual vector u of c.
        Cost: 3 m r operations and m r t.
        """
        if self.dual is None or self.dual_rest is None:
            return residual, complement
        m, root = len(self.dual), self.values.sqrt()
        inverse = 1 / (self.values + shift)
        curvature = self.dual.square() @ inverse + self.dual_rest / shift
        coef = self.dual @ ((root * inverse)[:, None] * inside)
        cross = (self.vectors[:m] * self.dual) @ (root * inverse)
        # Only the rows of landmarks change; the tensors of the caller stay.
        residual, complement = residual.clone(), complement.clone()
        residual[:m] += (cross / curvature)[:, None] * coef
        complement[:m] += cross.square() / curvature
        return residual, complement
