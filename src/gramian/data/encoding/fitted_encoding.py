"""Encoding learned in one pass, with cross-fitted target means for the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._arrays import Array, RandomStream
from ..._messages.checks import join_words
from ..._messages.errors import TextWarning
from ..rows.arrow import check_columns
from ..tables.base import Table
from .columns.base import ColumnEncoding, Part
from .columns.datetime import Date, offers
from .columns.left_out import TEXT_REASONS, LeftOut
from .gains import FEWEST_ROWS, JOINT_ROWS, JointGain
from .learn import Learned, Training, learn
from .settings import MOST_LEVELS, SMOOTHING_ROWS, Numbers, Settings
from .table_encoding import EncodedRows, Encoding


@dataclass(frozen=True, eq=False)
class FittedEncoding:
    """An encoding, with cross-fitted target means for the encoding of its training rows.

    Attributes
    ----------
    encoding : Encoding
        The encoding of new rows.
    folds : ndarray of int8 of shape (n,), or None
        Fold of each training row; -1 for rows excluded by `keep`. None if no column is encoded by
        target means.
    without : mapping of str to ndarray of shape (L + 1, 5, t)
        For each such column, the target means of its L levels, and of unknown levels, computed
        without each of the 5 folds.
    """

    encoding: Encoding
    folds: np.ndarray | None
    without: Mapping[str, np.ndarray]

    @classmethod
    def fit(
        cls,
        table: Table,
        columns: Sequence[str] | None = None,
        targets: np.ndarray | Array | None = None,
        *,
        rng: RandomStream,
        numbers: Numbers = "standard",
        max_levels: int = MOST_LEVELS,
        smoothing: float = SMOOTHING_ROWS,
        keep: np.ndarray | None = None,
        sample_bytes: int | None = None,
        text_features: Collection[str] = (),
    ) -> FittedEncoding:
        """Learn an encoding in one pass over a table.

        Parameters
        ----------
        table : Table of n rows
        columns : sequence of str, optional
            Columns that become features; all by default, except an index that pandas has stored.
        targets : Array of shape (n,) or (n, t), optional
            Numbers, or codes of classes. Without targets, a category of many levels has only one
            feature, the logarithm of its count.
        rng : RandomStream
            Draws the folds, and the sample for medians and quantiles.
        numbers : str, default="standard"
            ``"standard"``: mean 0 and scale 1; ``"quantile"``: normal by 1,000 quantiles, ending
            at 3, and standardised again; ``"raw"``: as they are.
        max_levels : int, default=200
            Categories of more levels are encoded by means of the targets.
        smoothing : float, default=20
            Rows of the overall mean that are added to each level.
        keep : ndarray of bool of shape (n,), optional
            Mask of the rows to learn from, all by default; held-out rows are excluded.
        sample_bytes : int, optional
            Bytes of the sample for medians and quantiles. The sample never takes more than 128 MiB,
            nor has more than 100,000 rows.
        text_features : collection of str
            Columns that become features even if they hold identifiers or free text, which are
            left out otherwise, with a warning.

        Returns
        -------
        FittedEncoding
            The encoding, with the means without each fold for the training rows.

        Raises
        ------
        ValueError, TypeError
            If a column cannot be used; the message names it.

        Notes
        -----
        The result depends on the values, not on how the table is stored: batches have one size,
        levels are in the order of their texts.

        Cost: one pass; a sample of rows; for a category 5 (t + 1) numbers per
        level.
        """
        if columns is None:
            columns = [name for name in table.names if not name.startswith("__index_level_")]
        names = list(columns)
        check_columns(table.where, table.names, names)
        settings = Settings(numbers, max_levels, smoothing, frozenset(text_features))
        training = Training.of(table, _targets(targets, table.num_rows), keep, rng)
        learned = learn(training, names, settings, rng, sample_bytes=sample_bytes)
        encoding = Encoding(_confirm_offers(learned, training, rng), learned.dtype)
        pairs = [(name, table.column_readings.get(name)) for name in encoding.names]
        # How columns were read, if a new file might be read in another way.
        readings = {name: how for name, how in pairs if how and not how.is_canonical}
        encoding = replace(encoding, readings=readings)
        if encoding.width == 0 and not encoding.plain:
            column_texts = [f"{name} ({why})" for name, why in encoding.describe().items()]
            raise ValueError(
                f"{table.where} has no column to learn from: {join_words(column_texts)}; "
                "at least one must vary"
            )
        _warn_of_texts(table.where, encoding)
        # Folds matter only for means of targets: without them training rows are encoded as new
        # ones.
        folds = training.folds if learned.without else None
        return cls(encoding, folds, learned.without)

    def training_rows(self, table: Table) -> EncodedRows:
        """Return the training rows, encoded with means that do not contain a row's own fold.

        Rows that `keep` excluded are encoded like new rows.
        """
        if self.folds is not None and len(self.folds) != table.num_rows:
            raise ValueError(
                f"{table.where} has {table.num_rows:,} rows, but the encoding was fitted to "
                f"{len(self.folds):,}"
            )
        return EncodedRows(table, self.encoding, self.folds, self.without)


def _confirm_offers(
    learned: Learned, training: Training, rng: RandomStream
) -> tuple[ColumnEncoding, ...]:
    """Return the encodings, with what dates offer if it helps together with other columns.

    Cost: a sample of 500 rows, and some ten eigenvalue problems for each column of dates.
    """
    training_index = np.flatnonzero(training.keep)
    has_targets = training.targets.shape[1] > 0 and len(training_index) >= FEWEST_ROWS
    if not learned.offered or not has_targets:
        return learned.columns
    table, columns = training.table, list(learned.columns)
    rows = training_index
    if len(rows) > JOINT_ROWS:
        rows = rows[np.sort(rng.sample(len(rows), JOINT_ROWS))]
    encoded = EncodedRows(
        table, Encoding(learned.columns, learned.dtype), training.folds, learned.without
    )
    gain = JointGain(np.asarray(encoded.take(rows), np.float64), training.targets[rows])
    for j, date in enumerate(columns):
        if isinstance(date, Date) and date.name in learned.offered:
            values = table.take([date.name], rows).column(0)
            part = Part(table.where, rows, first_row=table.first_row)
            for change, is_clear in offers(date, *learned.offered[date.name]):
                changed = change(date)
                features = (candidate.encode(values, part) for candidate in (changed, date))
                if gain.accept(*features, is_clear=is_clear):
                    date = changed
            columns[j] = date
    return tuple(columns)


def _warn_of_texts(where: str, encoding: Encoding) -> None:
    """Warn of the columns of texts that are left out, all at once."""
    names: dict[str, list[str]] = {}
    for column in encoding.columns:
        if isinstance(column, LeftOut) and column.why in TEXT_REASONS:
            names.setdefault(column.why, []).append(column.name)
    if names:
        texts = [f"{join_words(columns)} ({why})" for why, columns in names.items()]
        warning = TextWarning(
            "{}: columns left out: {}; to use them, name all features in {columns}",
            where, "; ".join(texts),
        )  # fmt: skip
        warnings.warn(warning, stacklevel=2)


def _targets(targets: np.ndarray | Array | None, n: int) -> np.ndarray:
    if targets is None:
        return np.empty((n, 0))
    array = np.asarray(targets, np.float64)
    return array.reshape(len(array), -1)
