"""Folds defined by a splitter of scikit-learn, or by pairs of training rows and test rows."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Iterator

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Int, RandomStream
from ..._messages.checks import is_integer
from ..._messages.errors import SETTING_FORM, ParameterError
from ...search import Split
from ...search.folds import random_folds
from ..inputs.training_data import TrainingData
from ..settings.checks import is_pairs, is_splitter, length
from .folds import labels


def count_of(cv: object, n: int) -> float:
    """Return the cost of the fits to all splits of n rows, in units of one fit to all rows.

    The training rows of a splitter are not known in advance, so each of its fits counts as one.
    """
    # Pairs are exact, as their training rows can be counted.
    if is_pairs(cv):
        return float(sum(length(train) for train, _ in cv)) / n
    assert is_splitter(cv)
    # Splitters of users raise errors of their own, without a hint.
    with _in_words(cv):
        return float(cv.get_n_splits(_placeholder(n)))


def folds_of(cv: object, data: TrainingData) -> list[Split]:
    """Return the folds that a splitter or pairs of row numbers define.

    A splitter receives row numbers in place of rows, and the targets, with classes as 0, 1, ...
    Pairs are row numbers of the user's data, in which some rows may have weight zero or be held out
    for early stopping.

    Raise ValueError if there is no fold, or a fold has no training or test row, a repeated
    row, or a number out of range.
    """
    n = len(data.rows)
    if is_splitter(cv):
        with _in_words(cv):
            pairs, given_count, stays = list(cv.split(_placeholder(n), _targets(data))), n, None
        if not pairs:
            raise ValueError("cv must yield at least one split, but it yields none")
    else:
        assert is_pairs(cv)
        # The user numbers all rows, of which some may not take part in the fit.
        pairs = list(cv)
        given_count = n if data.total_rows is None else data.total_rows
        stays = data.numbers
    folds = []
    for k, pair in enumerate(pairs):
        train, test = (
            _remaining_rows(_numbers(part, given_count, k, name), stays, k, name)
            for part, name in zip(pair, ("train", "test"), strict=True)
        )
        folds.append(Split(train, test))
    return folds


def search_splits(cv: object, data: TrainingData, rng: RandomStream) -> list[Split]:
    """Return the splits of a search, with rows to fit in random order.

    - `cv`: a number gives shuffled folds, each with the same share of each class.

    Raise ValueError if there are fewer rows than folds, or as in `folds_of`.
    """
    n = len(data.rows)
    if is_splitter(cv) or is_pairs(cv):
        return [
            # In random order, because the first training rows serve as centers and samples.
            Split(fold.train[rng.permutation(len(fold.train))], fold.validation)
            for fold in folds_of(cv, data)
        ]
    assert is_integer(cv)
    if cv > n:
        problem = f"folds need as many rows, but there are only {n}"
        raise ParameterError("cv", cv, problem, "give a smaller number", SETTING_FORM)
    return random_folds(xp.to_host(data.targets), data.coded, int(cv), rng)


def _remaining_rows(index: Array, stays: Array | None, split: int, part: str) -> Int[Array, " _"]:
    """Return the positions of rows among the rows that remain in a fit."""
    places = index
    if stays is not None:
        # A number after the last one gets the place len(stays), which the comparison cannot read.
        places = xp.find_insertions(stays, index).clip(max=len(stays) - 1)
        places = places[stays[places] == index]
    if len(places) == 0:
        raise ValueError(
            f"split {split} of cv has no row to {part} on: all its rows have weight zero, or are "
            "held out for early stopping"
        )
    return places


@contextlib.contextmanager
def _in_words(cv: object) -> Iterator[None]:
    """Context that adds the name of a splitter, and a hint about groups, to its errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"cv={reprlib.repr(cv)} cannot split these rows: {error}; if the splitter needs "
            "groups, give its pairs, cv=list(splitter.split(X, y, groups))"
        ) from error


def _placeholder(n: int) -> object:
    """Return an array of n rows that takes the memory of one."""
    # An expanded tensor has n rows of stride 0.
    return xp.expand(xp.zeros((1, 1), xp.float32), (n, 1))


def _targets(data: TrainingData) -> object:
    if data.coded:
        return xp.to_host(labels(data.targets))
    y = xp.to_host(data.targets)
    return y[:, 0] if y.shape[1] == 1 else y


def _numbers(given: object, n: int, split: int, part: str) -> Int[Array, " k"]:
    """Check the row numbers of one part of a split, and return them in increasing order."""
    what = f"split {split} of cv: rows to {part} on"
    try:
        index = np.array(given)
    except ValueError:  # lists of different lengths
        index = np.array(None)
    if index.dtype.kind not in "biuf":
        raise ValueError(f"{what} must be row numbers, not {reprlib.repr(given)}")
    if xp.size(index) == 0:
        raise ValueError(f"{what} are missing; each part needs at least one")
    # As row numbers, a mask would be rows 0 and 1 many times, without an error.
    if index.ndim != 1 or xp.is_floating(index) or index.dtype == xp.bool:
        raise ValueError(f"{what} must be a list of row numbers, not {reprlib.repr(given)}")
    index = xp.sort(xp.cast(index, xp.int64))
    if int(index[0]) < 0 or int(index[-1]) >= n:
        wrong = int(index[0]) if int(index[0]) < 0 else int(index[-1])
        raise ValueError(f"{what} must be between 0 and {n - 1}, not {wrong}")
    twice = index[1:][xp.diff(index) == 0]
    if len(twice):
        raise ValueError(f"{what} contain row {int(twice[0])} twice; use sample_weight instead")
    return index
