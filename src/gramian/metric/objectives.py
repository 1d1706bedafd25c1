r"""Objectives of a Nystrom fit as functions of its hyperparameters, with gradients.

With :math:`LL^\top = K_{mm}`, :math:`A = L^{-1} K_{mn} W^{1/2}` and :math:`BB^\top = AA^\top +
N\lambda I`, the estimator, its effective dimension and its data fit follow from matrices of m
columns. Both objectives are from [1]_, which proposes the second one. This form, in which the trace
that the landmarks miss multiplies the data fit, agrees with the code of its authors.

The objectives depend on the factors only through the kernel matrices. Their gradients with respect
to the entries therefore need no derivative of a factor, only solutions with it.

References
----------
.. [1] Meanti, Carratino, De Vito, Rosasco, *Efficient hyperparameter tuning for large scale kernel
   ridge regression*, AISTATS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .. import _linalg as la
from .._arrays import Float
from ..kernels import Kernel
from ._entries import entries, gradients

RELATIVE_JITTER = 1e-8
"""Added to the diagonal of K_mm, so that it has a Cholesky factor even if two landmarks meet."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with targets and weights, all in float64."""

    X: Float[np.ndarray, "n d"]
    Y: Float[np.ndarray, "n t"]
    weights: Float[np.ndarray, " n"]

    def __getitem__(self, index: np.ndarray | slice) -> Rows:
        """Return the rows at an index."""
        return Rows(self.X[index], self.Y[index], self.weights[index])

    @property
    def total(self) -> float:
        """Sum N of the weights."""
        return float(self.weights.sum())

    @property
    def root(self) -> Float[np.ndarray, "n 1"]:
        """Square roots of the weights."""
        root: np.ndarray = np.sqrt(self.weights)[:, None]
        return root


@dataclass(frozen=True, eq=False)
class Parameters:
    """Hyperparameters of a Nystrom fit, or gradients with respect to them.

    - `log_scales`: logarithms of the factors of the features, which are inverse lengthscales.
    - `log_penalty`: logarithm of the penalty.
    - `Z`: landmarks, in the units of the rows.
    """

    log_scales: Float[np.ndarray, " d"]
    log_penalty: Float[np.ndarray, ""]
    Z: Float[np.ndarray, "m d"]

    def all(self) -> list[np.ndarray]:
        """Return the parameters in order."""
        return [self.log_scales, self.log_penalty, self.Z]


