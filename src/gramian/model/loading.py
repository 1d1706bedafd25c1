"""Loading of a model of any class from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .average import AverageModel
from .base import Model
from .blend.blend_model import BlendModel
from .file.conformal import conformal_of
from .file.read import read_model
from .kernel_model import KernelModel


def load_model(path: str | Path, *, verify: bool = True) -> Model:
    """Read a model, an average of models, or a blend, written by `save`.

    Parameters, errors and notes are the same as for `KernelModel.load`.
    """
    saved = read_model(Path(path), verify)
    conformal = conformal_of(saved)
    models = tuple(KernelModel(**parts) for parts in saved.members)
    model: KernelModel | AverageModel | BlendModel = models[0]
    if saved.weights is not None:
        model = AverageModel(tuple(saved.weights), models, info=models[0].info)
    if saved.blend is not None:
        model = BlendModel(model, *saved.blend, info=models[0].info)
    return replace(model, conformal=conformal)
