"""From a table and options to rows and targets, to learn from and held out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from ..data import (
    Cast,
    Complement,
    RowSource,
    Standardizer,
    Subset,
    as_rows,
    check_finite,
    check_magnitude,
    feature_columns,
    open_rows,
    read_targets,
)
from ..fitting import TrainingData
from ..fitting.targets import (
    class_codes,
    classes_of,
    coded_data,
    target_tensor,
    training_targets,
)
from . import parsing
from .options import FitOptions, Task

HELD_BYTES = 64 << 20
"""Up to this size, held-out rows of a sequential source are kept in memory."""


@dataclass(frozen=True)
class Examples:
    """Rows with their targets, of shape (n,)."""

    rows: RowSource
    y: np.ndarray


@dataclass(frozen=True)
class Training:
    """Training rows and held-out rows of a command, with their targets.

    Attributes
    ----------
    columns : tuple of str
        Names of the features; in a ``.npy`` file their numbers.
    classification : bool
    train : Examples
    held_out : Examples or None
    features, target : Standardizer or None
        What has been done to both: None if nothing.
    """

    columns: tuple[str, ...]
    classification: bool
    train: Examples
    held_out: Examples | None
    features: Standardizer | None = None
    target: Standardizer | None = None

    @property
    def targets(self) -> int:
        """Columns of the problem: more than one for more than two classes."""
        count = len(self.classes) if self.classification else 2
        return count if count > 2 else 1

    @functools.cached_property
    def classes(self) -> np.ndarray:
        """The labels of the training rows, sorted."""
        return np.unique(self.train.y)

    def data(self) -> TrainingData:
        """Return rows and targets as a fit takes them.

        Raises
        ------
        ValueError
            If labels are numbers that look like measurements, or of one class only.
        """
        rows, y = self.train.rows, self.train.y
        if self.classification:
            check_classification_targets(y)
            return coded_data(rows, y, classes_of(self.classes), feature_names=rows.feature_names)
        targets = training_targets(y, rows.dtype)
        return TrainingData(rows, targets, feature_names=rows.feature_names)

    def encoded(self, y: np.ndarray) -> Tensor:
        """Return other targets as numbers, or as the codes of the classes of the training rows."""
        if self.classification:
            return class_codes(y, self.classes, self.train.rows.dtype)
        return target_tensor(y, self.train.rows.dtype)

    def holding(self) -> Training:
        """Return the same with held-out rows of a sequential source in memory, if they are few.

        Costs a pass over all rows then, but spares one in each iteration.
        """
        held = self.held_out
        if held is None or held.rows.random_access or not _is_small(held.rows):
            return self
        return replace(self, held_out=Examples(_in_memory(held.rows), held.y))

    def without(self, index: Tensor) -> Training:
        """Return the same with some rows held out, by their numbers."""
        train, held_out = _divided(self.train, index)
        return replace(self, train=train, held_out=held_out)

    def check(self) -> None:
        """Refuse missing values, and a copy of the target. Costs a pass over all rows."""
        check_finite(self.train.rows, targets=self.train.y)
        self._check_held_out()

    def _check_held_out(self) -> None:
        if self.held_out is not None:
            check_finite(self.held_out.rows, "the table for validation")

    def standardized(self) -> Training:
        """Return the same with features, and the target of a regression, standardised.

        Costs a pass over all rows, which refuses missing values and a copy of the target.
        """
        self._check_held_out()
        features = Standardizer.fit(self.train.rows, targets=self.train.y)
        target = None if self.classification else Standardizer.fit(as_rows(self.train.y[:, None]))

        def change(part: Examples) -> Examples:
            rows = features.apply(part.rows)
            return Examples(rows, part.y if target is None else _changed(part.y, target, rows))

        held_out = None if self.held_out is None else change(self.held_out)
        return replace(
            self, train=change(self.train), held_out=held_out, features=features, target=target
        )


def _changed(y: np.ndarray, target: Standardizer, rows: RowSource) -> np.ndarray:
    """Standardise targets; in the precision of the rows, which is that of the kernel."""
    source = Cast(target.apply(as_rows(y[:, None])), rows.dtype)
    return source.map(lambda block: block, size=1 << 16).numpy()[:, 0]


def open_training(data: Path, options: FitOptions) -> Training:
    """Open a table, read the target and hold rows out."""
    ignored = () if options.ignore is None else parsing.names(options.ignore)
    columns = feature_columns(data, [options.target, *ignored], options.features)
    whole = _open(data, options.target, columns)
    classification = _is_classification(whole.y, options)
    if not classification:  # a standardised target is in range: say it of that of the file
        y = torch.from_numpy(whole.y[:, None].astype(np.float64))
        check_magnitude(y, torch.float64, f"the target {options.target!r}")
    if options.validation is None:
        return Training(columns, classification, whole, None)
    share = parsing.validation(options.validation)
    if isinstance(share, Path):
        return Training(columns, classification, whole, _open(share, options.target, columns))
    return Training(columns, classification, *_split(whole, share, options.seed))


def _open(path: Path, target: str, columns: Sequence[str]) -> Examples:
    if not columns:
        raise ValueError(f"{path} has no columns to learn from beside the target {target!r}")
    return Examples(open_rows(path, columns), read_targets(path, target))


def _is_classification(y: np.ndarray, options: FitOptions) -> bool:
    words = y.dtype.kind in "Ub"
    if options.task is Task.REGRESSION and y.dtype.kind == "U":
        raise ValueError(
            f"the target {options.target!r} is text, such as {str(y[0])!r}, and a regression "
            "predicts numbers: leave --task out, or choose another --target"
        )
    return words if options.task is Task.AUTO else options.task is Task.CLASSIFICATION


def _split(whole: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    n = len(whole.y)
    count = round(share * n)
    if not 0 < count < n:
        raise ValueError(
            f"--validation {share:g} of {n} rows leaves {n - count} to learn from and {count} to "
            "measure the error"
        )
    return _divided(whole, spread_rows(n, count, rng=torch.Generator().manual_seed(seed)))


def _divided(whole: Examples, index: Tensor) -> tuple[Examples, Examples]:
    """Return the other rows, and those with these numbers."""
    stays = np.ones(len(whole.y), dtype=bool)
    stays[index.numpy()] = False
    return (
        Examples(Complement(whole.rows, index), whole.y[stays]),
        Examples(Subset(whole.rows, index), whole.y[index.numpy()]),
    )


def spread_rows(n: int, count: int, *, rng: torch.Generator) -> Tensor:
    """Draw row numbers, each row with probability count / n, spread over the table.

    One comes from each of `count` ranges of about equal length, laid around the table from a
    random row on.

    Returns
    -------
    Tensor of shape (count,)
        Strictly increasing. Other than a permutation of all rows, this takes memory for `count`
        numbers only.
    """
    bounds = torch.arange(count + 1) * n // count
    within = torch.rand(count, generator=rng, dtype=torch.float64) * bounds.diff()
    first = torch.randint(n, (), generator=rng)
    return ((bounds[:-1] + within.long() + first) % n).sort().values


def _is_small(rows: RowSource) -> bool:
    n, d = rows.shape
    return n * d * rows.dtype.itemsize <= HELD_BYTES


def _in_memory(rows: RowSource) -> RowSource:
    held = as_rows(rows.take(torch.arange(len(rows))))
    held.feature_names = rows.feature_names
    return held
