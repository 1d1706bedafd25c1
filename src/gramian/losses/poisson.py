"""Poisson: counts; the function is the logarithm of their mean."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import SETTING_FORM, ParameterError, Text
from .base import EXP, Link, Loss, losses, weighted_mean

LEAST_MEAN = 1e-12
"""Mean for counts that are all zero, so that its logarithm is finite."""


@losses.register("poisson")
@dataclass(frozen=True)
class Poisson(Loss):
    r"""Half the deviance of the Poisson law: :math:`e^f - y f`, up to a function of y.

    Targets are counts or rates, at least 0; predictions are means, :math:`e^f`.

    Use it for counts, especially small ones: predictions are positive. A fit costs two to five
    times as much as with squared errors.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.losses import Poisson
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> est = KernelRidge(loss="poisson", landmarks=200, penalty=1e-5, random_state=0)
    >>> est = est.fit(train, "households")
    >>> print(f"R2 {est.score(test):.2f}, least prediction {est.predict(test).min():.0f}")
    R2 0.97, least prediction 68
    """

    @property
    def link(self) -> Link:
        return EXP

    def check(self, y: Array) -> None:
        if bool((y < 0).any()):
            problem = Text("needs targets of at least 0, but {y} has {:g}", float(y.min()))
            remedy = "leave such rows out, or use another loss"
            raise ParameterError("loss", "poisson", problem, remedy, SETTING_FORM)

    def surrogate(self, y: Array, weights: Array) -> Array:
        # Anscombe's transform of counts, whose variance is about the same for all means.
        return xp.sqrt(y + 0.375)

    def constant(self, y: Array, weights: Array) -> Array:
        return xp.log(weighted_mean(y, weights).clip(min=LEAST_MEAN))

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return xp.exp(f) - y * f

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return xp.exp(f) - y

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return xp.exp(f)
