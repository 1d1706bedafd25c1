"""Random splits of the rows of a search into training rows and validation rows."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from ..metric.base import split_held_out

FEW_ROWS = 1500
"""Rows below which five folds hold out each row once."""

FOLD_COUNT = 5

MIDDLE_ROWS, MIDDLE_FOLDS = 2000, 3
"""Rows below which some of the five folds are held out, and their number; of more rows, a fifth is
held out once, at most 2,000 rows."""


@dataclass(frozen=True, eq=False)
class Split:
    """A division of rows into training rows and validation rows.

    Attributes
    ----------
    train : Array of shape (n,)
        Row indices, in random order if a sample of the training rows is used.
    validation : Array of shape (v,)
        Row indices.
    """

    train: Int[Array, " n"]
    validation: Int[Array, " v"]


def split_count(n: int) -> int:
    """Return the number of random splits of n rows."""
    if n >= MIDDLE_ROWS:
        return 1
    return FOLD_COUNT if n < FEW_ROWS else MIDDLE_FOLDS


def random_splits(Y: Float[Array, "n t"], coded: bool, rng: RandomStream) -> list[Split]:
    """Return five folds of few rows, three of them of more, or one split of many.

    Each is stratified by class.
    """
    n = len(Y)
    if (count := split_count(n)) > 1:
        return random_folds(Y, coded, FOLD_COUNT, rng)[:count]
    # Samples are the first rows of `train`, so its order must be random.
    order = rng.permutation(n)
    held_index, learn = split_held_out(Y[order], coded)
    return [Split(order[learn], order[held_index])]


def random_folds(Y: Float[Array, "n t"], coded: bool, count: int, rng: RandomStream) -> list[Split]:
    """Return `count` folds, each held out once, stratified by class."""
    n = len(Y)
    order = rng.permutation(n)
    # 1. Order the positions by class. The sort is stable, so each class stays in random order.
    place = xp.arange(n)
    if coded:
        Z = Y[order]
        label = xp.cast(Z[:, 0] > 0, xp.int64) if Z.shape[1] == 1 else Z.argmax(axis=1)
        place = label.argsort(stable=True)
    # 2. Deal the positions out to the folds in turn: each fold gets its share of every class.
    number = xp.empty(n, xp.int64)
    number[place] = xp.arange(n) % min(count, n)
    return [Split(order[number != k], order[number == k]) for k in range(min(count, n))]
