"""Base of kernels of the Euclidean distance, with recomputed distances of near-duplicates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import append_columns, scale_columns, squared_norms
from .._lengthscale import LengthscaleKernel
from .._products import matmul, sums_of_rows, with_ones
from ..base import Prepared, Side

NEAR_RATIO = 4000.0
"""Pairs with s below ``NEAR_RATIO`` times its error are recomputed: the rest has 3 digits at least,
which the square root of a kernel with a kink turns into an error near 5e-6."""

SLOPE_RATIO = 1e7
"""The same for slopes in float64, which at a kink have half the relative error of s."""

FEW_PAIRS = 0.02
"""Fraction of near pairs up to which single pairs beat one more matrix product."""

PAIRS_AT_ONCE = 1 << 14
"""Pairs recomputed at once: all pairs may be near, and each takes d numbers."""


def product_error(eps: float, norm: float, d: int) -> float:
    """Return the error of s between two points of squared norm `norm`, a sum of d + 2 products.

    Measured in float32 on normal and heavy-tailed points in 2 to 2,000 dimensions, the largest of
    10⁷ errors is 0.3 to 0.9 of this bound. Errors grow as a random walk until the sums are split in
    parts.
    """
    return eps * norm * max(2.0, math.sqrt(d))


def remaining_error(error: float) -> float:
    """Return the error of sqrt(s) for entries s with this `error` that are not recomputed.

    The error is half of the worst case, a pair at the limit with the largest error. Measured as for
    `product_error`, the largest error is 0.01 to 0.38 of the worst case.
    """
    return 0.5 * math.sqrt(error / (4 * NEAR_RATIO))


def recompute_near(
    s: Array, left: Array, right: Array, scale: float, ratio: float = NEAR_RATIO
) -> Array:
    """Replace small entries of `s`, whose digits cancelled, by direct differences.

    - `s`, (b, m): ``scale * |x - z|²``, the product of the two next arguments; overwritten.
    - `left`, `right`, (b, d + 2) and (m, d + 2): rows as `Radial.prepare` makes them.
    - `ratio`: entries below this multiple of their error are replaced.

    Returns
    -------
    Array of shape (b, m)
        The argument `s`.
    """
    eps, d = xp.finfo(left.dtype).eps, left.shape[1] - 2
    # The error grows with the norm of the row. Near pairs have equal norms, so one side is enough.
    reach = xp.cast(left[:, -2], s.dtype) * (ratio * product_error(eps, 1.0, d))
    rows = xp.flatnonzero(xp.min(s, axis=1) < reach)  # few: one pass over s, no mask of its size
    if len(rows) == 0:
        return s
    near = s[rows] < reach[rows, None]
    # Many near pairs are cheaper as one product in float64 than as gathered rows.
    if xp.dtype_of(left) != xp.float64 and int(near.sum()) > FEW_PAIRS * xp.size(s):
        return xp.assign_(s, _in_float64(left, right, scale))
    i, j = xp.nonzero(near)
    for i_part, j_part in zip(
        xp.split(rows[i], PAIRS_AT_ONCE), xp.split(j, PAIRS_AT_ONCE), strict=True
    ):
        # The left side holds -2 scale x, see `Radial.prepare`.
        difference = left[i_part, :-2] / (-2 * scale) - right[j_part, :-2]
        s[i_part, j_part] = xp.cast(scale * (difference * difference).sum(axis=1), s.dtype)
    return s


def _in_float64(left: Array, right: Array, scale: float) -> Array:
    """Return ``scale * |x - z|²`` with norms in float64 in place of the rows' float32 norms."""
    x, z = xp.to_float64(left[:, :-2]) / (-2 * scale), xp.to_float64(right[:, :-2])
    # The norms stored in the rows were rounded to float32, which would undo the precision.
    x_norms, z_norms = ((side * side).sum(axis=1) for side in (x, z))
    return xp.multiply_(
        xp.add_(xp.add_(xp.multiply_(xp.matmul(x, z.T), -2), x_norms[:, None]), z_norms), scale
    )


SAME_POINT_RATIO = 1e-10
"""Distance of a pair, over the norm of its centered rows, up to which a kink counts as reached."""


def deepest(dtype: xp.DType) -> float:
    """Return the largest u for which exp(-u) is a normal number of `dtype`."""
    return 87.0 if xp.finfo(dtype).bits == 32 else 708.0


