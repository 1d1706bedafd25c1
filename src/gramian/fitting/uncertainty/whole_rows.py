"""All rows of a fit, before some are held out for intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Bool, Float, Int
from ...data import (
    RowWeights,
    TrainingTable,
    as_columns,
    check_finite,
    complement,
)
from ..held_out.folds import labels, other_rows
from ..held_out.validation import holds_out
from ..inputs.training_data import TrainingData, coded_data, training_targets
from ..plans.plan import check_memory
from ..plans.remote import check_remote
from ..settings.generators import Generators
from ..settings.settings import FitSettings
from ..table_data import encoded_rows, table_data


@dataclass(frozen=True, eq=False)
class DividedRows:
    """Training rows and held-out rows.

    - `settings`: settings of the fit to the training rows.
    - `held_out_data`: held-out rows, which do not affect the encoding either.
    - `learn`: indices of the training rows among all rows of positive weight; None for all.
    """

    train: TrainingData
    settings: FitSettings
    held_out_data: TrainingData | None = None
    learn: Int[Array, " k"] | None = None


@dataclass(frozen=True, eq=False)
class WholeRows:
    """All rows of a fit to numeric rows."""

    data: TrainingData
    settings: FitSettings

    @property
    def classes(self) -> Int[Array, " n"] | None:
        """Index of the class of each row of positive weight; None for a regression."""
        data = self.data.without_zero_weights()
        return labels(data.targets) if data.coded else None

    @property
    def count(self) -> int:
        """Number n of rows of positive weight."""
        return len(self.data.without_zero_weights().rows)

    def without(self, index: Int[Array, " k"] | None) -> DividedRows:
        """Hold out the rows at increasing indices among the rows of positive weight, as views."""
        if index is None:
            return DividedRows(self.data, self.settings)
        data = self.data.without_zero_weights()
        stays = other_rows(len(data.rows), index)
        train = data.part(stays, complement(data.rows, index))
        return DividedRows(train, self.settings, data.part(index), stays)


def whole_of(
    table: TrainingTable,
    settings: FitSettings,
    rng: Generators,
    *,
    labels: np.ndarray | None = None,
    weights: RowWeights | None = None,
    keep: Bool[Array, " n"] | None = None,
    hold_out: bool | None = None,
) -> Whole:
    """Return all rows of a table: a `WholeTable`, or remote rows and targets.

    Parameters are the same as in `WholeTable`. If `keep` leaves out rows, the targets are gathered.
    """
    # Targets of a cluster stay with their rows, unless some rows must be left out by number.
    if keep is None and not table.table.takes_encoding:
        rows, y = table.table.rows(table.columns), table.y
        check_remote(settings, rows)
        t = as_columns(y).rows.shape[1] if labels is None or len(labels) == 2 else len(labels)
        check_memory(settings, rows, t)
        check_finite(rows, table.table.where, targets=y)
        names = rows.feature_names if table.table.named else None
        if labels is not None:
            data = coded_data(rows, y, labels, weights, names)
        else:
            # As in `table_data`: targets that are scaled meet the rows in float64.
            wide = xp.float64 if settings.scales_targets else rows.dtype
            data = TrainingData(rows, training_targets(y, rows.dtype, wide), weights, None, names)
        return WholeRows(replace(data, target=table.target), settings)
    table = replace(table, y=np.asarray(table.y))
    weights = None if weights is None else as_columns(weights).gather()
    return WholeTable(table, settings, rng, labels, weights, keep, hold_out)


@dataclass(frozen=True, eq=False)
class WholeTable:
    """A table, whose encoding is learned without the held-out rows.

    - `labels`: sorted classes; None for a regression.
    - `keep`: mask of the rows to learn from.
    - `hold_out`: whether rows are held out for early stopping; by default as in the settings.
    """

    table: TrainingTable
    settings: FitSettings
    rng: Generators
    labels: np.ndarray | None = None
    weights: Float[Array, " n"] | None = None
    keep: Bool[Array, " n"] | None = None
    hold_out: bool | None = None

    @property
    def _numbers(self) -> Int[Array, " _"]:
        counts = xp.ones(len(self.table.y), xp.bool) if self.keep is None else self.keep
        return xp.flatnonzero(counts if self.weights is None else counts & (self.weights > 0))

    @property
    def classes(self) -> Int[Array, " n"] | None:
        """Index of the class of each row of positive weight; None for a regression."""
        if self.labels is None:
            return None
        y = self.table.y[self._numbers]
        return np.searchsorted(self.labels, y)

    @property
    def count(self) -> int:
        """Number n of rows of positive weight."""
        return len(self._numbers)

    def without(self, index: Int[Array, " k"] | None) -> DividedRows:
        """Hold out the rows at increasing indices among the rows of positive weight."""
        keep, held_rows = self.keep, None
        if index is not None:
            # The index counts rows of positive weight, `keep` counts all rows of the table.
            held_rows = self._numbers[index]
            keep = xp.ones(len(self.table.y), xp.bool) if keep is None else xp.copy(keep)
            keep[held_rows] = False
        train, settings = table_data(
            self.table,
            self.settings,
            self.rng,
            classes=self.labels,
            weights=self.weights,
            keep=keep,
            hold_out=holds_out(self.settings) if self.hold_out is None else self.hold_out,
        )
        if held_rows is None or index is None:
            return DividedRows(train, settings)
        # The encoding was learned without these rows, and treats them as new ones.
        held_data = encoded_rows(self.table, train, self.weights, held_rows, self.labels)
        return DividedRows(train, settings, held_data, other_rows(self.count, index))


Whole = WholeRows | WholeTable
"""All rows of a fit, some of which may be held out."""
