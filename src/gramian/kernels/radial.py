"""Kernels of the Euclidean distance: each is one profile, a function of the squared distance."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._sparse import (
    append_columns,
    is_sparse,
    product,
    scale_columns,
    slice_rows,
    squared_norms,
)
from ._cancellation import (
    NEAR_RATIO,
    SLOPE_RATIO,
    product_error,
    recompute_near,
    remaining_error,
)
from ._gradients import sums_of_rows, with_ones
from ._lengthscale import LengthscaleKernel
from .base import Prepared, Side, kernels

SAME = 1e-10
"""Distance of a pair, over the norm of its centered rows, up to which a kink counts as reached."""


def deepest(dtype: torch.dtype) -> float:
    """Return the largest u for which exp(-u) is a normal number of `dtype`."""
    return 87.0 if dtype == torch.float32 else 708.0


def _root(s: Tensor) -> Tensor:
    """Return u = sqrt(s) in place of `s`, between 0 and where exp(-u) underflows."""
    return s.clamp_(0.0, deepest(s.dtype) ** 2).sqrt_()


@dataclass(frozen=True)
class Radial(LengthscaleKernel):
    r"""A function of :math:`r = \|x - z\|_2 / \ell`.

    A subclass says everything with two members: `scale`, and `profile`, the kernel as a function
    of :math:`s = \mathrm{scale} \cdot r^2`. The factor costs nothing inside the matrix product
    that yields s.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0
        The :math:`\ell`, in the units of the features.
    """

    sharp: ClassVar[bool] = False
    """Whether k has a kink at r = 0, which turns a rounding error e of r² into sqrt(e)."""

    @property
    def slope(self) -> float:
        """The largest ``|dk/ds|``, by which an error of s is multiplied; of no use if `sharp`."""
        return 1.0

    @property
    def stationary(self) -> bool:
        return True

    @property
    def sparse_ok(self) -> bool:
        return True

    @property
    @abstractmethod
    def scale(self) -> float:
        """The factor between s and the squared scaled distance."""

    @abstractmethod
    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        """Return k as a function of s. May overwrite `s`; rounding may have moved it past 0."""

    def derivative(self, s: Tensor) -> Tensor:
        """Return dk/ds as a function of s; 0 at s = 0 if k has a kink there. May overwrite `s`.

        A subclass that has it is differentiable.
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def differentiable(self) -> bool:
        return type(self).derivative is not Radial.derivative

    @property
    def kinked(self) -> bool:
        return self.sharp

    def prepare(self, points: Tensor, side: Side) -> Prepared:
        """Return rows whose inner products are s: [-2 scale x, ``|x|²`` scale, 1] and so on for z.

        The norms stand last, so that they are added last: the sum then loses fewest digits.
        """
        x = self.scaled(points)
        norms = self.scale * squared_norms(x)
        one = torch.ones_like(norms)
        if side == "left":
            factor = torch.tensor(-2 * self.scale, dtype=x.dtype, device=x.device)
            return (append_columns(scale_columns(x, factor), norms, one),)
        return (append_columns(x, one, norms),)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Tensor, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Tensor, "b m"]:
        s = self._argument(left, right, out, NEAR_RATIO)
        return self.profile(s, underflow=underflow)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Tensor, "m t"],
        weights: Float[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        """Return gradients, see `Kernel.gradients`: of s they are 2 scale (x - z) / lengthscale.

        What is subtracted is x times a sum and a sum of z: digits of ``|x| / |x - z|`` are lost,
        where `rounding` bounds ``|x|`` in lengthscales. Next to a kink pairs much nearer than that
        count; those nearer than ``SAME |x|`` count as equal, and the others keep 5 digits in
        float64.
        """
        x, z = left[0][:, :-2], right[0][:, :-2]  # x times -2 scale
        if not self.differentiable:
            return super().gradients(left, right, v, weights)
        s = self._argument(left, right, v.new_empty(len(x), len(z)), SLOPE_RATIO)
        same = s <= left[0][:, -2:-1] * SAME**2 if self.sharp else None
        S = self.derivative(s)
        if same is not None:
            S.masked_fill_(same, 0.0)
        if weights is not None:
            S *= weights
        sums = sums_of_rows(S, v, with_ones(z))
        sums, totals = sums[..., :-1], sums[..., -1:]
        return (x[:, None] * totals).add_(sums, alpha=2 * self.scale).mul_(-self._inverse(x))

    def _argument(self, left: Prepared, right: Prepared, out: Tensor, near: float) -> Tensor:
        """Fill `out` with s; if there is a kink, with digits where it is small."""
        s = matmul(left[0], right[0], out)
        if self.sharp and left[0].layout == torch.strided:
            recompute_near(s, left[0], right[0], self.scale, near)
        return s

    def diag(self, x: Tensor) -> Float[Tensor, " b"]:
        return torch.ones(x.shape[0], dtype=x.dtype, device=x.device)

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        # Only points near each other have large entries, so both are then as far out as the
        # nearer of the two extremes.
        norm = min(_largest_norm(left[0], -2), _largest_norm(right[0], -1))
        error = product_error(eps, norm, left[0].shape[1] - 2)
        if not self.sharp:
            return max(error * self.slope, eps)
        return remaining_error(error) if left[0].layout == torch.strided else math.sqrt(error)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: torch.dtype) -> bool:
        reach = math.sqrt(_largest_norm(left[0], -2)) + math.sqrt(_largest_norm(right[0], -1))
        return reach**2 > deepest(dtype)


