"""Quantile: the pinball loss, for one level or several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import join_words
from .base import IDENTITY, SORTED, Link, Loss, clip_targets, losses, spread, weighted_quantile


@losses.register("quantile")
@dataclass(frozen=True)
class Quantile(Loss):
    r"""The pinball loss: :math:`\tau` times errors below the target, :math:`1 - \tau` above.

    The minimiser has a share :math:`\tau` of the targets below it. Each of several levels has an
    output, and predictions are sorted, so that they do not cross.

    Use it for values that a share of all cases does not exceed, and for the median. It is the
    slowest of the losses.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Between 0 and 1. Several need a single target.
    smoothing : float, default=0
        Width h, in units of the target, over which the kink is rounded: :math:`\tau r + h \log(1 +
        e^{-r/h})` for an error r, which is at most h log 2 above the pinball loss. 0 is the exact
        loss: the solver decreases the width to 1e-5 robust deviations of the target, so that the
        mean loss ends within 7e-6 deviations of its minimum.

    References
    ----------
    .. [1] Koenker & Bassett, *Regression quantiles*, 1978.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.losses import Quantile
    >>> X, y = load_diabetes(return_X_y=True)
    >>> loss = Quantile((0.1, 0.5, 0.9))
    >>> est = KernelRidge("matern32", lengthscale=5.0, loss=loss, penalty=0.01).fit(
    ...     X[:300], y[:300]
    ... )
    >>> low, median, high = est.predict(X[300:]).T
    >>> print(f"{((low <= y[300:]) & (y[300:] <= high)).mean():.1f} are between")
    0.8 are between
    """

    levels: int | float | Sequence[float] = 0.5
    smoothing: int | float = 0.0

    def __post_init__(self) -> None:
        levels = [self.levels] if isinstance(self.levels, int | float) else list(self.levels)
        if not levels or not all(0 < level < 1 for level in levels):
            raise ValueError(f"levels must be between 0 and 1, not {self.levels!r}")
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing must be at least 0, not {self.smoothing!r}")
        # The dataclass is frozen. One form of the levels makes equal losses compare equal.
        object.__setattr__(self, "levels", tuple(float(level) for level in levels))

    def outputs(self, t: int) -> int:
        if t > 1 and len(self._taus) > 1:
            raise ValueError(
                f"several levels ({join_words([str(tau) for tau in self._taus])}) need a single "
                f"target, not {t}"
            )
        return t * len(self._taus)

    def names(self, targets: Sequence[str]) -> tuple[str, ...]:
        if len(self._taus) == 1:
            return tuple(targets)
        return tuple(f"{name}_q{tau:g}" for name in targets for tau in self._taus)

    @property
    def link(self) -> Link:
        # Levels are fitted one by one, and their functions may cross between the rows.
        return SORTED if len(self._taus) > 1 else IDENTITY

    def unit(self, y: Array, weights: Array) -> float:
        return spread(y, weights)

    def for_unit(self, unit: float) -> Quantile:
        return replace(self, smoothing=self.smoothing / unit)

    def surrogate(self, y: Array, weights: Array) -> Array:
        return clip_targets(y, weights, 5.0)

    def constant(self, y: Array, weights: Array) -> Array:
        columns = [weighted_quantile(c, weights, tau) for c in y.T for tau in self._taus]
        return xp.stack(columns)

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        off, tau = y - f, self._levels(f)
        if self.smoothing == 0:
            return xp.where(off >= 0, tau * off, (tau - 1) * off)
        # The smooth form exceeds the pinball loss by at most smoothing log 2, at the kink;
        # `softplus` does not overflow far from it.
        return tau * off + self.smoothing * xp.softplus(-off / self.smoothing)

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        above = f - y
        if self.smoothing == 0:
            return xp.to_float64(above > 0) - self._levels(f)
        return xp.sigmoid(above / self.smoothing) - self._levels(f)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        if self.smoothing == 0:
            # The exact loss is linear on both sides: Newton's method needs its smooth form.
            return xp.zeros_like(f)
        at = (f - y) / self.smoothing
        # 1 - sigmoid(at) would round to zero far above the target, see `Logistic.curvatures`.
        return xp.sigmoid(at) * xp.sigmoid(-at) / self.smoothing

    def smooth_kink(self, share: float) -> Quantile:
        # A width of the user's is the least one: smaller ones would solve another problem.
        return replace(self, smoothing=max(self.smoothing, share))

    @property
    def kink(self) -> float | None:
        return float(self.smoothing)

    @property
    def _taus(self) -> tuple[float, ...]:
        return (self.levels,) if isinstance(self.levels, int | float) else tuple(self.levels)

    def _levels(self, f: Array) -> Array:
        taus = xp.array(self._taus, dtype=f.dtype, like=f)
        # A single level serves all targets.
        return taus if f.shape[1] == len(taus) else xp.repeat(taus, f.shape[1])
