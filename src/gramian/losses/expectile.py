"""Expectile: squares that weigh errors on both sides differently."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from .base import Loss, losses, spread, weighted_mean

FIXED_POINT_ROUNDS = 100
"""Steps of the fixed point that finds the best constant."""


@losses.register("expectile")
@dataclass(frozen=True)
class Expectile(Loss):
    r"""Half the square, times :math:`\tau` below the target and :math:`1 - \tau` above it.

    Use it like a quantile that also depends on the distances of the values beyond it. A fit costs
    two to five times as much as with squared errors.

    Parameters
    ----------
    level : float, default=0.5
        Between 0 and 1; 0.5 gives a quarter of the squared error.

    References
    ----------
    .. [1] Newey & Powell, *Asymmetric least squares estimation and testing*, 1987.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.losses import Expectile
    >>> X, y = load_diabetes(return_X_y=True)
    >>> low, high = (
    ...     KernelRidge(loss=Expectile(level), penalty=0.01, random_state=0).fit(X, y).predict(X)
    ...     for level in (0.1, 0.9)
    ... )
    >>> print(f"{(low < y).mean():.1f} are above low, {(y < high).mean():.1f} are below high")
    0.7 are above low, 0.8 are below high
    """

    level: int | float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level must be between 0 and 1, not {self.level!r}")

    def unit(self, y: Array, weights: Array) -> float:
        return spread(y, weights)

    def constant(self, y: Array, weights: Array) -> Array:
        at = weighted_mean(y, weights)
        for _ in range(FIXED_POINT_ROUNDS):
            # The mean with the weights of both sides at the last value. Where it no longer moves,
            # the slopes add up to zero.
            w = weights[:, None] * self.curvatures(xp.expand(at, y.shape), y)
            at = (w * y).sum(axis=0) / w.sum(axis=0)
        return at

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return self.curvatures(f, y) * xp.square(f - y) / 2

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return self.curvatures(f, y) * (f - y)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return xp.to_float64(xp.where(f < y, self.level, 1 - self.level))
