"""Softmax: the log loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from .base import Loss, losses, weighted_mean


@losses.register("softmax")
@dataclass(frozen=True)
class Softmax(Loss):
    r""":math:`\log \sum_c e^{f_c} - f_y`, y the class whose code is positive.

    The second derivative of a row is diag(p) - p p', p the probabilities. A constant added to all
    outputs changes nothing; the penalty makes their sum zero.

    Use it for the probabilities of three or more classes. A step costs twice as much as a step for
    the same number of uncoupled outputs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> est = KernelRidgeClassifier(loss="logistic", penalty=1e-3, random_state=0).fit(X, y)
    >>> est.predict_proba(X[[0, 70, 140]]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.02, 0.68, 0.3 ],
           [0.  , 0.01, 0.99]])
    """

    of_classes: ClassVar[bool] = True
    coupled: ClassVar[bool] = True
    invariant: ClassVar[bool] = True

    def constant(self, y: Tensor, weights: Tensor) -> Tensor:
        # A class without weight would have an infinite logarithm.
        logs = weighted_mean((y > 0).double(), weights).clamp(min=1e-12).log()
        # Only differences of outputs matter, and the penalty makes their sum zero.
        return logs - logs.mean()

    def values(self, f: Tensor, y: Tensor) -> Float[Tensor, "n 1"]:
        right = (f * (y > 0)).sum(dim=1, keepdim=True)
        return f.logsumexp(dim=1, keepdim=True) - right

    def slopes(self, f: Tensor, y: Tensor) -> Float[Tensor, "n q"]:
        return f.softmax(dim=1) - (y > 0).double()

    def curvatures(self, f: Tensor, y: Tensor) -> Float[Tensor, "n q"]:
        p = f.softmax(dim=1)
        return p * (1 - p)

    def curvature_product(self, f: Tensor, y: Tensor, z: Tensor) -> Float[Tensor, "n q"]:
        # (diag(p) - p p') z, without a matrix for each row.
        p = f.softmax(dim=1)
        return p * (z - (p * z).sum(dim=1, keepdim=True))
