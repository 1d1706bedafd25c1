"""The cosine of the angle between two rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import cast, scale_rows, squared_norms
from .._lengthscale import LengthscaleKernel
from .._products import matmul, sums_of_rows
from ..base import Prepared, Side, kernels


@kernels.register("cosine")
@dataclass(frozen=True)
class Cosine(LengthscaleKernel):
    r"""Cosine kernel :math:`x^\top z / (\|x\| \|z\|)`; 0 if a row is zero, even with itself.

    Rows may be sparse.

    Use it if only the direction of a row matters, not its length: bags of words, spectra. Products
    are computed by the features, without entries of K.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or str, default=1.0
        One number cancels, and ``"median"`` means 1; one per feature weighs the features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import KernelRidgeClassifier
    >>> from gramian.kernels import Cosine
    >>> X, y = load_digits(return_X_y=True)
    >>> est = KernelRidgeClassifier(Cosine(), penalty=1e-3, standardize=False)
    >>> print(f"{est.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.2f} are right")
    0.91 are right
    >>> bool((est.predict(7 * X[1000:]) == est.predict(X[1000:])).all())  # brighter digits
    True
    """

    sparse_ok: ClassVar[bool] = True
    bilinear: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    parts: ClassVar[int] = 2
    differentiable: ClassVar[bool] = True

    def prepare(self, points: Array, side: Side) -> Prepared:
        """Return rows of norm 1, and one over the original norms; 0 for rows of zeros."""
        x = self.scaled(points)
        norms = xp.sqrt(squared_norms(cast(x, xp.float64)))  # squares may overflow in float32
        # A row of zeros stays a row of zeros: without the mask it would become NaN.
        inverse = xp.where(norms == 0, 0.0, xp.reciprocal(norms))
        # The division is in float64 too, so that each row is rounded once.
        unit = scale_rows(cast(x, xp.float64), inverse)
        return cast(unit, x.dtype), xp.cast(inverse[:, None], x.dtype)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        return matmul(left[0], right[0], out)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients, see `Kernel.gradients`: unit rows minus their part along x; 0 at 0."""
        (x, inverse), (z, _) = left, right
        S = xp.ones((len(x), len(z)), like=v) if weights is None else weights
        sums = sums_of_rows(S, v, z)
        along = (sums * x[:, None]).sum(axis=2, keepdims=True)
        return xp.multiply_(
            xp.multiply_(xp.subtract_(sums, along * x[:, None]), inverse[:, None]), self._inverse(x)
        )

    def diag(self, x: Array) -> Float[Array, " b"]:
        return xp.cast(squared_norms(cast(self.scaled(x), xp.float64)) > 0, x.dtype)
