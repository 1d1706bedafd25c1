"""Loading of a model from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..conformal import CalibratedPart, ConformalPredictor, RowGroups, make
from .average import AverageModel
from .base import Model
from .blend.blend_model import BlendModel
from .file.members import Saved, SavedCalibration
from .file.read import read_model
from .kernel_model import KernelModel

Kind = TypeVar("Kind", KernelModel, AverageModel)


def load_model(path: str | Path, *, verify: bool = True) -> Model:
    """Read a model, an average of models, or a blend, written by `save`.

    Parameters, errors and notes are the same as for `KernelModel.load`.
    """
    return _build_model(read_model(Path(path), verify))


def load_as(kind: type[Kind], path: str | Path, verify: bool) -> Kind:
    """Read a model of one class; raise ValueError if the file holds another one."""
    model = load_model(path, verify=verify)
    if isinstance(model, kind):
        return model
    if isinstance(model, BlendModel):
        raise ValueError(
            f"{path} holds a blend of a kernel model and trees: read it with gramian.load"
        )
    if isinstance(model, AverageModel):
        raise ValueError(
            f"{path} holds an average of {len(model.models)} models: read it with "
            "AverageModel.load or gramian.load"
        )
    raise ValueError(
        f"{path} holds a single model, not an average; read it with KernelModel.load or "
        "gramian.load"
    )


def _build_model(saved: Saved) -> KernelModel | AverageModel | BlendModel:
    models = tuple(KernelModel(**parts) for parts in saved.members)
    model: KernelModel | AverageModel | BlendModel = models[0]
    if saved.weights is not None:
        model = AverageModel(tuple(saved.weights), models, info=models[0].info)
    if saved.blend is not None:
        model = BlendModel(model, *saved.blend, info=models[0].info)
    if saved.conformal is None:
        return model
    return replace(model, conformal=_build_calibration(saved.conformal))


def _build_calibration(saved: SavedCalibration) -> ConformalPredictor:
    groups = None
    if saved.groups is not None and saved.known_values is not None:
        groups = RowGroups.from_dict(saved.groups, saved.known_values)
    parts = tuple(
        CalibratedPart(
            part.scores,
            {name: _build_model(function) for name, function in part.functions.items()},
            part.groups,
        )
        for part in saved.parts
    )
    return ConformalPredictor(make(**saved.method), parts, groups)
