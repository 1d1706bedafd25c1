"""Leave-one-out errors, at all penalties from eigenpairs, or at one from a Cholesky factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float
from .work import Work

RELATIVE_JITTER = 1e-10
"""Added to the diagonal of K_mm, so that it has a Cholesky factor for landmarks close together."""

SPECTRUM_OPERATIONS = 14
"""Operations of an eigendecomposition over n³, as LAPACK runs at a third of the speed."""

SHIFT_NUMBERS = 1 << 20
"""Most numbers of residuals for several shifts together, unless the eigenvectors have more."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigendecomposition of a kernel matrix, from which leave-one-out errors are computed.

    - `values`: eigenvalues of :math:`W^{1/2} K W^{1/2}`, or of its Nystrom approximation.
    - `full`: whether r = n: the vectors then span the whole space.
    - `dual`: for landmarks: the dual vectors of the first m rows, :math:`R^{-\top} e_c` for the
      factor :math:`R^\top R = K_{mm}`, in the basis of eigenvectors. Their inner product with the
      coefficients of the features is the coefficient of center c.
    - `dual_rest`: squared norms of these vectors in the complement of the eigenvectors.
    """

    values: Float[Array, " r"]
    vectors: Float[Array, "n r"]
    full: bool
    weights: Float[Array, " n"]
    dual: Float[Array, "m r"] | None = None
    dual_rest: Float[Array, " m"] | None = None

    @classmethod
    def of(cls, K: Float[Array, "n n"], weights: Float[Array, " n"]) -> Spectrum:
        """Decompose the kernel matrix of all rows as centers. Cost: about 5 n³ operations."""
        root = xp.sqrt(xp.to_float64(weights))
        # The weights enter symmetrically, so that the eigenvectors are orthogonal.
        A = root[:, None] * xp.to_float64(K) * root
        # Products of tiny entries are denormal numbers, which slow LAPACK down.
        la.flush_tiny_(A)
        values, vectors = la.eigenpairs(A)
        # Rounding leaves eigenvalues below zero, and a shift could then meet a pole.
        return cls(values.clip(min=0.0), vectors, True, weights)

    @classmethod
    def of_landmarks(cls, K_nm: Float[Array, "n m"], weights: Float[Array, " n"]) -> Spectrum:
        """Decompose the Nystrom approximation whose landmarks are the first m of n distinct rows.

        Cost: 3 n m² operations and about 6 m³.
        """
        K_mm = xp.to_float64(K_nm[: K_nm.shape[1]])
        identity = xp.eye(len(K_mm), xp.float64)
        # The absolute term is for a kernel whose diagonal is zero.
        jitter = RELATIVE_JITTER * float(xp.diagonal(K_mm).mean()) + 1e-300
        R = xp.cholesky(K_mm + jitter * identity)
        # 1. Features F, with the Nystrom approximation F F'. R is the lower factor.
        features = xp.solve_triangular(R, xp.to_float64(K_nm).T, upper=False).T
        # Roots of the weights on the rows, so that a row of weight w counts as w equal rows.
        features = xp.sqrt(xp.to_float64(weights))[:, None] * features
        # 2. The m x m side has the same eigenvalues as the n x n side, at a fraction of the cost.
        values, vectors = la.eigenpairs(features.T @ features)
        # Smaller eigenvalues are rounding; `dual_rest` accounts for their directions.
        is_positive = values > 1e-14 * values.max()
        values, vectors = values[is_positive], vectors[:, is_positive]
        # 3. Dual vectors of the centers, in the basis of the eigenvectors.
        inverse = xp.solve_triangular(R, identity, upper=False)
        dual = inverse.T @ vectors
        dual_rest = (xp.square(inverse).sum(axis=0) - xp.square(dual).sum(axis=1)).clip(min=0.0)
        # 4. Eigenvectors of the n x n side.
        left_vectors = features @ vectors / xp.sqrt(values)
        return cls(values, left_vectors, False, weights, dual, dual_rest)

    @staticmethod
    def work(n: int, m: int) -> Work:
        """Return the work of n rows with m landmarks, or all rows if m is n; with the entries."""
        of_rows = 0.0 if m == n else 3.0 * n * m**2
        return Work(
            double_evaluations=float(n) * m,
            operations=of_rows + SPECTRUM_OPERATIONS * float(m) ** 3,
            peak_bytes=48.0 * n * m,
        )

    def losses(
        self, Y: Float[Array, "n t"], shifts: Sequence[float], *, eps: float = 0.0
    ) -> list[float]:
        r"""Return the weighted mean squared leave-one-out error, for each shift.

        Infinity replaces values that are not finite.

        - `shifts`: shifts :math:`N \lambda`, for the penalties :math:`\lambda`.
        - `eps`: rounding of the kernel entries in predictions. Errors of `eps` times the
          coefficients are added to the loss, because coefficients of a tiny penalty are too large
          for float32.

        Notes
        -----
        With H the matrix that maps targets to predictions, the leave-one-out error of row i is (y -
        H y)_i / (1 - H_ii). A row is left out with its whole weight w, like w equal rows. A
        landmark is left out both as a row and as a center; see `_remove_centers`. Cost: n r (t + 1)
        operations for each shift.
        """
        weights = xp.to_float64(self.weights)
        total = float(weights.sum()) * Y.shape[1]
        losses = []
        for shift, residual, complement in self._residuals(Y, shifts):
            squares = xp.square(residual).sum(axis=1)
            loss = float((squares / xp.square(complement)).sum()) / total
            # Coefficients of the full problem are the residuals over the shift.
            loss += (eps / shift) ** 2 * float(weights @ squares) / Y.shape[1]
            losses.append(loss if math.isfinite(loss) else math.inf)
        return losses

    def spreads(self, Y: Float[Array, "n t"], shifts: Sequence[float]) -> list[float]:
        r"""Return, for each shift, a criterion that falls as the marginal likelihood grows.

        .. math:: \frac{1}{nt}\, \mathrm{tr}(Y^\top C^{-1} Y)\, \det(C)^{1/n},
            \qquad C = K + s W^{-1}

        Here s is the shift, and a factor that depends on the weights alone is left out. For a
        Gaussian process with its most likely amplitude, the log marginal likelihood divided by n t
        is -1/2 times the logarithm of this value, plus a constant. The value is the geometric mean
        of the variances with which each row is predicted from the rows before it. All rows are
        centers. Cost: n (t + 1) operations for each shift.
        """
        y = xp.sqrt(xp.to_float64(self.weights))[:, None] * xp.to_float64(Y)
        # In the basis of eigenvectors each shift costs n numbers, after one product for all of
        # them.
        inside = xp.square(self.vectors.T @ y).mean(axis=1)
        spreads = []
        for shift in shifts:
            total = self.values + shift
            # By logarithms, because the product of n eigenvalues would overflow.
            spread = float((inside / total).mean()) * math.exp(float(xp.log(total).mean()))
            spreads.append(spread if math.isfinite(spread) else math.inf)
        return spreads

    def predict_left_out(self, Y: Float[Array, "n t"], shift: float) -> Float[Array, "n t"]:
        """Return the leave-one-out predictions at one shift; see `losses`."""
        ((_, residual, complement),) = self._residuals(Y, [shift])
        return (
            xp.to_float64(Y)
            - residual / complement[:, None] / xp.sqrt(xp.to_float64(self.weights))[:, None]
        )

    def _residuals(
        self, Y: Float[Array, "n t"], shifts: Sequence[float]
    ) -> Iterator[tuple[float, Float[Array, "n t"], Float[Array, " n"]]]:
        """Yield (shift, W^(1/2) (y - H y), diagonal of 1 - H) for each shift.

        At a landmark's row, the last two belong to a fit without this landmark as a center. Two
        products serve all shifts.
        """
        y = xp.sqrt(xp.to_float64(self.weights))[:, None] * xp.to_float64(Y)
        inside = self.vectors.T @ y
        squares = xp.square(self.vectors)
        outside = 0.0 if self.full else y - self.vectors @ inside
        # Directions outside of the eigenvectors are not fitted, whatever the shift.
        complement_outside = 0.0 if self.full else 1 - squares.sum(axis=1)
        (n, r), t = self.vectors.shape, y.shape[1]
        # Shifts share a product up to the memory of the eigenvectors themselves.
        at_once = max(1, max(r, SHIFT_NUMBERS // n) // t)
        for start in range(0, len(shifts), at_once):
            part = xp.array(shifts[start : start + at_once], dtype=xp.float64)
            remainder = part / (self.values[:, None] + part)  # (r, k)
            within = self.vectors @ (remainder[:, :, None] * inside[:, None]).reshape(
                len(remainder), -1
            )
            complement = squares @ remainder
            for k, shift in enumerate(part.tolist()):
                residual = outside + within[:, k * t : (k + 1) * t]
                complement_k = complement_outside + complement[:, k]
                yield shift, *self._remove_centers(shift, inside, residual, complement_k)

    def _remove_centers(
        self,
        shift: float,
        inside: Float[Array, "r t"],
        residual: Float[Array, "n t"],
        complement: Float[Array, " n"],
    ) -> tuple[Float[Array, "n t"], Float[Array, " n"]]:
        r"""Correct the residuals of landmarks for fits without the landmark as a center, too.

        A row that is a landmark c has its own column, :math:`k(\cdot, x_c)`, which no other row
        determines: leaving out the row alone overstates its error. Removing the center constrains
        its coefficient to zero, a rank-one change of the inverse
        :math:`A^{-1} = (F^\top W F + s I)^{-1}`, which becomes
        :math:`A^{-1} - A^{-1} u u^\top A^{-1} / u^\top A^{-1} u` with the dual vector u of c.
        Cost: 3 m r operations and m r t.
        """
        if self.dual is None or self.dual_rest is None:
            return residual, complement
        m, root = len(self.dual), xp.sqrt(self.values)
        inverse = 1 / (self.values + shift)
        curvature = xp.square(self.dual) @ inverse + self.dual_rest / shift
        coef = self.dual @ ((root * inverse)[:, None] * inside)
        cross = (self.vectors[:m] * self.dual) @ (root * inverse)
        # Only the rows of landmarks change; the tensors of the caller stay.
        residual, complement = xp.copy(residual), xp.copy(complement)
        residual[:m] += (cross / curvature)[:, None] * coef
        complement[:m] += xp.square(cross) / curvature
        return residual, complement


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out loss, spread and predictions at one shift, as `Spectrum` defines them.

    Attributes
    ----------
    loss, spread : float
    predicted : Array of shape (n, t)
    """

    loss: float
    spread: float
    predicted: Float[Array, "n t"]


