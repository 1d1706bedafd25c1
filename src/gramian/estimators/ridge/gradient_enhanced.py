"""Ridge regression on values and gradients: gradient-enhanced kriging, energies and forces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..._messages.checks import as_bytes, as_positive
from ..._messages.errors import ParameterError
from ..._parallel.machine import machine_memory
from ..._parameters.types import KernelLike, Lengthscale, MemoryLimit, Number
from ...fitting.settings import resolve
from ...kernels.radial.base import Radial
from ..base import restore_on_error
from ..types import RowsLike, TargetsLike

AUTO_MEDIANS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Lengthscales that ``"auto"`` compares, in median distances of the rows."""

AUTO_EQUATIONS = 1500
"""Equations, about, by which ``"auto"`` compares lengthscales."""

MEDIAN_ROWS = 1000
"""Rows of which the median distance is taken."""

BLOCK_BYTES = 64 << 20
"""Memory for a block of the matrix, or of predictions."""


@dataclass(frozen=True)
class _Points:
    """Rows z in lengthscales, and their derivatives J with respect to p coordinates each."""

    z: np.ndarray
    J: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of rows, features and coordinates."""
        n, d, p = self.J.shape
        return n, d, p


@dataclass(eq=False, repr=False)
class GradientEnhancedRidge(RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression on values and gradients, such as energies and forces.

    The function is the one of `KernelRidge` that also minimises the squared errors of its gradients
    at the rows. In d dimensions, the gradient of a row says as much as d values.

    Parameters
    ----------
    kernel : {"matern52", "gaussian"} or an object of these, default="matern52"
        A kernel with two derivatives. Features are not standardised.
    lengthscale : float, sequence of d floats, "median", a multiple as "4 median", or "auto"
        As in `KernelRidge`. ``"auto"``, the default: the likeliest of 0.5 to 32 median distances,
        by about 1,500 equations; an object keeps its own.
    penalty : float, default=1e-12
        Ridge per row, scikit-learn's alpha / n, of the values; of the gradients times the mean
        variance of a gradient in the kernel's space. The default suits computed energies.
    memory_limit : int, str or None, default=None
        Bytes that `fit` may allocate. None: the memory of the machine.

    Attributes
    ----------
    kernel_ : Kernel
        Kernel with its lengthscale.
    intercept_ : float
        Mean of y.
    value_coef_ : ndarray of shape (n,)
        Coefficients of the values.
    gradient_coef_ : ndarray of shape (n, d)
        Coefficients of the derivatives of the kernel, in units of the lengthscales; zeros without
        gradients.
    n_features_in_ : int

    See Also
    --------
    KernelRidge.gradient : Gradients of a model of values alone.

    Notes
    -----
    With p coordinates, the system has N = n (1 + p) equations:

    .. math::

        \begin{pmatrix} k & \partial' k \\ \partial k & \partial\partial' k \end{pmatrix}

    plus the ridge. Cost of `fit`: :math:`N^3 / 3` operations and 8 N² bytes in float64; 27,000
    equations take 6 GB and some minutes. Prediction of a row: n d operations.

    References
    ----------
    .. [1] Rasmussen & Williams, *Gaussian processes for machine learning*, 2006, section 9.4.
    .. [2] Chmiela et al., *Machine learning of accurate energy-conserving molecular force fields*,
       Science Advances 3, 2017, which learns forces alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GradientEnhancedRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (60, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> slopes = np.column_stack([np.cos(X[:, 0]) * X[:, 1], np.sin(X[:, 0])])
    >>> model = GradientEnhancedRidge().fit(X[:30], y[:30], slopes[:30])
    >>> bool(abs(model.predict(X[30:]) - y[30:]).max() < 0.05)
    True
    """

    kernel: KernelLike = "matern52"
    _: KW_ONLY
    lengthscale: Lengthscale = "auto"
    penalty: Number = 1e-12
    memory_limit: MemoryLimit = None

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        gradients: RowsLike | None = None,
        jacobian: RowsLike | None = None,
    ) -> GradientEnhancedRidge:
        """Fit the function to values and gradients.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features, such as inverse distances of atoms.
        y : array-like of shape (n,)
            Values, such as energies.
        gradients : array-like of shape (n, p), optional
            Derivatives of y with respect to the features, or with a Jacobian to the coordinates.
            Forces are negative gradients. None: values alone.
        jacobian : array-like of shape (n, d, p), optional
            Derivatives of the features with respect to p coordinates, such as the places of atoms.
            None: the coordinates are the features.

        Returns
        -------
        GradientEnhancedRidge
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If a shape or a parameter is wrong, the matrix exceeds the memory, or the penalty is too
            small for float64.
        """
        with restore_on_error(self):
            features, values = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            penalty = as_positive(self.penalty, "penalty")
            G, J = _slopes(features, gradients, jacobian)
            self._require_memory(len(features), J.shape[2])
            self.intercept_ = float(values.mean())
            targets = np.concatenate([values - self.intercept_, G.ravel()])
            self.kernel_, points = self._resolve(features, J, values - self.intercept_, G, penalty)
            b = _solve(_matrix(self.kernel_, points, penalty), targets)
            n = len(features)
            self._centers, self.value_coef_ = points.z, b[:n]
            self.gradient_coef_ = np.matmul(points.J, b[n:].reshape(n, -1, 1))[:, :, 0]
        return self

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the values at new rows.

        Parameters
        ----------
        X : array-like of shape (q, d)

        Returns
        -------
        ndarray of shape (q,)
        """
        new = self._scale_rows(self._new_rows(X))
        c, centers, V = self.kernel_.scale, self._centers, self.gradient_coef_
        own = np.einsum("nd,nd->n", centers, V)
        values = np.empty(len(new))
        for block in _blocks(len(new), 32 * len(own)):
            z = new[block]
            f, slope = _profiles(self.kernel_, z, centers)[:2]
            values[block] = f @ self.value_coef_ - 2 * c * (slope * (z @ V.T - own)).sum(axis=1)
        return values + self.intercept_

    def gradient(self, X: RowsLike, jacobian: RowsLike | None = None) -> np.ndarray:
        """Return the gradients at new rows.

        Parameters
        ----------
        X : array-like of shape (q, d)
        jacobian : array-like of shape (q, d, p), optional
            As in `fit`, of the new rows.

        Returns
        -------
        ndarray of shape (q, p)
            Derivatives with respect to the coordinates of the Jacobian, or to the features.
        """
        features = self._new_rows(X)
        J = None if jacobian is None else _jacobian(features, jacobian)
        new, scales = self._scale_rows(features), _inverse_lengthscales(self.kernel_)
        c, centers, V = self.kernel_.scale, self._centers, self.gradient_coef_
        own = np.einsum("nd,nd->n", centers, V)
        slopes = np.empty((len(new), new.shape[1] if J is None else J.shape[2]))
        for block in _blocks(len(new), 48 * len(own)):
            z = new[block]
            _, slope, curvature = _profiles(self.kernel_, z, centers)
            # The gradient of each term is a multiple of z - z_j, and of the coefficients.
            along = 2 * c * slope * self.value_coef_ - 4 * c**2 * curvature * (z @ V.T - own)
            total = z * along.sum(axis=1)[:, None] - along @ centers - 2 * c * slope @ V
            total *= scales
            slopes[block] = total if J is None else np.matmul(total[:, None, :], J[block])[:, 0]
        return slopes

    def _new_rows(self, X: RowsLike) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def _scale_rows(self, features: np.ndarray) -> np.ndarray:
        """Return rows in lengthscales, centered as the rows of the fit."""
        return (features - self._offset) * _inverse_lengthscales(self.kernel_)

    def _require_memory(self, n: int, p: int) -> None:
        limit = machine_memory() if self.memory_limit is None else as_bytes(self.memory_limit)
        equations = n * (1 + p)
        needed = 8 * equations**2 + 4 * BLOCK_BYTES
        if needed > limit:
            raise ValueError(
                f"{n:,} rows with gradients of {p} numbers are {equations:,} equations, which need "
                f"{needed / 1e9:.1f} GB, but memory_limit is {limit / 1e9:.1f} GB; take "
                f"{math.isqrt(limit // 8) // (1 + p):,} rows, or values alone by KernelRidge"
            )

    def _resolve(
        self, X: np.ndarray, J: np.ndarray, y: np.ndarray, G: np.ndarray, penalty: float
    ) -> tuple[Radial, _Points]:
        """Return the kernel with its lengthscale, and the rows in it, centered."""
        # Rounding of distances grows with the distance from the origin.
        self._offset = X.mean(axis=0)
        centered = X - self._offset
        kernel = resolve.kernel(self.kernel, self.lengthscale)
        if not isinstance(kernel, Radial) or not kernel.twice_differentiable:
            form = "a kernel with two derivatives, 'matern52' or 'gaussian'"
            raise ParameterError("kernel", self.kernel, form)
        resolved: Any = kernel.resolve(centered[:MEDIAN_ROWS])

        def points(kernel: Radial, count: int | None = None) -> _Points:
            scales = _inverse_lengthscales(kernel)
            return _Points(centered[:count] * scales, J[:count] * np.reshape(scales, (-1, 1)))

        is_auto = isinstance(self.lengthscale, str) and self.lengthscale == "auto"
        if is_auto and isinstance(self.kernel, str):
            count = max(2, AUTO_EQUATIONS // (1 + J.shape[2]))
            median = resolved.lengthscale
            targets = np.concatenate([y[:count], G[:count].ravel()])
            kernels = [replace(resolved, lengthscale=ratio * median) for ratio in AUTO_MEDIANS]
            resolved = max(
                kernels, key=lambda k: _likelihood(k, points(k, count), targets, penalty)
            )
        return resolved, points(resolved)


def _slopes(
    X: np.ndarray, gradients: RowsLike | None, jacobian: RowsLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients, (n, p), and the Jacobian, (n, d, p); p = 0 without gradients."""
    n, d = X.shape
    if gradients is None:
        if jacobian is not None:
            raise ParameterError("jacobian", "an array", "None without gradients")
        return np.empty((n, 0)), np.empty((n, d, 0))
    J = _jacobian(X, jacobian)
    G = check_array(gradients, dtype=np.float64, input_name="gradients")
    if G.shape != (n, J.shape[2]):
        form = f"of shape {(n, J.shape[2])}, a row for each row of X"
        raise ParameterError("gradients", f"an array of shape {G.shape}", form)
    return G, J


