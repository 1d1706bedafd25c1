"""conformal_of: the calibration of intervals, from the file of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..uncertainty.conformal import Calibrated, Conformal, Predictor
from .read import Saved, SavedPart

# Filled by the modules of the models, which import this one: the reverse import would be a circle.
_MODEL_BUILDERS: dict[str, Callable[..., Any]] = {}


def register_builder(name: str, build: Callable[..., Any]) -> None:
    """Register the constructor of a ``"model"`` or an ``"average"`` from saved parts."""
    _MODEL_BUILDERS[name] = build


def conformal_of(saved: Saved) -> Conformal | None:
    """Return the saved calibration of intervals or sets; None if the file has none."""
    if saved.conformal is None:
        return None
    return Conformal(tuple(_calibration_of(part) for part in saved.conformal))


def _calibration_of(part: SavedPart) -> Calibrated:
    build = _MODEL_BUILDERS["model"]
    spread = None if part.spread is None else build(**part.spread)
    if part.values is None:
        return Calibrated(part.scores, spread=spread)
    models = tuple(build(**member) for member in part.values.members)
    weights = part.values.weights
    values: Predictor = models[0]
    if weights is not None:
        values = _MODEL_BUILDERS["average"](tuple(weights), models)
    return Calibrated(part.scores, values, spread)
