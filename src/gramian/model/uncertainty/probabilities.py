"""Maps from decision values of a model to probabilities of classes, and their fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.checks import as_positive
from ..._registries.registry import Registry

LEAST_SHARE = 1e-3
"""Share of a class to which smaller shares are raised, unless held-out rows need another one."""

TRIED_SHARES = (1e-4, 3e-4, LEAST_SHARE, 3e-3, 1e-2, 3e-2, 0.1)
"""Least shares that are tried on held-out rows."""

OUTER_SLOPE = 1e-7
"""Slope of a share beyond the clipped range, which keeps the order of rows invisibly."""

POWER_RANGE = (0.25, 8.0)
"""Least and largest fitted power."""


class Probabilities(ABC):
    """A map from decision values to probabilities of classes; immutable, stored as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    @abstractmethod
    def log(self, values: Float[Array, "n t"]) -> Float[Array, "n k"]:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        values : Array of shape (n, t)
            Decision values: one for two classes, positive for the second class; else one per class.
        """

    def __call__(self, values: Float[Array, "n t"]) -> Float[Array, "n k"]:
        """Return the probabilities, in float64: each row sums to one."""
        return xp.exp(self.log(values))

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the map and its parameters."""
        return {"kind": maps.name_of(self), **asdict(self)}


maps: Registry[Probabilities] = Registry("map to probabilities")


def probabilities_from(given: Mapping[str, Any]) -> Probabilities:
    """Rebuild a map from `Probabilities.to_dict`; raise ValueError or TypeError if invalid."""
    parameters = dict(given)
    return maps.make(parameters.pop("kind"), **parameters)


@maps.register("shares")
@dataclass(frozen=True)
class Shares(Probabilities):
    r"""Map from decision values for class codes to shares of classes, raised to a power.

    :math:`p_j \propto \mathrm{clip}(s_j, \epsilon, 1)^a` with the shares s of `shares_of`.

    Parameters
    ----------
    power : float, default=1.0
        The exponent a, fitted to held-out rows: above 1 if values are too small, as with a large
        penalty, and below 1 if they are too large.
    least_share : float, default=0.001
        The floor :math:`\epsilon` of a share: the larger, the less a wrong and certain prediction
        costs.
    """

    power: float = 1.0
    least_share: float = LEAST_SHARE

    def __post_init__(self) -> None:
        as_positive(self.power, "power")
        as_positive(self.least_share, "least_share")

    def log(self, values: Float[Array, "n t"]) -> Float[Array, "n k"]:
        shares = shares_of(values)
        # 1. Clipped shares: a square loss also gives shares below 0 and above 1.
        inside = shares.clip(self.least_share, 1.0)
        # 2. A tiny slope beyond the ends, so that clipped rows keep their order. Its excess is
        # bounded, because the logarithm below needs a positive number.
        kept_shares = inside + OUTER_SLOPE * (shares - inside).clip(-1.0, 1.0)
        return xp.log_softmax(self.power * xp.log(kept_shares), axis=1)

    @classmethod
    def fit(
        cls,
        values: Float[Array, "v t"],
        codes: Float[Array, "v t"],
        weights: Float[Array, " v"] | None = None,
    ) -> Shares:
        r"""Fit the map with the smallest log loss on held-out rows.

        Parameters
        ----------
        values : Array of shape (v, t)
            Decision values.
        codes : Array of shape (v, t)
            Codes of the true classes; means of codes for merged rows.
        weights : Array of shape (v,), optional

        Notes
        -----
        For a given floor the loss is convex in a. To its sum over the rows :math:`a - 1 - \log a`
        is added, which is 0 at 1 and about the loss of one row: otherwise a few correct rows would
        need an infinite power. The row of the least weight counts as one: weights may have any
        scale, or count repeated rows. A floor other than `LEAST_SHARE` is used if it lowers the
        mean loss by more than the standard error of the difference. The log loss of the rows is
        therefore no larger than with the default map.
        """
        # Values of a fit that diverged determine no power.
        if not bool(xp.isfinite(values).all()):
            return cls()
        truth = shares_of(codes)
        w = xp.ones(len(truth), like=truth) if weights is None else xp.to_float64(weights)
        w = w / w[w > 0].min()
        maps_tried = [cls._of_least_share(floor, values, truth, w) for floor in TRIED_SHARES]
        losses = xp.stack([-(truth * tried.log(values)).sum(axis=1) for tried in maps_tried])
        usual = TRIED_SHARES.index(LEAST_SHARE)
        best = int((losses @ w).argmin())
        gains, count = losses[usual] - losses[best], w.sum()
        gain = w @ gains / count
        standard_error = xp.sqrt(w @ xp.square(gains - gain)) / count
        return maps_tried[best if bool(gain > standard_error) else usual]

    @classmethod
    def _of_least_share(cls, floor: float, values: Array, truth: Array, weights: Array) -> Shares:
        """Return the map with a given smallest share and the best power."""
        from scipy.optimize import brentq  # a tenth of a second, for those who need it

        logs = cls(least_share=floor).log(values)

        def slope(power: float) -> float:
            p = xp.softmax(power * logs, axis=1)
            return float(weights @ ((p - truth) * logs).sum(axis=1)) + 1 - 1 / power

        # The loss is convex: a slope of one sign at both ends has its minimum at an end, where
        # `brentq` would raise an error.
        smallest, largest = POWER_RANGE
        if slope(smallest) >= 0:
            return cls(smallest, floor)
        if slope(largest) <= 0:
            return cls(largest, floor)
        return cls(float(brentq(slope, smallest, largest, xtol=1e-12)), floor)


@maps.register("log_odds")
@dataclass(frozen=True)
class LogOdds(Probabilities):
    """Map for the log loss, which estimates the log odds of the second class, or of each class."""

    def log(self, values: Float[Array, "n t"]) -> Float[Array, "n k"]:
        f = xp.to_float64(values)
        if f.shape[1] == 1:
            # `logsigmoid` keeps its digits where the probability of a class rounds to 0 or 1.
            return xp.logsigmoid(xp.concat([-f, f], axis=1))
        return xp.log_softmax(f, axis=1)


def shares_of(values: Float[Array, "n t"]) -> Float[Array, "n k"]:
    """Return the shares of classes from decision values for their codes, in float64.

    (1 - f) / 2 and (1 + f) / 2 for the codes -1 and 1, else f (k - 1) / k + 1 / k for the balanced
    codes of k classes: 1 at the code of a class, and 0 at the codes of others.
    """
    f = xp.to_float64(values)
    if f.shape[1] == 1:
        return xp.concat([1 - f, 1 + f], axis=1) / 2
    k = f.shape[1]
    return f * (k - 1) / k + 1 / k


def likeliest(values: Float[Array, "n t"]) -> Int[Array, " n"]:
    """Return the index of the class with the largest value; for one value, 1 if it is positive."""
    return xp.cast(values[:, 0] > 0, xp.int64) if values.shape[1] == 1 else values.argmax(axis=1)
