"""Base class of losses: cost of a prediction for a target, with slope, curvature and link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from .. import _arrays as xp
from .._arrays import Array, Float
from .._registries.registry import Registry

Map = Callable[[Float[Array, "n q"]], Float[Array, "n q"]]


@dataclass(frozen=True)
class Link:
    """A map of the values f of a model to predictions.

    Attributes
    ----------
    name : str
        Name in a model file; see `link_of`.
    map : callable
    along : callable
        Map from values f and their gradients, (n, q, d), to gradients of the predictions.
    """

    name: str
    map: Map
    along: Callable[[Float[Array, "n q"], Float[Array, "n q d"]], Float[Array, "n q d"]]

    def __reduce__(self) -> tuple[Callable[[str], Link], tuple[str]]:
        """Pickle only the name."""
        # Lambdas do not pickle, so a pickle has the name alone.
        return link_of, (self.name,)


def _sort_quantiles(f: Array) -> Array:
    return xp.sort(f, axis=1)


def _along_sorted(f: Array, slopes: Array) -> Array:
    # Sorting permutes the gradients as it permutes the values.
    return xp.take_along(
        slopes, xp.expand(f.argsort(axis=1, stable=True)[:, :, None], slopes.shape), axis=1
    )


def _along_exp(f: Array, slopes: Array) -> Array:
    return xp.exp(f)[:, :, None] * slopes


IDENTITY = Link("identity", lambda f: f, lambda f, slopes: slopes)
EXP = Link("exp", xp.exp, _along_exp)
SORTED = Link("sorted", _sort_quantiles, _along_sorted)
"""Values in increasing order: quantiles that do not cross.

Sorting never makes the mean pinball loss larger (Chernozhukov, Fernandez-Val, Galichon 2010,
*Quantile and probability curves without crossing*, proposition 4).
"""

LINK_OF_NAME = {link.name: link for link in (IDENTITY, EXP, SORTED)}


def link_of(name: str) -> Link:
    """Return the link of that name; raise ValueError if it is unknown."""
    if name not in LINK_OF_NAME:
        raise ValueError(f"a link must be one of {', '.join(sorted(LINK_OF_NAME))}, not {name!r}")
    return LINK_OF_NAME[name]


LossType = TypeVar("LossType", bound="Loss")


class Loss(ABC):
    r"""A convex function of a prediction f and a target y; immutable.

    Fits minimise :math:`\frac1N \sum_i w_i \ell(f(x_i), y_i) + \frac\lambda2 \|f\|^2`, N the sum of
    the weights. Half the squared error is such a loss, for which the penalty has the same meaning
    as in kernel ridge regression.

    All methods take float64 tensors: `f` of shape (n, q), `y` of shape (n, t), divided by `unit`. A
    loss of your own is a frozen dataclass with `values`, `slopes`, `curvatures` and `constant`.

    Attributes
    ----------
    of_classes : bool
        Whether targets are codes of classes, see `class_codes`.
    coupled : bool
        Whether the second derivative of a row is a full matrix, see `curvature_product`.
    invariant : bool
        Whether adding a number to all outputs of a row leaves the loss unchanged: fitted outputs
        then have the sum zero.
    """

    of_classes: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    invariant: ClassVar[bool] = False

    def outputs(self, t: int) -> int:
        """Return the number of outputs for t columns of targets."""
        return t

    def names(self, targets: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the outputs for targets with these names."""
        return tuple(targets)

    @property
    def link(self) -> Link:
        """Map from values f to predictions."""
        return IDENTITY

    def check(self, y: Float[Array, "n t"]) -> None:
        """Raise ValueError if this loss is not defined for some target."""
        return

    def unit(self, y: Float[Array, "n t"], weights: Float[Array, " n"]) -> float:
        """Return the number by which targets are divided first; 1 by default.

        Parameters
        ----------
        y : Array of shape (n, t)
        weights : Array of shape (n,)
            A whole number k has the effect of k equal rows, as in `constant` and `surrogate`.
        """
        return 1.0

    def for_unit(self: LossType, unit: float) -> LossType:
        """Return this loss for targets that have been divided by `unit`."""
        return self

    def surrogate(self, y: Float[Array, "n t"], weights: Float[Array, " n"]) -> Float[Array, "n t"]:
        """Return the targets whose squared error chooses kernel and lengthscale."""
        return y

    @abstractmethod
    def constant(self, y: Float[Array, "n t"], weights: Float[Array, " n"]) -> Float[Array, " q"]:
        """Return the constant prediction with the smallest loss, to which the model is added."""

    @abstractmethod
    def values(self, f: Float[Array, "n q"], y: Float[Array, "n t"]) -> Float[Array, "n c"]:
        """Return the losses: (n, q), one for each output; (n, 1), one for each row, if coupled."""

    @abstractmethod
    def slopes(self, f: Float[Array, "n q"], y: Float[Array, "n t"]) -> Float[Array, "n q"]:
        """Return the first derivatives of the loss with respect to f."""

    @abstractmethod
    def curvatures(self, f: Float[Array, "n q"], y: Float[Array, "n t"]) -> Float[Array, "n q"]:
        """Return the second derivatives, at least 0.

        If outputs are coupled, they are the diagonal entries of a matrix for each row.
        """

    def curvature_product(
        self, f: Float[Array, "n q"], y: Float[Array, "n t"], z: Float[Array, "n q"]
    ) -> Float[Array, "n q"]:
        """Return, for each row, the product of the second derivative with z.

        For coupled outputs the second derivative is a matrix.
        """
        return self.curvatures(f, y) * z

    def smooth_kink(self: LossType, share: float) -> LossType:
        """Return a smoother loss near this one, or this loss if it is smooth.

        Parameters
        ----------
        share : float
            Width over which a kink is rounded, as a fraction of the unit.
        """
        return self

    @property
    def kink(self) -> float | None:
        """Width over which a kink is rounded; 0 for an exact kink, None for a smooth loss."""
        return None


