"""Contenders of `probabilities` alone, beside those of `accuracy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .accuracy_contenders import Contender, package


def support_vectors(labels: bool, seed: int) -> Contender:
    """Return scikit-learn's, with Platt's probabilities by five folds, on standardized columns."""
    return make_pipeline(StandardScaler(), SVC(probability=True, random_state=seed))


def with_loss(**settings: Any) -> Callable[[bool, int], Contender]:
    """Return a maker of our classifier with some settings, such as another loss."""
    return lambda labels, seed: package("gramian").KernelRidgeClassifier(
        random_state=seed, **settings
    )


PROBABILITIES: dict[str, Callable[[bool, int], Contender]] = {
    "svc": support_vectors,
    "gramian logistic": with_loss(loss="logistic"),
    "gramian softmax": with_loss(loss="softmax"),
}
