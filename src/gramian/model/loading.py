"""`load_model`: read a model of any class from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .average import AverageModel
from .base import Model
from .file.conformal import conformal_of
from .file.read import read_model
from .kernel_model import KernelModel


def load_model(path: str | Path, *, verify: bool = True) -> Model:
    """Read a model, or an average of models, written by `save`.

    Parameters, errors and notes are the same as for `KernelModel.load`.
    """
    saved = read_model(Path(path), verify)
    conformal = conformal_of(saved)
    models = tuple(KernelModel(**parts) for parts in saved.members)
    if saved.weights is None:
        return replace(models[0], conformal=conformal)
    return AverageModel(tuple(saved.weights), models, info=models[0].info, conformal=conformal)
