"""Sampled Shapley values of any function of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array, Float, RandomStream

BATCH_NUMBERS = 1 << 22
"""Numbers of the rows that are predicted at a time."""


def sampled_values(
    function: Callable[[Array], Array],
    group_of: Array,
    x: Float[Array, "n d"],
    background: Float[Array, "b d"],
    pairs: int,
    rng: RandomStream,
) -> tuple[Float[Array, "n g t"], Float[Array, "n g t"]]:
    """Return estimates of the Shapley values of each group of features, and their errors.

    Parameters
    ----------
    function : callable
        From rows, (k, d), to values, (k, t).
    group_of : ndarray of shape (d,)
        The group of each feature.
    x, background : ndarray of shape (n, d) and (b, d)
    pairs : int
        Pairs of permutations for each row of the background.
    rng : RandomStream

    Returns
    -------
    values, standard_errors : ndarray of shape (n, g, t)
        Errors are NaN for a single pair.

    Notes
    -----
    A permutation changes the groups of a row of the background to the values of `x`, one after
    the other; a Shapley value is the mean change of the value at its group [1]_. Each permutation
    comes with its reverse [2]_, which is exact for sums of functions of up to two groups. The
    values of a row add up to its prediction minus the mean over the background.

    Cost: predictions for 2 (g + 1) b times `pairs` rows, for each row of `x`.

    References
    ----------
    .. [1] Castro et al., *Polynomial calculation of the Shapley value based on sampling*, Computers
       and Operations Research 36, 2009.
    .. [2] Mitchell et al., *Sampling permutations for Shapley value estimation*, JMLR 23, 2022.
    """
    groups = int(group_of.max()) + 1
    rows_of_pair = 2 * (groups + 1)
    size = max(1, BATCH_NUMBERS // (rows_of_pair * x.shape[1]))
    sums: Any = 0.0
    squares: Any = 0.0
    for _ in range(pairs):
        orders = np.argsort(rng.random((len(background), groups)), axis=1)
        total = np.concatenate([
            _changes(function, group_of, x, background[k : k + size], orders[k : k + size])
            for k in range(0, len(background), size)
        ], axis=1)  # fmt: skip
        sums, squares = sums + total, squares + total**2
    # Each row of the background is used: its own variation is no error.
    means = sums / pairs
    variance = np.maximum(squares / pairs - means**2, 0) / max(pairs - 1, 1)
    errors = np.sqrt(variance.mean(axis=1) / len(background))
    return means.mean(axis=1), errors if pairs > 1 else np.full_like(errors, np.nan)


def _changes(
    function: Callable[[Array], Array],
    group_of: Array,
    x: Float[Array, "n d"],
    background: Float[Array, "b d"],
    orders: Array,
) -> Float[Array, "n b g t"]:
    """Return the mean change at each group, of a permutation and its reverse."""
    b, groups = orders.shape
    rank = np.argsort(orders, axis=1)
    # Of permutation and reverse: whether a group is the one of x after each number of steps.
    steps = np.arange(groups + 1)[:, None]
    ranks = np.stack([rank, groups - 1 - rank], axis=1)[:, :, None]
    is_own = (ranks < steps)[..., group_of]
    out = []
    for row in x:
        composed = np.where(is_own, row, background[:, None, None])
        values = function(composed.reshape(-1, x.shape[1])).reshape(b, 2, groups + 1, -1)
        changes = np.diff(values, axis=2)
        of_group = np.take_along_axis(changes, ranks[:, :, 0, :, None], axis=2)
        out.append(of_group.mean(axis=1))
    return np.stack(out)
