"""Losses other than the squared error: probabilities, robust fits, quantiles, counts.

Each loss is one file with value, slope, curvature and link. `gramian.solvers.Newton` minimises the
mean loss plus a penalty, for ``KernelRidge(loss=...)`` and ``KernelRidgeClassifier(loss=...)``.

===========  ==========================  ========================================
name         targets                     prediction
===========  ==========================  ========================================
logistic     two classes, or several     log odds; probabilities
softmax      several classes             the same
huber        numbers                     a mean that outliers hardly move
quantile     numbers                     quantiles, one or several
expectile    numbers                     an expectile
poisson      counts or rates             their mean, e to the function
gamma        positive numbers            their mean, e to the function
===========  ==========================  ========================================

To add a loss: one file with a registered `Loss`, one import line here.
"""

from __future__ import annotations

from typing import Any

from .base import Link, Loss, link_of, losses
from .expectile import Expectile
from .gamma import Gamma
from .huber import Huber
from .logistic import Logistic
from .poisson import Poisson
from .quantile import Quantile
from .softmax import Softmax


def make(name: str, **parameters: Any) -> Loss:
    """Return the loss called `name`, one of `names`."""
    return losses.make(name, **parameters)


def names() -> tuple[str, ...]:
    """Return the names of the losses."""
    return tuple(losses)


__all__ = [
    "Expectile",
    "Gamma",
    "Huber",
    "Link",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Softmax",
    "link_of",
    "make",
    "names",
]
