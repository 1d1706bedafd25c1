"""One pass over a table, from which the encoding of each column is learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..maps.standardizer import check_range
from ..rows.arrow import float_of, to_numpy
from ..rows.base import slices
from ..rows.dtypes import common_float
from ..tables.base import Table
from .columns.base import ColumnEncoding, Observer, Part, Seen
from .columns.target_means import MEAN_FOLDS
from .kinds import COLUMN_KINDS, Kind, kinds_of
from .moments import Moments, Summary, summaries
from .settings import Settings

BATCH_NUMBERS = 1 << 20
"""Values of a batch, as in `Standardizer.fit`."""

SAMPLE_ROWS = 100_000
"""Rows, at most, of which medians and quantiles are taken."""

EXACT_FOLDS = 1_000_000
"""Rows up to which the sizes of folds differ by at most one row."""

SAMPLE_BYTES = 1 << 27
"""Bytes, at most, of a sample: 128 MiB."""


@dataclass(frozen=True, eq=False)
class Training:
    """Rows from which an encoding is learned.

    - `targets`, ndarray of float64 of shape (n, t): targets of all rows.
    - `keep`, ndarray of bool of shape (n,): mask of the rows to learn from.
    - `folds`, ndarray of int8 of shape (n,): fold of each row; -1 for rows that `keep` excludes.
    """

    table: Table
    targets: np.ndarray
    keep: np.ndarray
    folds: np.ndarray

    @classmethod
    def of(
        cls, table: Table, targets: np.ndarray, keep: np.ndarray | None, rng: RandomStream
    ) -> Training:
        """Return the training rows of a table, with random folds.

        Raise ValueError if there are not as many targets as rows, or `keep` excludes all rows.
        """
        n = table.num_rows
        is_kept = np.ones(n, bool) if keep is None else np.asarray(keep, bool)
        if len(targets) != n or is_kept.shape != (n,):
            raise ValueError(
                f"{table.where} has {n:,} rows, but targets has {len(targets):,} and keep "
                f"{is_kept.size:,}; each must have one element per row"
            )
        count = int(is_kept.sum())
        if count == 0:
            raise ValueError(f"{table.where} has no row that counts; keep must select at least one")
        folds = np.full(n, -1, np.int8)
        folds[is_kept] = _folds(count, rng)
        return cls(table, targets, is_kept, folds)

    def sample(
        self, rng: RandomStream, columns: int, sample_bytes: int | None = None
    ) -> np.ndarray:
        """Return the increasing indices of random rows among the kept rows."""
        count = int(self.keep.sum())
        size = SAMPLE_BYTES if sample_bytes is None else min(SAMPLE_BYTES, sample_bytes)
        sample_limit = min(SAMPLE_ROWS, max(1, size // (8 * max(1, columns))))
        if count <= sample_limit:
            return np.arange(count)
        # A permutation of all rows would be as large as a column: for a small share twice as many
        # numbers are drawn with repeats, and a permutation of the distinct ones is cut.
        is_sparse_sample = count > 4 * sample_limit
        drawn_rows = (
            np.unique(rng.integers(count, size=(2 * sample_limit,))) if is_sparse_sample else None
        )
        order = rng.sample(count if drawn_rows is None else len(drawn_rows), sample_limit)
        return np.sort(order if drawn_rows is None else drawn_rows[order])

    def batches(
        self, names: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, Seen, pa.RecordBatch | None]]:
        """Yield, for each batch of the table, its kept rows, and its other rows if any.

        The kept rows come with their targets and folds. The last value is None if all are kept.
        """
        start = 0
        for batch in self.table.batches(names, max(1, BATCH_NUMBERS // len(names))):
            rows = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            is_kept, other_batch = self.keep[rows], None
            if not is_kept.all():
                other_batch = batch.filter(pa.array(~is_kept))
                rows, batch = rows[is_kept], batch.filter(pa.array(is_kept))
            part = Part(self.table.where, rows, first_row=self.table.first_row)
            # Other rows come along for one purpose: their gaps are counted.
            yield batch, Seen(part, self.targets[rows], self.folds[rows]), other_batch


def _gaps(column: pa.Array) -> int:
    """Return the number of missing values, NaN or null."""
    if pa.types.is_floating(column.type):
        # Floats have NaN and nulls, and both become NaN.
        return int(np.isnan(to_numpy(column)).sum())
    return int(column.null_count)


def _folds(count: int, rng: RandomStream) -> np.ndarray:
    """Return a fold for each row, as int8; folds of few rows have equal sizes."""
    if count > EXACT_FOLDS:
        # Folds of millions of rows have nearly equal sizes anyway, and a permutation would take
        # eight bytes a row.
        folds = np.empty(count, np.int8)
        for part in slices(count, EXACT_FOLDS):
            folds[part] = rng.integers(MEAN_FOLDS, part.stop - part.start)
        return folds
    return (rng.permutation(count) % MEAN_FOLDS).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Learned:
    """Result of the pass: the encoding of each column, and target means without each fold.

    - `dtype`: float64 if a column of numbers needs it, else float32.
    - `without`: means without each fold, by column.
    - `offered`: parts of the calendar that columns of dates offer; see `columns.datetime.offers`.
    """

    columns: tuple[ColumnEncoding, ...]
    dtype: xp.DType
    without: dict[str, np.ndarray]
    offered: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]


def learn(
    training: Training,
    names: Sequence[str],
    settings: Settings,
    rng: RandomStream,
    *,
    sample_bytes: int | None = None,
) -> Learned:
    """Learn the encodings of some columns in one pass.

    - `names`: names of at least one column.
    - `rng`: draws the sample for medians and quantiles.
    - `sample_bytes`: bytes of the sample in float64; never more than `SAMPLE_BYTES`.
    """
    table = training.table
    kinds = kinds_of(table.schema, names, table.where)
    fields = [table.schema.field(name) for name in names]
    dtype = common_float(
        float_of(field.type) or np.dtype(np.float64)
        for field, kind in zip(fields, kinds, strict=True)
        if kind == "number"
    )
    watching = [
        COLUMN_KINDS[kind].observer(field, kind, table.where, settings)
        for field, kind in zip(fields, kinds, strict=True)
    ]
    # One column of moments for each measurement of each observer, in their order.
    eps = _roundings(kinds, watching, dtype)
    summaries = _observe_table(
        training, names, watching, training.sample(rng, len(eps), sample_bytes), eps
    )
    columns, start = [], 0
    for watcher in watching:
        # Each observer gets the summaries of its own measurements.
        columns.append(watcher.finish(summaries[start : start + watcher.measured]))
        start += watcher.measured
    without = {watcher.name: watcher.without for watcher in watching if watcher.without is not None}
    offered = {w.name: (w.offered, w.offered_levels) for w in watching if w.offered}
    return Learned(tuple(columns), dtype, without, offered)


def _roundings(kinds: Sequence[Kind], watching: Sequence[Observer], dtype: xp.DType) -> Array:
    """Return the rounding error of each measured column: times and ranks are exact."""
    of = {True: xp.finfo(dtype).eps, False: xp.finfo(xp.float64).eps}
    pairs = zip(kinds, watching, strict=True)
    roundings = [of[kind == "number"] for kind, watcher in pairs for _ in range(watcher.measured)]
    return np.array(roundings, np.float64)


def _observe_table(
    training: Training,
    names: Sequence[str],
    watching: Sequence[Observer],
    drawn: np.ndarray,
    eps: np.ndarray,
) -> list[Summary]:
    """Pass all rows to all observers, and summarise their measurements.

    Medians and quantiles are computed from the sample: the rows with the numbers `drawn` among the
    rows that count. These numbers increase, so that the sampled rows of a batch are consecutive in
    the sample.
    """
    columns = len(eps)
    sample = np.empty((len(drawn), columns))
    moments, n, taken_rows = Moments(columns), 0, 0
    elsewhere: Counter[str] = Counter()
    for batch, seen_rows, other_batch in training.batches(names):
        other_columns = [] if other_batch is None else other_batch.columns
        for name, column in zip(names, other_columns, strict=False):
            elsewhere[name] += _gaps(column)
        if batch.num_rows == 0:
            continue
        # All measurements of a batch in one matrix: the moments of a hundred columns then cost one
        # pass, not a hundred.
        matrix, start = np.empty((len(seen_rows.folds), columns)), 0
        for watcher, column in zip(watching, batch.columns, strict=True):
            for values in watcher.see(column, seen_rows):
                matrix[:, start] = values
                start += 1
        if columns:
            moments.add_with_gaps(matrix)
            # The drawn numbers increase: the rows of this batch among them are a slice, found
            # without a mask of all rows.
            stop = int(np.searchsorted(drawn, n + len(matrix)))
            sample[taken_rows:stop] = matrix[drawn[taken_rows:stop] - n]
            taken_rows = stop
        n += len(matrix)
    if columns == 0:
        return []
    measured = [watcher.name for watcher in watching for _ in range(watcher.measured)]
    # A gap of a held-out row is known before the fit, so that the column has a mark for it.
    column_summaries = [
        replace(watcher, gaps=watcher.gaps + elsewhere[name])
        for watcher, name in zip(summaries(moments, sample, n, eps), measured, strict=True)
    ]
    check_range(
        np.array([watcher.scale for watcher in column_summaries], np.float64), tuple(measured)
    )
    return column_summaries
