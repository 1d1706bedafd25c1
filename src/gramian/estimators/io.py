"""Loading of an estimator from a model file."""

from __future__ import annotations

from pathlib import Path

from ..model import load_model
from .ridge.classifier import KernelRidgeClassifier
from .ridge.regressor import KernelRidge


def load(path: str | Path) -> KernelRidge | KernelRidgeClassifier:
    """Load an estimator that predicts and scores from a file of `gramian fit` or `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    KernelRidge or KernelRidgeClassifier
        Estimator with the attributes that predictions need. Of the fit itself, only ``model_.info``
        is kept.

    Raises
    ------
    FileNotFoundError, ValueError
        As in `KernelModel.load`.
    """
    model = load_model(path)
    kind = KernelRidge if model.classes is None else KernelRidgeClassifier
    return kind(model.parts[0].kernel).with_model(model)
