"""Prediction sets of classes, from probabilities, and from scores of true classes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _arrays as xp
from .._arrays import Array, Bool, Float
from .parts import CalibratedPart


def prediction_sets(
    parts: Sequence[CalibratedPart], chances: Sequence[Float[Array, "n k"]], level: float
) -> Bool[Array, "n k"]:
    """Return a mask of the classes in the set of each row, which is never empty.

    - `parts`: parts with scores of shape (c, 1), see `set_scores`.
    - `chances`: probabilities by the function of each part.

    Notes
    -----
    A class is in the set if its score, see `set_scores`, is not above the quantile of the scores of
    the true classes of calibration rows [1]_. The likeliest class is always in the set. Unlike
    [1]_ there is no randomisation, so that a repeated call gives the same set. With several parts,
    a class is in the set if its score is above the scores of fewer than ⌈(n + 1) level⌉ of all
    calibration rows, each by its part.

    References
    ----------
    .. [1] Romano, Sesia, Candes, *Classification with valid and adaptive coverage*, 2020.
    """
    counts_below = xp.zeros(chances[0].shape, xp.int64)
    for part, p in zip(parts, chances, strict=True):
        # Each part counts its calibration scores below the score of the class.
        counts_below += xp.find_insertions(xp.contiguous(part.scores[:, 0]), _class_scores(p))
    count = sum(len(part.scores) for part in parts)
    is_in_set = counts_below < math.ceil(level * (count + 1) - 1e-9)
    # An empty set would be of no use: the likeliest class by the mean of the parts joins it.
    mean = xp.stack([xp.to_float64(p) for p in chances]).mean(axis=0)
    is_in_set[xp.arange(len(is_in_set)), mean.argmax(axis=1)] = True
    return is_in_set


def set_scores(chances: Float[Array, "c k"], index: Array) -> Float[Array, "c 1"]:
    """Return the probability of all classes likelier than the true class, plus half of its own.

    Romano, Sesia and Candes add a random share of its own probability, uniform from 0 to 1; the
    share is one half in this library. With the full probability, the last class of each row would
    have the score 1: for two classes with more errors than the level allows, all sets would have
    both.

    - `index`: of shape (c,); indices of the true classes.
    """
    return xp.take_along(_class_scores(chances), index[:, None], axis=1)


def _class_scores(chances: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Return the score that each class would have if it were the true class."""
    # Stable: classes of equal probability keep their order, and repeated calls agree.
    ordered, order = xp.sort_with_order(xp.to_float64(chances), 1, descending=True)
    total = ordered.cumsum(axis=1) - ordered / 2
    return xp.put_along(xp.empty_like(total), order, total, 1)
