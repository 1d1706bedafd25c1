"""Logistic: the log loss of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import _arrays as xp
from .._arrays import Array, Float
from .base import Loss, losses, weighted_mean


@losses.register("logistic")
@dataclass(frozen=True)
class Logistic(Loss):
    r""":math:`\log(1 + e^{-y f})` for codes y of -1 and 1: f is the log odds of the second class.

    For several classes, ``loss="logistic"`` of a classifier is `Softmax`.

    Use it for the probability of one of two classes. A fit costs two to five times as much as with
    squared errors.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> est = KernelRidgeClassifier(loss="logistic", random_state=0).fit(X[:400], y[:400])
    >>> est.predict_proba(X[400:403]).round(2)
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    of_classes: ClassVar[bool] = True

    def constant(self, y: Array, weights: Array) -> Array:
        # If all rows are of one class, `eps` keeps the log odds finite.
        share = (1 + weighted_mean(y, weights)) / 2
        return xp.logit(share.clip(1e-12, 1 - 1e-12))

    def values(self, f: Array, y: Array) -> Float[Array, "n q"]:
        # `softplus` does not overflow for large -y f, unlike the exponential.
        return xp.softplus(-y * f)

    def slopes(self, f: Array, y: Array) -> Float[Array, "n q"]:
        return -y * xp.sigmoid(-y * f)

    def curvatures(self, f: Array, y: Array) -> Float[Array, "n q"]:
        # For large f, 1 - sigmoid(f) would round to zero; sigmoid(-f) keeps its digits.
        return xp.sigmoid(f) * xp.sigmoid(-f)