@dataclass(frozen=True, eq=False)
class NystromFit:
    """Nystrom estimator of some rows, with the factors of its objectives.

    - `kernel`: a kernel, whose lengthscale is not used: see `entries`.
    - `whitened`: (B B')⁻¹ A W^(1/2) Y.
    """

    kernel: Kernel
    at: Parameters
    rows: Rows
    L: Float[np.ndarray, "m m"]
    A: Float[np.ndarray, "m n"]
    B: Float[np.ndarray, "m m"]
    whitened: Float[np.ndarray, "m t"]

    @classmethod
    def of(cls, kernel: Kernel, at: Parameters, rows: Rows) -> NystromFit:
        """Fit, or raise `NotPositiveDefinite`. Cost: n m kernel evaluations, n m² operations."""
        # Logarithms keep scales and penalty positive at any step.
        scales = np.exp(at.log_scales)
        Z = at.Z * scales
        L = _cholesky(entries(kernel, Z, Z), RELATIVE_JITTER)
        # Roots of the weights on both factors keep A A' symmetric.
        K_nm = entries(kernel, rows.X * scales, Z)
        K_nm *= rows.root
        A = _solve(L, K_nm.T)
        B = _cholesky(A @ A.T, rows.total * np.exp(at.log_penalty))
        c = _solve(B, A @ (rows.Y * rows.root))
        return cls(kernel, at, rows, L, A, B, _solve(B, c, trans=1))

    @property
    def shift(self) -> float:
        """N times the penalty."""
        return self.rows.total * float(np.exp(self.at.log_penalty))

    def coef(self) -> Float[np.ndarray, "m t"]:
        """Return the coefficients of the landmarks."""
        return _solve(self.L, self.whitened, trans=1)

    def predict(self, X: Float[np.ndarray, "v d"]) -> Float[np.ndarray, "v t"]:
        """Return predictions at rows X."""
        values: np.ndarray = self._entries(X) @ self.coef()
        return values

    def held_out(self, rows: Rows) -> float:
        """Return the mean squared error on held-out rows."""
        errors = np.square(self.predict(rows.X) - rows.Y).mean(axis=1)
        return float(errors @ rows.weights / rows.total)

    def log_held_out(self, rows: Rows) -> tuple[float, Parameters]:
        """Return the logarithm of `held_out`, and its gradients.

        With H = K_mn W K_nm + N penalty K_mm, the coefficients are a = H⁻¹ K_mn W Y. If r is the
        gradient with respect to the predictions, and b = H⁻¹ K_mv r, the gradients with respect to
        K_vm, K_nm and K_mm are r a', W (Y - K_nm a) b' - W K_nm b a' and -N penalty b a'.
        """
        own, K_vm, coef = self.rows, self._entries(rows.X), self.coef()
        errors = K_vm @ coef - rows.Y
        # The gradient of a logarithm is relative: errors of batches of unlike noise then count
        # alike in the running means of the optimiser.
        squares = rows.weights @ np.square(errors)
        outer = 2 * rows.weights[:, None] * errors / squares.sum()
        # H = L B B' L', so that a product with its inverse is four triangular solves. H itself
        # would square the condition number of K_nm; half of the solves serve the gradient of the
        # penalty as well.
        half = _solve(self.B, _solve(self.B, _solve(self.L, K_vm.T @ outer)), trans=1)
        b = _solve(self.L, half, trans=1)
        of_nm = own.root * (self._residuals() @ b.T - (self.A.T @ half) @ coef.T)
        of_mm = -self.shift * b @ coef.T
        of_penalty = -self.shift * np.sum(half * self.whitened)
        X, of_rows = np.concatenate([own.X, rows.X]), np.concatenate([of_nm, outer @ coef.T])
        value = np.log(squares.mean() / rows.total)
        return float(value), self._gradients(X, of_rows, of_mm, of_penalty)

    def complexity(self) -> tuple[float, Parameters]:
        """Return the complexity-penalised objective, per row and target, and its gradients.

        The objective is the sum of three terms: the data fit |W^(1/2) (f(X) - Y)|² + N penalty |f|²
        at its minimum; the effective dimension; and the trace of W K over N penalty missed by the
        landmarks, times the mean data fit.

        With M = B B' and u = `whitened`, the gradient with respect to A is S A - s u r' for a
        number s, the residuals r, and a matrix S of M⁻² and the identity; those with respect to
        K_mn W^(1/2) and K_mm are L'⁻¹ times it, and -1/2 L'⁻¹ (S A A' - s N penalty u u') L⁻¹.
        """
        n, shift, eye = self.rows.total, self.shift, np.eye(len(self.B))
        coef, residuals = self.coef(), self._residuals()
        # 1. The data fit with its penalty is Y' W (Y - f) at its minimum: the norm of f is not
        # needed.
        fit = np.sum(self.rows.root * self.rows.Y * residuals) / residuals.shape[1]
        # 2. With M = A A' + shift I, the effective dimension tr(A A' M⁻¹) is m - shift tr(M⁻¹).
        inverse = _solve(self.B, _solve(self.B, eye), trans=1)
        dimension = len(eye) - shift * inverse.trace()
        # 3. The trace of W K is N for a kernel of diagonal 1. Rounding may exceed it by a
        # little.
        missed = max(n - np.square(self.A).sum(), 0.0) / (n * shift)
        # 4. Gradients. The missed trace multiplies the data fit, whose gradient it enlarges; where
        # it was cut off at zero it has no gradient of its own.
        s = 2 * (1 + missed) / (n * residuals.shape[1])
        of_missed = fit / (n * n * shift) if missed > 0 else 0.0
        S = 2 * (shift / n * inverse @ inverse - of_missed * eye)
        solved = _solve(self.L, S, trans=1)
        of_nm = self.rows.root * (self.A.T @ solved.T - s * residuals @ coef.T)
        of_mm = s / 2 * shift * coef @ coef.T
        # K_mm enters A through L alone: its differential is a triangular half, hence the factor of
        # 1/2; the result is symmetric after `_gradients` adds its transpose.
        of_mm -= solved @ _solve(self.L, self.A @ self.A.T, trans=1).T / 2
        of_dimension = shift / n * np.sum(inverse * (shift * inverse - eye))
        of_penalty = (
            s / 2 * shift * np.square(self.whitened).sum() + of_dimension - missed * fit / n
        )
        value = (fit + dimension + missed * fit) / n
        return float(value), self._gradients(self.rows.X, of_nm, of_mm, of_penalty)

    def _entries(self, X: np.ndarray) -> np.ndarray:
        scales = np.exp(self.at.log_scales)
        return entries(self.kernel, X * scales, self.at.Z * scales)

    def _residuals(self) -> np.ndarray:
        """Return W^(1/2) (Y - f(X))."""
        residuals: np.ndarray = self.rows.root * self.rows.Y - self.A.T @ self.whitened
        return residuals

    def _gradients(
        self, X: np.ndarray, of_rows: np.ndarray, of_mm: np.ndarray, of_penalty: float
    ) -> Parameters:
        """Return gradients for the parameters, from gradients with respect to kernel entries."""
        scales = np.exp(self.at.log_scales)
        X, Z = X * scales, self.at.Z * scales
        of_X = gradients(self.kernel, X, Z, of_rows)
        of_Z = gradients(self.kernel, Z, X, of_rows.T)
        # Each landmark is in a row and in a column of K_mm.
        of_Z += gradients(self.kernel, Z, Z, of_mm + of_mm.T)
        # Scales multiply rows and landmarks: d / d log s is the sum of coordinates times gradients.
        of_scales = np.sum(X * of_X, axis=0) + np.sum(Z * of_Z, axis=0)
        return Parameters(of_scales, np.asarray(of_penalty), of_Z * scales)


def _cholesky(M: Float[np.ndarray, "m m"], shift: float) -> Float[np.ndarray, "m m"]:
    """Return the lower factor of M + shift I; M is overwritten."""
    M.flat[:: len(M) + 1] += shift
    # LAPACK returns a status; SciPy's function would raise an exception of its own.
    factor, info = scipy.linalg.lapack.dpotrf(M.T, lower=1, overwrite_a=1)
    if info:
        raise la.NotPositiveDefinite(f"the matrix of {len(M)} landmarks is not positive definite")
    lower: np.ndarray = factor
    return lower


def _solve(L: np.ndarray, B: np.ndarray, trans: int = 0) -> np.ndarray:
    solution: np.ndarray = scipy.linalg.solve_triangular(
        L, B, lower=True, trans=trans, check_finite=False
    )
    return solution