losses: Registry[Loss] = Registry("loss")


def weighted_mean(y: Float[Array, "n t"], weights: Float[Array, " n"]) -> Float[Array, " t"]:
    """Return the weighted mean of each column."""
    return (weights[:, None] * y).sum(axis=0) / weights.sum()


def weighted_quantile(
    y: Float[Array, " n"], weights: Float[Array, " n"], level: float
) -> Float[Array, ""]:
    """Return the least value with a share `level` of the weight at or below it."""
    order = y.argsort(stable=True)
    # Cumulative weights instead of repeated rows: whole weights give the same quantile.
    below = weights[order].cumsum(axis=0)
    place = int(xp.find_insertions(below, level * float(below[-1])))
    return y[order[min(place, len(y) - 1)]]


def weighted_median(y: Float[Array, "n t"], weights: Float[Array, " n"]) -> Float[Array, " t"]:
    """Return the lower weighted median of each column."""
    return xp.stack([weighted_quantile(column, weights, 0.5) for column in y.T])


def spread(y: Float[Array, "n t"], weights: Float[Array, " n"]) -> float:
    """Return a robust standard deviation: 1.4826 times the median absolute deviation.

    If half of the targets are equal, return the standard deviation; if all are equal, 1.
    """
    off = xp.abs(y - weighted_median(y, weights))
    # 1.4826 times the median absolute deviation of normal numbers is their standard deviation.
    robust = 1.4826 * float(weighted_median(off, weights).mean())
    if robust > 0:
        return robust
    # The median deviation is zero if half of the targets are equal, as in counts with many zeros.
    off = y - weighted_mean(y, weights)
    # Equal targets have no deviation; a unit of 1 leaves them as they are.
    return float(xp.sqrt(weighted_mean(xp.square(off), weights).mean())) or 1.0


def clip_targets(
    y: Float[Array, "n t"], weights: Float[Array, " n"], deviations: float
) -> Float[Array, "n t"]:
    """Return the targets clipped to within some robust deviations of their median."""
    center, width = weighted_median(y, weights), deviations * spread(y, weights)
    return y.clip(center - width, center + width)
