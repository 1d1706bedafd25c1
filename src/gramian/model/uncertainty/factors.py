"""Variance of new observations, from factors of the matrix of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, Int
from ...operators import KernelOperator
from .error_scale import ERROR_PREFIX, ErrorScale


@dataclass(frozen=True, eq=False)
class RowFactors:
    r"""The inverse factor of a fit with all rows as centers.

    .. math:: v(x) = k(x, x) - k(x)^\top (K + N \lambda W^{-1})^{-1} k(x)

    - `ridge`: the ridge N λ / w of each row, which is added to the diagonal of K.
    - `inverse`: :math:`R^{-1}`, upper triangular, of the Cholesky factor R of that matrix. Files
      and copies do not hold these n² numbers: they are recomputed when needed.
    """

    ridge: Float[Array, " _"]
    inverse: Float[Array, "n n"] | None = None

    def __post_init__(self) -> None:
        if self.ridge.ndim != 1 or not bool((xp.isfinite(self.ridge) & (self.ridge >= 0)).all()):
            raise ValueError("the ridge of a variance must be finite and at least 0")

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for copies and pickles, without the cached factor."""
        return {"ridge": self.ridge, "inverse": None}

    @property
    def bytes(self) -> int:
        """Memory of the inverse factor."""
        return 0 if self.inverse is None else 8 * xp.size(self.inverse)

    def fits(self, m: int) -> bool:
        """Return whether the ridge has one entry, or one for each of m rows."""
        return len(self.ridge) in (1, m)

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        return {"ridge": self.ridge}

    def inverse_factor(self, K: KernelOperator) -> Float[Array, "n n"]:
        """Return the inverse factor of K + ridge, computed once.

        Cost: n² kernel evaluations, 2/3 n³ operations and 8 n² bytes.

        Raise ValueError if the matrix is singular to rounding.
        """
        if self.inverse is None:
            object.__setattr__(self, "inverse", _inverse_factor(K, self.ridge))
        assert self.inverse is not None
        return self.inverse

    def unexplained_variance(self, K: Float[Array, "b n"], diagonal: Float[Array, " b"]) -> Array:
        """Return v of rows from K, their kernel with the centers, and k(x, x); overwrites K.

        The result is at least the rounding of k(x, x). Cost: b n² operations.
        """
        assert self.inverse is not None  # `inverse_factor` was called
        la.times_triangle_(K, self.inverse)
        return above_rounding(diagonal - xp.square(K).sum(axis=1), diagonal)


def _inverse_factor(K: KernelOperator, ridge: Float[Array, " _"]) -> Float[Array, "n n"]:
    # On the host and by columns: LAPACK then factorises in place, without a second n² copy.
    A = la.by_columns(xp.to_host(K.double().dense()))
    la.prepare_(A)
    xp.add_(xp.diagonal(A), xp.to_host(xp.to_float64(ridge)))
    try:
        la.cholesky_(A)
    except la.NotPositiveDefinite as error:
        raise ValueError(
            f"K + {float(ridge.min()):.1e} I is singular to rounding ({error}); raise the penalty"
        ) from error
    la.invert_triangle_(A)
    # LAPACK leaves the kernel entries below the diagonal: clear them.
    return xp.triu_(A)


@dataclass(frozen=True, eq=False)
class LandmarkFactors:
    r"""The two triangular factors of a fit with landmarks, in float64.

    .. math::

        v(x) = k(x, x) - k_m(x)^\top K_{mm}^{-1} k_m(x)
        + N \lambda \, k_m(x)^\top (K_{mn} W K_{nm} + N \lambda K_{mm})^{-1} k_m(x)

    With :math:`K_{mm} = T^\top T` and features :math:`F = K_{nm} T^{-1}` it is :math:`k(x, x) -
    \|f\|^2 + N \lambda \|R^{-\top} f\|^2`, where :math:`R^\top R = F^\top W F + N \lambda I`.
    Landmarks that are combinations of others to rounding are left out of both factors.

    - `index`: indices of the independent landmarks, in the order of the pivots.
    - `T`, `R`: the upper triangular factors.
    - `shift`: N times the penalty.
    """

    index: Int[Array, " q"]
    T: Float[Array, "q q"]
    R: Float[Array, "q q"]
    shift: float

    def __post_init__(self) -> None:
        q = len(self.index)
        if not (q > 0 and all(x.shape == (q, q) for x in (self.T, self.R))):
            raise ValueError("the factors of a variance must be square and as large as its index")
        if not all(bool(xp.isfinite(x).all() and xp.diagonal(x).all()) for x in (self.T, self.R)):
            raise ValueError(
                "the factors of a variance must be finite, without a zero on the diagonal"
            )
        if not (self.index.dtype == xp.int64 and bool((self.index >= 0).all())):
            raise ValueError("the index of a variance must hold int64 numbers of landmarks")
        if not (math.isfinite(self.shift) and self.shift > 0):
            raise ValueError(f"the shift of a variance must be positive, not {self.shift!r}")

    @property
    def bytes(self) -> int:
        """Memory of T and R."""
        return 16 * xp.size(self.T)

    def fits(self, m: int) -> bool:
        """Return whether all indices of the factor are below the number m of landmarks."""
        return int(self.index.max()) < m

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        return {"index": self.index, "T": self.T, "R": self.R}

    def features(self, K: Float[Array, "b m"]) -> Float[Array, "b q"]:
        """Return f of rows, from their kernel with the landmarks."""
        return features(self.T, self.index, K)

    def spread(self, f: Float[Array, "b q"]) -> Float[Array, " b"]:
        """Return the squares of R⁻ᵀ f: the leverages of rows of weight one."""
        g: Array = xp.solve_triangular(self.R, f, upper=True, left=False)
        return xp.square(g).sum(axis=1)

    def unexplained_variance(self, K: Float[Array, "b m"], diagonal: Float[Array, " b"]) -> Array:
        """Return v of rows from K, their kernel with the centers, and k(x, x): 2 b m² operations.

        The result is at least the rounding of k(x, x).
        """
        f = self.features(K)
        # At a landmark the difference is zero, and negative by rounding.
        unexplained_share = (diagonal - xp.square(f).sum(axis=1)).clip(min=0.0)
        return above_rounding(unexplained_share + self.shift * self.spread(f), diagonal)


