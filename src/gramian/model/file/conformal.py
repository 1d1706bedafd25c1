"""conformal_of: what makes intervals, from the file of a model."""

from __future__ import annotations

from ..uncertainty.conformal import Calibrated, Conformal
from .read import Saved, SavedPart


def conformal_of(saved: Saved) -> Conformal | None:
    """Return what was saved with a model to make intervals or sets; None if there was nothing."""
    if saved.conformal is None:
        return None
    return Conformal(tuple(_calibrated(part) for part in saved.conformal))


def _calibrated(part: SavedPart) -> Calibrated:
    from ..average import AverageModel
    from ..kernel_model import KernelModel

    spread = None if part.spread is None else KernelModel(**part.spread)
    if part.values is None:
        return Calibrated(part.scores, spread=spread)
    models = tuple(KernelModel(**one) for one in part.values.members)
    weights = part.values.weights
    values = models[0] if weights is None else AverageModel(tuple(weights), models)
    return Calibrated(part.scores, values, spread)
