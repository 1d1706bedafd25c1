"""Gamma: positive targets whose deviation is proportional to their mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .base import Loss, losses, weighted_mean
from .links import EXP, Link


@losses.register("gamma")
@dataclass(frozen=True)
class Gamma(Loss):
    r"""Half the deviance of the Gamma law: :math:`f + y e^{-f}`, up to what depends on y only.

    Targets are positive; predictions are means, :math:`e^f`.
    """

    @property
    def link(self) -> Link:
        return EXP

    def check(self, y: Tensor) -> None:
        if not bool((y > 0).all()):
            raise ValueError(
                f"loss='gamma' needs positive targets, and y holds {float(y.min()):g}; leave such "
                "rows out, or use another loss"
            )

    def surrogate(self, y: Tensor) -> Tensor:
        return y.log()

    def constant(self, y: Tensor, weights: Tensor) -> Tensor:
        return weighted_mean(y, weights).log()

    def values(self, f: Tensor, y: Tensor) -> Float[Tensor, "n q"]:
        return f + y * torch.exp(-f)

    def slopes(self, f: Tensor, y: Tensor) -> Float[Tensor, "n q"]:
        return 1 - y * torch.exp(-f)

    def curvatures(self, f: Tensor, y: Tensor) -> Float[Tensor, "n q"]:
        return y * torch.exp(-f)
