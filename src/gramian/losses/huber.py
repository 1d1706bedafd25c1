"""Huber: squares near the target, straight lines beyond."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import as_positive
from .base import Loss, clip_targets, losses, spread, weighted_median

FIXED_POINT_ROUNDS = 200
"""Steps of the fixed point that finds the best constant."""


@losses.register("huber")
@dataclass(frozen=True)
class Huber(Loss):
    r"""Half the square of errors up to :math:`\delta`, linear beyond: outliers have bounded slopes.

    Use it for the typical value if some targets are far off, or wrong. A fit costs two to five
    times as much as with squared errors.

    Parameters
    ----------
    delta : float or None, default=None
        Threshold in the units of the target. None: 1.35 robust deviations of the target (1.4826
        median absolute deviations). scikit-learn's `HuberRegressor` uses the deviation of its
        errors instead: if the model explains much of the target, give a smaller threshold.

    References
    ----------
    .. [1] Huber, *Robust estimation of a location parameter*, 1964.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.losses import Huber
    >>> X, y = load_diabetes(return_X_y=True)
    >>> wrong = y.copy()
    >>> wrong[:300:20] = 1_000  # one in twenty
    >>> for loss in (Huber(50.0), "squared"):
    ...     est = KernelRidge(loss=loss, penalty=0.01, random_state=0).fit(X[:300], wrong[:300])
    ...     print(f"R2 {est.score(X[300:], y[300:]):.2f}")
    R2 0.52
    R2 0.01
    """

    delta: int | float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None:
            as_positive(self.delta, "delta")

    def unit(self, y: Array, weights: Array) -> float:
        return spread(y, weights)

    def for_unit(self, unit: float) -> Huber:
        # Targets are now in robust deviations, the unit of the default.
        return replace(self, delta=1.35 if self.delta is None else self.delta / unit)

    def surrogate(self, y: Array, weights: Array) -> Array:
        return clip_targets(y, weights, 3.0)

    def constant(self, y: Array, weights: Array) -> Array:
        # The median is near the minimum even with outliers, unlike the mean.
        at = weighted_median(y, weights)
        for _ in range(FIXED_POINT_ROUNDS):
            # Curvatures are at most 1, so a step of the pull over the total weight never
            # overshoots.
            pull = (weights[:, None] * self.slopes(xp.expand(at, y.shape), y)).sum(axis=0)
            at = at - pull / weights.sum()
        return at

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        off, delta = xp.abs(f - y), self._delta
        return xp.where(off <= delta, xp.square(off) / 2, delta * off - delta**2 / 2)

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return (f - y).clip(-self._delta, self._delta)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        # The second derivative has a jump at delta; either value serves at the jump, where `slopes`
        # is continuous.
        return xp.to_float64(xp.abs(f - y) <= self._delta)

    @property
    def _delta(self) -> float:
        return 1.35 if self.delta is None else float(self.delta)