@dataclass(frozen=True)
class Radial(LengthscaleKernel):
    r"""A function of :math:`r = \|x - z\|_2 / \ell`.

    A subclass defines two members: `scale`, and `profile`, the kernel as a function of :math:`s =
    \mathrm{scale} \cdot r^2`. The factor costs nothing inside the matrix product that yields s.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0
        The :math:`\ell`, in the units of the features.
    """

    stationary: ClassVar[bool] = True
    sparse_ok: ClassVar[bool] = True
    sharp: ClassVar[bool] = False
    """Whether k has a kink at r = 0, which turns a rounding error e of r² into sqrt(e)."""

    @property
    def slope(self) -> float:
        """The largest ``|dk/ds|``, by which an error of s is multiplied; unused if `sharp`."""
        return 1.0

    @property
    @abstractmethod
    def scale(self) -> float:
        """Factor by which the squared scaled distance is multiplied to give s."""

    @abstractmethod
    def profile(self, s: Array, *, underflow: bool = True) -> Array:
        """Return k as a function of s. May overwrite `s`; rounding may have moved it past 0."""

    def derivative(self, s: Array) -> Array:
        """Return dk/ds as a function of s; 0 at s = 0 if k has a kink there. May overwrite `s`.

        A subclass that implements it is differentiable.
        """
        raise NotImplementedError(type(self).__name__)

    def second_derivative(self, s: Array) -> Array:
        """Return d²k/ds² as a function of s. May overwrite `s`.

        A subclass that implements it is twice differentiable in each row, and once in both.
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def twice_differentiable(self) -> bool:
        """Whether `second_derivative` is implemented."""
        return type(self).second_derivative is not Radial.second_derivative

    @property
    def differentiable(self) -> bool:
        return type(self).derivative is not Radial.derivative

    @property
    def kinked(self) -> bool:
        return self.sharp

    def prepare(self, points: Array, side: Side) -> Prepared:
        """Return rows whose inner products are s: [-2 scale x, ``|x|²`` scale, 1] on the left.

        The norms come last, so that they are added last, which loses fewest digits.
        """
        x = self.scaled(points)
        norms = self.scale * squared_norms(x)
        ones = xp.ones_like(norms)
        if side == "left":
            # The factor is applied to one side, where it costs a pass over rows instead of one over
            # entries.
            factor = xp.array(-2 * self.scale, dtype=x.dtype, like=x)
            return (append_columns(scale_columns(x, factor), norms, ones),)
        return (append_columns(x, ones, norms),)

    def tile(
        self, left: Prepared, right: Prepared, out: Float[Array, "b m"], *, underflow: bool = True
    ) -> Float[Array, "b m"]:
        s = self._argument(left, right, out, NEAR_RATIO)
        return self.profile(s, underflow=underflow)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients, see `Kernel.gradients`; 2 scale (x - z) / lengthscale for s itself.

        The difference of x times a sum and a sum of z loses digits of ``|x| / |x - z|``, where
        `rounding` bounds ``|x|`` in lengthscales. Near a kink, much nearer pairs matter: pairs
        nearer than ``SAME |x|`` count as equal, and the others keep 5 digits in float64.
        """
        x, z = left[0][:, :-2], right[0][:, :-2]  # x times -2 scale
        if not self.differentiable:
            return super().gradients(left, right, v, weights)
        s = self._argument(left, right, xp.empty((len(x), len(z)), like=v), SLOPE_RATIO)
        # The comparison precedes the derivative, which may overwrite s.
        same = s <= left[0][:, -2:-1] * SAME_POINT_RATIO**2 if self.sharp else None
        S = self.derivative(s)
        if same is not None:
            # Rounding gives a point a tiny distance to itself, where the slope at a kink is
            # arbitrary.
            xp.fill_where_(S, same, 0.0)
        if weights is not None:
            S *= weights
        # The column of ones yields the sum of the weights with the same product.
        sums = sums_of_rows(S, v, with_ones(z))
        sums, totals = sums[..., :-1], sums[..., -1:]
        return xp.multiply_(
            xp.add_(x[:, None] * totals, sums, alpha=2 * self.scale), -self._inverse(x)
        )

    def _argument(self, left: Prepared, right: Prepared, out: Array, near: float) -> Array:
        """Fill `out` with s; for a kernel with a kink, recompute small values precisely."""
        s = matmul(left[0], right[0], out)
        if self.sharp and not xp.is_sparse(left[0]):
            recompute_near(s, left[0], right[0], self.scale, near)
        return s

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        # Only points near each other have large entries, so both are then as far out as the
        # nearer of the two extremes.
        norm = min(_largest_norm(left[0], -2), _largest_norm(right[0], -1))
        error = product_error(eps, norm, left[0].shape[1] - 2)
        if not self.sharp:
            return max(error * self.slope, eps)
        return remaining_error(error) if not xp.is_sparse(left[0]) else math.sqrt(error)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        # The triangle inequality bounds every distance without a pass over pairs.
        reach = math.sqrt(_largest_norm(left[0], -2)) + math.sqrt(_largest_norm(right[0], -1))
        return reach**2 > deepest(dtype)


def _largest_norm(prepared: Array, column: int) -> float:
    """Return the largest |scale| · ‖x‖² of the prepared rows, or a bound if they are sparse."""
    if prepared.shape[0] == 0:
        return 0.0
    # A column of sparse rows is costly to select, and its largest value is a bound by all values.
    values = prepared[:, column] if not xp.is_sparse(prepared) else xp.entries(prepared)
    return float(xp.abs(values).max())