def _jacobian(X: np.ndarray, jacobian: RowsLike | None) -> np.ndarray:
    n, d = X.shape
    if jacobian is None:
        return np.broadcast_to(np.eye(d), (n, d, d))
    J: np.ndarray = check_array(
        jacobian, dtype=np.float64, allow_nd=True, ensure_2d=False, input_name="jacobian"
    )
    if J.ndim != 3 or J.shape[:2] != (n, d):
        form = f"of shape ({n}, {d}, p): rows, features and coordinates"
        raise ParameterError("jacobian", f"an array of shape {J.shape}", form)
    return J


def _blocks(n: int, bytes_of_row: int) -> Iterator[slice]:
    """Divide n rows into blocks of `BLOCK_BYTES`."""
    step = max(1, BLOCK_BYTES // max(1, bytes_of_row))
    return (slice(k, min(k + step, n)) for k in range(0, n, step))


def _inverse_lengthscales(kernel: Radial) -> np.ndarray:
    return 1 / np.atleast_1d(np.asarray(kernel.lengthscale, dtype=np.float64))


def _profiles(kernel: Radial, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    """Return k and its first and second derivative by s, the scaled squared distance."""
    squares = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - 2 * x @ z.T
    s = kernel.scale * np.maximum(squares, 0.0)
    # Each function may overwrite its argument.
    return [f(s.copy()) for f in (kernel.profile, kernel.derivative, kernel.second_derivative)]


def _matrix(kernel: Radial, points: _Points, penalty: float) -> np.ndarray:
    """Return the matrix of values and gradients with its ridge, values first; see the class.

    With s = c |z - z'|², the derivatives of k(s) are 2 c k' δ by z, -2 c k' δ by z', and
    -4 c² k'' δ δ' - 2 c k' I by both.
    """
    n, _, p = points.shape
    c, z, J = kernel.scale, points.z, points.J
    A = np.empty((n * (1 + p), n * (1 + p)))
    f, slope, curvature = _profiles(kernel, z, z)
    A[:n, :n] = f
    flat = J.transpose(1, 0, 2).reshape(J.shape[1], n * p)
    for i in range(n if p else 0):
        delta = z[i] - z
        to_own = delta @ J[i]  # (n, p): δ_ij along the coordinates of row i
        to_other = np.matmul(delta[:, None, :], J)[:, 0]  # the same of row j
        A[i, n:] = (-2 * c * slope[i][:, None] * to_other).ravel()
        block = (J[i].T @ flat).reshape(p, n, p)
        block *= (-2 * c * slope[i])[:, None]
        weighted = (-4 * c**2 * curvature[i])[:, None] * to_other
        block += to_own.T[:, :, None] * weighted
        A[n + i * p : n + (i + 1) * p, n:] = block.reshape(p, n * p)
    A[n:, :n] = A[:n, n:].T
    ridge = np.full(len(A), penalty * n)
    if p:
        ridge[n:] *= A.diagonal()[n:].mean()
    A[np.diag_indices(len(A))] += ridge
    return A


def _factor(A: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor, in the memory of A."""
    try:
        # The transpose is stored by columns, as LAPACK requires: SciPy would copy A itself.
        return np.asarray(scipy.linalg.cholesky(A.T, lower=True, overwrite_a=True))
    except scipy.linalg.LinAlgError:
        raise ValueError(
            "the matrix of values and gradients is singular in float64: increase penalty, or "
            "decrease lengthscale"
        ) from None


def _solve(A: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.linalg.cho_solve((_factor(A), True), targets, overwrite_b=True))


def _likelihood(kernel: Radial, points: _Points, targets: np.ndarray, penalty: float) -> float:
    """Return the logarithm of the likelihood at the best amplitude, up to a constant."""
    try:
        R = _factor(_matrix(kernel, points, penalty))
    except ValueError:
        return -math.inf
    white = scipy.linalg.solve_triangular(R, targets, lower=True)
    energy = max(float(white @ white), np.finfo(np.float64).tiny)
    return -0.5 * len(targets) * math.log(energy) - float(np.log(R.diagonal()).sum())