def leave_one_out(
    K: Float[Array, "n n"],
    weights: Float[Array, " n"],
    Y: Float[Array, "n t"],
    shift: float,
    *,
    eps: float = 0.0,
) -> LeftOut:
    r"""Return the leave-one-out loss of a kernel matrix with all rows as centers, at one shift.

    - `K`: symmetric; unchanged.
    - `weights`, `Y`, `shift`, `eps`: as for `Spectrum.losses`.

    Notes
    -----
    With :math:`C = W^{1/2} K W^{1/2} + s I`, the error of row i is :math:`(C^{-1} y)_i /
    (C^{-1})_{ii}`. Cost: 2 n³ / 3 operations, a tenth of the time of an eigendecomposition, and
    8 n² bytes. If C is singular to rounding, loss and spread are infinite.
    """
    root = xp.sqrt(xp.to_float64(weights))[:, None]
    y, total = root * xp.to_float64(Y), float(weights.sum()) * Y.shape[1]
    C = la.by_columns(root * xp.to_float64(K) * root.T)
    xp.add_(xp.diagonal(C), shift)
    try:
        la.cholesky_(C)
    except la.NotPositiveDefinite:
        return LeftOut(math.inf, math.inf, xp.zeros_like(y))
    coef = la.solve_cholesky(C, y)
    # By logarithms, because the product of n pivots would overflow.
    log_determinant = 2 * float(xp.log(xp.diagonal(C)).mean())
    spread = float((y * coef).sum()) / xp.size(y) * math.exp(log_determinant)
    residual = coef / la.inverse_diagonal_(C)[:, None]
    loss = float(xp.square(residual).sum()) / total
    loss += eps**2 * float(xp.square(root * coef).sum()) / Y.shape[1]
    predicted = xp.to_float64(Y) - residual / root
    loss, spread = (v if math.isfinite(v) else math.inf for v in (loss, spread))
    return LeftOut(loss, spread, predicted)


def leave_one_out_work(n: int) -> Work:
    """Return the work of `leave_one_out` with n rows, and of the entries."""
    square = float(n) ** 2
    return Work(
        double_evaluations=square, operations=2 * n * square / 3, moved_bytes=80 * square,
        peak_bytes=32 * square,
    )  # fmt: skip
