"""leave_one_out: the error of each row without it, at all penalties, from one factorisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la

JITTER = 1e-10
"""Of the diagonal of K_mm, so that it has a Cholesky factor where landmarks are close together."""

SHIFT_NUMBERS = 1 << 20
"""Numbers of residuals, of all shifts at once: no more than these, or than the eigenvectors."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""The eigenvectors of a kernel matrix of rows that count as often as their weights say.

    Attributes
    ----------
    values : Tensor of shape (r,)
        Eigenvalues of :math:`W^{1/2} K W^{1/2}`, or of its Nystrom approximation.
    vectors : Tensor of shape (n, r)
    full : bool
        Whether r = n: these vectors span everything.
    weights : Tensor of shape (n,)
    dual : Tensor of shape (m, r), or None
        With landmarks: the dual vectors of the first m rows, :math:`R^{-\top} e_c` for the factor
        :math:`R^\top R = K_{mm}`, by the eigenvectors. Their inner product with the coefficients of
        the features is the coefficient of center c.
    dual_rest : Tensor of shape (m,), or None
        Squared norms of the parts of these vectors that no eigenvector holds.
    """

    values: Float[Tensor, " r"]
    vectors: Float[Tensor, "n r"]
    full: bool
    weights: Float[Tensor, " n"]
    dual: Float[Tensor, "m r"] | None = None
    dual_rest: Float[Tensor, " m"] | None = None

    @classmethod
    def of(cls, K: Float[Tensor, "n n"], weights: Float[Tensor, " n"]) -> Spectrum:
        """Return that of all rows as centers. Cost: some 5 n³ operations."""
        root = weights.double().sqrt()
        A = root[:, None] * K.double() * root
        la.flush_tiny_(A)
        values, vectors = la.eigenpairs(A)
        return cls(values.clamp(min=0.0), vectors, True, weights)

    @classmethod
    def of_landmarks(cls, K_nm: Float[Tensor, "n m"], weights: Float[Tensor, " n"]) -> Spectrum:
        """Decompose the Nystrom approximation whose landmarks are the first m of n distinct rows.

        Cost: 3 n m² operations and about 6 m³.
        """
        K_mm = K_nm[: K_nm.shape[1]].double()
        identity = torch.eye(len(K_mm), dtype=torch.float64)
        jitter = JITTER * float(K_mm.diagonal().mean()) + 1e-300
        R = torch.linalg.cholesky(K_mm + jitter * identity)
        features = torch.linalg.solve_triangular(R, K_nm.double().t(), upper=False).t()
        features = weights.double().sqrt()[:, None] * features
        values, vectors = la.eigenpairs(features.t() @ features)
        kept = values > 1e-14 * values.max()
        values, vectors = values[kept], vectors[:, kept]
        inverse = torch.linalg.solve_triangular(R, identity, upper=False)
        dual = inverse.t() @ vectors
        dual_rest = (inverse.square().sum(dim=0) - dual.square().sum(dim=1)).clamp(min=0.0)
        left_vectors = features @ vectors / values.sqrt()
        return cls(values, left_vectors, False, weights, dual, dual_rest)

    def losses(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float], *, eps: float = 0.0
    ) -> list[float]:
        r"""Return the weighted mean squared error of each row when it is left out, for each shift.

        Infinity where it is not a number.

        Parameters
        ----------
        Y : Tensor of shape (n, t)
        shifts : sequence of float
            :math:`N \lambda`.
        eps : float, default=0.0
            Rounding of kernel entries of predictions. Errors of `eps` times the coefficients are
            added to the loss: those of a tiny penalty are huge, and no use in float32.

        Notes
        -----
        With H the matrix that maps targets to predictions, that of row i without it is off by
        (y - H y)_i / (1 - H_ii): a row of weight w is left out as a whole, as if w equal rows were.
        A landmark is left out as a row and as a center; see `_without_centers`.
        Cost: n r (t + 1) operations for each shift.
        """
        weights = self.weights.double()
        total = float(weights.sum()) * Y.shape[1]
        found = []
        for shift, off, free in self._off(Y, shifts):
            loss = float((off / free[:, None]).square().sum()) / total
            coef = weights.sqrt()[:, None] * off / shift
            loss += eps**2 * float(coef.square().sum()) / Y.shape[1]
            found.append(loss if math.isfinite(loss) else math.inf)
        return found

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
            spread = float((inside / total).mean()) * math.exp(float(total.log().mean()))
            spreads.append(spread if math.isfinite(spread) else math.inf)
        return spreads

    def left_out(self, Y: Float[Tensor, "n t"], shift: float) -> Float[Tensor, "n t"]:
        """Return the prediction of each row by the others, at one shift; see `losses`."""
        ((_, off, free),) = self._off(Y, [shift])
        return Y.double() - off / free[:, None] / self.weights.double().sqrt()[:, None]

    def _off(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float]
    ) -> Iterator[tuple[float, Float[Tensor, "n t"], Float[Tensor, " n"]]]:
        """Yield each shift, y - H y of rows times the root of their weights, and 1 - H_ii.

        Of landmarks both belong to the fit without their center. Two products have all shifts.
        """
        y = self.weights.double().sqrt()[:, None] * Y.double()
        inside = self.vectors.t() @ y
        squares = self.vectors.square()
        beyond = 0.0 if self.full else y - self.vectors @ inside
        left = 0.0 if self.full else 1 - squares.sum(dim=1)
        (n, r), t = self.vectors.shape, y.shape[1]
        at_once = max(1, max(r, SHIFT_NUMBERS // n) // t)
        for start in range(0, len(shifts), at_once):
            some = torch.tensor(shifts[start : start + at_once], dtype=torch.float64)
            stays = some / (self.values[:, None] + some)  # (r, k)
            off = self.vectors @ (stays[:, :, None] * inside[:, None]).flatten(1)
            free = squares @ stays
            for k, shift in enumerate(some.tolist()):
                residual = beyond + off[:, k * t : (k + 1) * t]
                yield shift, *self._without_centers(shift, inside, residual, left + free[:, k])

    def _without_centers(
        self,
        shift: float,
        inside: Float[Tensor, "r t"],
        off: Float[Tensor, "n t"],
        free: Float[Tensor, " n"],
    ) -> tuple[Float[Tensor, "n t"], Float[Tensor, " n"]]:
        r"""Return `off` and `free` with each landmark removed from the centers of its own row.

        With center c a row that is a landmark has a column of its own, :math:`k(\cdot, x_c)`, which
        no other row pins down: leaving the row out alone overstates its error. Removing the center
        is the constraint that its coefficient is zero, a rank-one change of the inverse
        :math:`A^{-1} = (F^\top W F + s I)^{-1}`: it becomes
        :math:`A^{-1} - A^{-1} u u^\top A^{-1} / u^\top A^{-1} u` with the dual vector u of c.
        Cost: 3 m r operations and m r t.
        """
        if self.dual is None or self.dual_rest is None:
            return off, free
        m, root = len(self.dual), self.values.sqrt()
        inverse = 1 / (self.values + shift)
        curvature = self.dual.square() @ inverse + self.dual_rest / shift
        coef = self.dual @ ((root * inverse)[:, None] * inside)
        cross = (self.vectors[:m] * self.dual) @ (root * inverse)
        off, free = off.clone(), free.clone()
        off[:m] += (cross / curvature)[:, None] * coef
        free[:m] += cross.square() / curvature
        return off, free
