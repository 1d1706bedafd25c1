"""Softmax: the log loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import _arrays as xp
from .._arrays import Array, Float
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

    def constant(self, y: Array, weights: Array) -> Array:
        # A class without weight would have an infinite logarithm.
        logs = xp.log(weighted_mean(xp.to_float64(y > 0), weights).clip(min=1e-12))
        # Only differences of outputs matter, and the penalty makes their sum zero.
        return logs - logs.mean()

    def values(self, f: Array, y: Array) -> Float[Array, "n 1"]:
        right = (f * (y > 0)).sum(axis=1, keepdims=True)
        return xp.logsumexp(f, axis=1, keepdims=True) - right

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return xp.softmax(f, axis=1) - xp.to_float64(y > 0)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        p = xp.softmax(f, axis=1)
        return p * (1 - p)

    def curvature_product(self, f: Array, y: Array, z: Array) -> Float[Array, "n q"]:
        # (diag(p) - p p') z, without a matrix for each row.
        p = xp.softmax(f, axis=1)
        return p * (z - (p * z).sum(axis=1, keepdims=True))
