"""`load`: an estimator from the file of a model."""

from __future__ import annotations

from pathlib import Path

from ..model import load_model
from .ridge.classifier import KernelRidgeClassifier
from .ridge.regressor import KernelRidge


def load(path: str | Path) -> KernelRidge | KernelRidgeClassifier:
    """Return an estimator that predicts and scores, from a file that `gramian fit` or `save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    KernelRidge or KernelRidgeClassifier
        With the attributes that predictions need; how it was fitted is not kept, but for what
        ``model_.info`` says.

    Raises
    ------
    FileNotFoundError, ValueError
        See `KernelModel.load`.
    """
    model = load_model(path)
    kind = KernelRidge if model.classes is None else KernelRidgeClassifier
    return kind(model.parts[0].kernel).with_model(model)
