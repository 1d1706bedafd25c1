"""divide: the rows that a fit learns from, and those that it holds out to stop early."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from ..callbacks import Validate
from ..data import Complement, RowSource, Subset, as_rows
from . import splits
from .data import TrainingData
from .generators import Generators
from .held_out import Fold, labels, other_rows, share
from .settings import FitSettings

HELD_BYTES = 64 << 20
"""Up to this size, held-out rows of a sequential source are kept in memory."""

HELD_SHARE = 8
"""Of a memory limit, no more than one in so many of its bytes."""


@dataclass(frozen=True)
class HeldOut:
    """The rows that a fit holds out by itself.

    Attributes
    ----------
    index : Tensor of shape (r,)
        Their numbers, increasing, among the rows of positive weight.
    data : TrainingData
    """

    index: Int[Tensor, " r"]
    data: TrainingData


@dataclass(frozen=True)
class Parts:
    """The data of a fit, divided.

    Attributes
    ----------
    train : TrainingData
        Without rows of weight zero, and without those that are held out.
    held_out : HeldOut or None
        None if the fit holds no rows out: it does not stop early, or a `Validate` has others.
    folds : list of Fold, or None
        Folds of the training rows, where a splitter or pairs say them.
    """

    train: TrainingData
    held_out: HeldOut | None = None
    folds: list[Fold] | None = None


def divide(settings: FitSettings, data: TrainingData, rng: Generators) -> Parts:
    """Return the data to learn from, those held out, and the folds that the settings name.

    Parameters
    ----------
    settings : FitSettings
    data : TrainingData
    rng : Generators

    Raises
    ------
    ValueError
        If there are too few rows, or ``cv`` cannot split them.
    """
    named = settings.searches_penalty and settings.names_folds
    folds = splits.folds_of(settings.cv, data) if named else None
    weighted = data.without_zero_weights()
    held = _held_out(settings, weighted, rng) if holds_out(settings) else None
    train = weighted if held is None else _others(weighted, held.index)
    if folds is not None and train is not data:
        stays = torch.arange(len(data.rows))
        stays = stays if data.weights is None else stays[data.weights > 0]
        stays = stays if held is None else stays[other_rows(len(stays), held.index)]
        folds = [splits.among(fold, stays, len(data.rows)) for fold in folds]
    return Parts(train, held, folds)


def holds_out(settings: FitSettings) -> bool:
    """Return whether a fit holds rows out by itself: to stop early, without a `Validate`."""
    given = any(isinstance(callback, Validate) for callback in settings.callbacks)
    return bool(settings.early_stopping) and not given


def _held_out(settings: FitSettings, data: TrainingData, rng: Generators) -> HeldOut:
    if rng.held_out is None:
        raise ValueError("early stopping needs a generator for the rows that are held out")
    n, classes = len(data.rows), labels(data.targets) if data.coded else None
    held = None
    if n > 1:
        held = share(n, settings.validation_fraction, rng.held_out, classes)
    if held is None or len(held) == 0:
        raise ValueError(
            f"early_stopping=True holds out rows, and {n} rows are too few; give a Validate "
            "callback with others, or early_stopping=False"
        )
    rows = _in_memory(Subset(data.rows, held), settings.limit)
    weights = None if data.weights is None else data.weights[held]
    return HeldOut(held, replace(data, rows=rows, targets=data.targets[held], weights=weights))


def _in_memory(rows: RowSource, limit: int | None) -> RowSource:
    """Return rows of a sequential source in memory, if they are few: they are read each time."""
    most = HELD_BYTES if limit is None else min(HELD_BYTES, limit // HELD_SHARE)
    if rows.random_access or rows.shape[0] * rows.shape[1] * rows.dtype.itemsize > most:
        return rows
    held = as_rows(rows.take(torch.arange(len(rows))))
    held.feature_names = rows.feature_names
    return held


def _others(data: TrainingData, held: Int[Tensor, " r"]) -> TrainingData:
    stays = other_rows(len(data.rows), held)
    weights = None if data.weights is None else data.weights[stays]
    rows = Complement(data.rows, held)
    return replace(data, rows=rows, targets=data.targets[stays], weights=weights)
