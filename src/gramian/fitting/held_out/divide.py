"""Division of the rows of a fit into training rows, held-out rows for early stopping, and folds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Int
from ..._messages.errors import TextError
from ...callbacks import Validate
from ...data import RowSource, complement, subset
from ...search import Split
from ..inputs.memory import in_memory
from ..inputs.training_data import HeldOut, TrainingData
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from . import splits
from .folds import labels, other_rows, share

HELD_BYTES = 64 << 20
"""Up to this size, held-out rows of a sequential source are kept in memory."""

HELD_SHARE = 8
"""Part of a memory limit that held-out rows may take: one in eight bytes."""


@dataclass(frozen=True)
class Parts:
    """Training rows and held-out rows of a fit.

    Attributes
    ----------
    train : TrainingData
        Training data without held-out rows and rows of weight zero.
    held_out : HeldOut or None
        None if the fit does not stop early, or if a `Validate` has its own rows.
    folds : list of Split, or None
        Folds of `train`, if a splitter or pairs define them.
    """

    train: TrainingData
    held_out: HeldOut | None = None
    folds: list[Split] | None = None


def divide(settings: FitSettings, data: TrainingData, rng: Generators) -> Parts:
    """Split the data into training rows, held-out rows if the fit stops early, and folds.

    Raise ValueError if there are too few rows, or ``cv`` cannot split them.
    """
    # First, because the numbers of held-out rows count rows of positive weight only.
    data = data.without_zero_weights()
    held_out = data.held_out
    # A table has held its rows out already, before its encoding.
    if held_out is None and holds_out(settings):
        index = draw_held_out(
            settings, len(data.rows), labels(data.targets) if data.coded else None, rng
        )
        rows = hold_sequential(subset(data.rows, index), settings.limit)
        held_out = HeldOut(index, data.part(index, rows))
        # A complement keeps the numbers of the omitted rows, and not of the millions of others.
        data = data.part(other_rows(len(data.rows), index), complement(data.rows, index))
    train = data if data.held_out is None else replace(data, held_out=None)
    named = settings.searches_penalty and settings.names_folds
    return Parts(train, held_out, splits.folds_of(settings.cv, train) if named else None)


def holds_out(settings: FitSettings) -> bool:
    """Return whether a fit must draw held-out rows, because it stops early without a `Validate`."""
    has_validate = any(isinstance(callback, Validate) for callback in settings.callbacks)
    return bool(settings.early_stopping) and not has_validate


def draw_held_out(
    settings: FitSettings, n: int, classes: Int[Array, " n"] | None, rng: Generators
) -> Int[Array, " r"]:
    """Return the increasing indices of the rows to hold out, the same share of each class."""
    if rng.held_out is None:
        raise ValueError("early stopping needs a random generator for the held-out rows")
    index = xp.arange(0)
    if n > 1:
        index = share(n, settings.validation_fraction, rng.held_out, classes)
    if len(index) == 0:
        raise TextError(
            f"{{early_stopping=True}} holds out rows, but {n} rows are too few; give validation "
            "rows with {callbacks=[Validate(X, y)]}, or {early_stopping=False}"
        )
    return index


def hold_sequential(rows: RowSource, limit: int | None) -> RowSource:
    """Return held-out rows, copied to memory if their source is sequential and they are few.

    Each validation reads all held-out rows.
    """
    if rows.random_access:
        return rows
    most_bytes = HELD_BYTES if limit is None else min(HELD_BYTES, limit // HELD_SHARE)
    return in_memory(rows, most_bytes)[0]