def _largest_norm(prepared: Tensor, column: int) -> float:
    """Return the largest |scale| · ‖x‖² of the prepared rows, or a bound if they are sparse."""
    if prepared.shape[0] == 0:
        return 0.0
    values = prepared[:, column] if prepared.layout == torch.strided else prepared.values()
    return float(values.abs().max())


def matmul(left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """Write ``left @ right.T`` into `out`, rounding at the end if `out` has fewer digits.

    Where `right` is sparse, it is given by columns: ``left @ right``.
    """
    if is_sparse(right):
        return product(left, right, out)
    if left.layout == torch.strided and left.dtype == out.dtype:
        return torch.mm(left, right.t(), out=out)
    rows = max(left.shape[0] // 4, 32)  # the product in float64 is twice as large as `out`
    for i in range(0, left.shape[0], rows):
        out[i : i + rows] = slice_rows(left, i, i + rows) @ right.t()
    return out


@kernels.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Radial):
    r"""Gaussian kernel :math:`\exp(-r^2 / 2)`; scikit-learn's gamma is :math:`1 / (2 \ell^2)`.

    Take it where the target is smooth in the features, as a simulation is. Noise and kinks want a
    rougher one. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Gaussian
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(Gaussian("2 median"), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.991
    """

    @property
    def scale(self) -> float:
        return -0.5

    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        return (s.clamp_(-deepest(s.dtype), 0.0) if underflow else s).exp_()

    def derivative(self, s: Tensor) -> Tensor:
        return self.profile(s)


@kernels.register("laplacian")
@dataclass(frozen=True)
class Laplacian(Radial):
    r"""Laplacian kernel :math:`\exp(-r)` of the Euclidean distance; the same as Matern 1/2.

    Take it where the target is rough: prices on a map, functions with kinks and steps. An entry
    costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Gaussian, Laplacian
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> where = ["latitude", "longitude"]
    >>> for k in (Laplacian("median"), Gaussian("0.1 median")):
    ...     est = KernelRidge(k, random_state=0).fit(train[where], train["target"])
    ...     print(f"R2 {est.score(test[where], test['target']):.2f}")
    R2 0.66
    R2 0.48
    """

    sharp: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        return 1.0

    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        return _root(s).neg_().exp_()

    def derivative(self, s: Tensor) -> Tensor:
        u = _root(s)
        inverse = u.reciprocal().masked_fill_(u == 0, 0.0)
        return u.neg_().exp_().mul_(inverse).mul_(-0.5)


@kernels.register("matern12")
@dataclass(frozen=True)
class Matern12(Laplacian):
    r"""Matern-1/2 kernel :math:`\exp(-r)`.

    It is `Laplacian` by the name that Gaussian processes have for it.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Laplacian, Matern12
    >>> X, y = load_diabetes(return_X_y=True)
    >>> one, two = (KernelRidge(k(2.0), penalty=0.01).fit(X, y) for k in (Matern12, Laplacian))
    >>> bool((one.predict(X) == two.predict(X)).all())
    True
    """


@kernels.register("matern32")
@dataclass(frozen=True)
class Matern32(Radial):
    r"""Matern-3/2 kernel :math:`(1 + \sqrt3 r) \exp(-\sqrt3 r)`.

    Take it where little is known of the target: functions with one derivative, between rough and
    smooth. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Matern32
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge(Matern32("2 median"), random_state=0).fit(X[:300], y[:300])
    >>> print(f"penalty {est.penalty_:.0e}, R2 {est.score(X[300:], y[300:]):.2f}")
    penalty 3e-03, R2 0.53
    """

    @property
    def scale(self) -> float:
        return 3.0

    @property
    def slope(self) -> float:
        return 1 / 2

    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        u = _root(s)
        decay = u.neg().exp_()
        return u.add_(1.0).mul_(decay)

    def derivative(self, s: Tensor) -> Tensor:
        decay = _root(s).neg_().exp_()
        return decay.mul_(-1 / 2)


@kernels.register("matern52")
@dataclass(frozen=True)
class Matern52(Radial):
    r"""Matern-5/2 kernel :math:`(1 + \sqrt5 r + \tfrac53 r^2) \exp(-\sqrt5 r)`.

    Take it for functions with two derivatives: nearly as smooth as `Gaussian`, and K is better
    conditioned. An entry costs d multiplications, within a matrix product.

    The lengthscale is the one parameter: see `Radial`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import Matern52
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(Matern52("2 median"), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.998
    """

    @property
    def scale(self) -> float:
        return 5.0

    @property
    def slope(self) -> float:
        return 1 / 6

    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        u = _root(s)
        decay = u.neg().exp_()
        return u.addcmul_(u, u, value=1 / 3).add_(1.0).mul_(decay)

    def derivative(self, s: Tensor) -> Tensor:
        u = _root(s)
        decay = u.neg().exp_()
        return u.add_(1.0).mul_(decay).mul_(-1 / 6)


@kernels.register("rational_quadratic")
@dataclass(frozen=True)
class RationalQuadratic(Radial):
    r"""Rational quadratic kernel :math:`(1 + r^2 / (2 a))^{-a}`, a mixture of Gaussians.

    Take it where the target has long and short waves at once: a small `alpha` mixes more
    lengthscales. An entry costs d multiplications, within a matrix product.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0
    alpha : float, default=1.0
        The :math:`a`; the Gaussian kernel is the limit of large values.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import RationalQuadratic
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(RationalQuadratic(2.0, alpha=0.5), penalty=1e-7).fit(train, "target")
    >>> print(f"R2 {est.score(test):.3f}")
    R2 0.994
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha must be positive and finite, not {self.alpha!r}")

    @property
    def scale(self) -> float:
        return 0.5 / self.alpha

    @property
    def slope(self) -> float:
        return self.alpha

    def profile(self, s: Tensor, *, underflow: bool = True) -> Tensor:
        s.clamp_(min=0.0)
        if self.alpha == 1.0:
            return s.add_(1.0).reciprocal_()
        return s.log1p_().mul_(-self.alpha).exp_()

    def derivative(self, s: Tensor) -> Tensor:
        s.clamp_(min=0.0)
        return s.log1p_().mul_(-self.alpha - 1).exp_().mul_(-self.alpha)
