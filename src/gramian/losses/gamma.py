"""Gamma: positive targets whose deviation is proportional to their mean."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import SETTING_FORM, ParameterError, Text
from .base import EXP, Link, Loss, losses, weighted_mean


@losses.register("gamma")
@dataclass(frozen=True)
class Gamma(Loss):
    r"""Half the deviance of the Gamma law: :math:`f + y e^{-f}`, up to a function of y.

    Targets are positive; predictions are means, :math:`e^f`.

    Use it for positive amounts over several orders of magnitude, with errors in percent. A fit
    costs two to five times as much as with squared errors.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.losses import Gamma
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> est = KernelRidge(loss="gamma", landmarks=200, penalty=1e-3, random_state=0)
    >>> off = est.fit(train, "target").predict(test) / test["target"]
    >>> print(f"half are within {100 * (off - 1).abs().median():.0f} %")
    half are within 17 %
    """

    @property
    def link(self) -> Link:
        return EXP

    def check(self, y: Array) -> None:
        if not bool((y > 0).all()):
            problem = Text("needs positive targets, but {y} has {:g}", float(y.min()))
            remedy = "leave such rows out, or use another loss"
            raise ParameterError("loss", "gamma", problem, remedy, SETTING_FORM)

    def surrogate(self, y: Array, weights: Array) -> Array:
        # The deviation is proportional to the mean, so logarithms have about the same variance
        # everywhere.
        return xp.log(y)

    def constant(self, y: Array, weights: Array) -> Array:
        # The slopes 1 - y e^-f add up to zero where e^f is the mean.
        return xp.log(weighted_mean(y, weights))

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return f + y * xp.exp(-f)

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return 1 - y * xp.exp(-f)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return y * xp.exp(-f)