Factors = RowFactors | LandmarkFactors


def features(
    T: Float[Array, "q q"], index: Int[Array, " q"], K: Float[Array, "b m"]
) -> Float[Array, "b q"]:
    """Return the features K T⁻¹ of rows, from the columns of K for the landmarks in T."""
    return xp.solve_triangular(T, K[:, index], upper=True, left=False)


def diagonal_of(K: KernelOperator) -> Float[Array, " n"]:
    """Return k(x, x) of the rows of an operator."""
    return xp.to_float64(KernelOperator(K.kernel, K.rows, K.rows).diag())


def above_rounding(v: Float[Array, " n"], diagonal: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return the residual variance v, but at least the rounding error of k(x, x)."""
    return xp.maximum(v, la.FLOAT64_EPS * diagonal)


TENSOR_NAMES = ("scale", "noise", "beyond")
"""Tensors with a number for each target."""


@dataclass(frozen=True, eq=False)
class Variance:
    r"""The variance of new observations: :math:`a\, v(x) + b + c \max(0, v(x) - v_0)`.

    Attributes
    ----------
    scale, noise : Array of shape (t,)
        The a and b of each target, in its units squared; at least 0.
    beyond : Array of shape (t,)
        The slope c, which applies out of range, where a and b are not calibrated; at least 0.
    limit : float
        The limit v_0: a row is out of range if v(x) is at least this number.
    factors : RowFactors or LandmarkFactors
        Factors of the fit, which give v.
    errors : ErrorScale or None
        Another variance in range, learned from the size of errors.
    """

    scale: Float[Array, " t"]
    noise: Float[Array, " t"]
    beyond: Float[Array, " t"]
    limit: float
    factors: Factors
    errors: ErrorScale | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit of a variance must be at least 0, not {self.limit!r}")
        for name in TENSOR_NAMES:
            numbers = getattr(self, name)
            if not bool((xp.isfinite(numbers) & (numbers >= 0)).all()):
                raise ValueError(f"{name} of a variance must be finite and at least 0")

    def check(self, m: int, t: int) -> None:
        """Raise ValueError unless the shapes match a model of m centers and t targets."""
        if any(getattr(self, name).shape != (t,) for name in TENSOR_NAMES):
            raise ValueError(f"the variance must have {t} numbers of each kind, one per target")
        if not self.factors.fits(m):
            raise ValueError(f"the factors of the variance do not fit {m} centers")
        if self.errors is not None:
            self.errors.check(m, t)

    def to_dict(self) -> dict[str, Any]:
        """Return the limit and the shift, for JSON."""
        shift = self.factors.shift if isinstance(self.factors, LandmarkFactors) else None
        return {"limit": self.limit, "shift": shift}

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        own = {name: getattr(self, name) for name in TENSOR_NAMES}
        errors = {} if self.errors is None else self.errors.tensors()
        return own | self.factors.tensors() | errors

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Variance:
        """Rebuild from the results of `to_dict` and `tensors`."""
        if set(header) != {"limit", "shift"}:
            raise ValueError(
                f"the header of a variance must have limit and shift, not {sorted(header)}"
            )
        other_tensors = {
            name: tensor
            for name, tensor in tensors.items()
            if name not in TENSOR_NAMES and not name.startswith(ERROR_PREFIX)
        }
        if any(t.dtype != xp.float64 for name, t in tensors.items() if name != "index"):
            raise ValueError("the numbers of a variance must be float64")
        # Only a fit with landmarks has a shift, which tells the kind of factors.
        shift = header["shift"]
        factors = (
            RowFactors(**other_tensors)
            if shift is None
            else LandmarkFactors(**other_tensors, shift=shift)
        )
        scale, noise, beyond = (tensors[name] for name in TENSOR_NAMES)
        errors = ErrorScale.from_tensors(tensors)
        return cls(scale, noise, beyond, float(header["limit"]), factors, errors)
