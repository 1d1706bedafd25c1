"""Random rows of any source, divided into rows to learn from and held-out rows."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from ..data import RowSource
from ..paths.sample import Sample

MOST_HELD = 2000
"""Most held-out rows: errors are then accurate to a few percent."""

HELD_SHARE = 5
"""One row in this many is held out."""


def draw_sample(
    rows: RowSource,
    targets: Float[Array, "n t"],
    weights: Float[Array, " n"] | None,
    most: int,
    *,
    rng: RandomStream,
    coded: bool = False,
) -> Sample:
    """Draw up to `most` random rows, a fifth of them held out, at most 2,000.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    coded : bool, default=False
        Whether targets are codes of classes: each class then has its share of the held-out rows.
    """
    index = rng.sample(len(rows), most)
    held_index, learn = split_held_out(targets[index], coded)
    # Files are read in increasing order; afterwards the rows return to their random order.
    ordered, order = xp.sort_with_order(index)
    X = rows.take(ordered)
    X = xp.to_dense(X) if rows.sparse else X
    X = X[order.argsort(stable=True)]
    Y, w = targets[index], None if weights is None else weights[index]
    return Sample(
        X[learn], Y[learn], X[held_index], Y[held_index],
        None if w is None else w[learn], None if w is None else w[held_index],
    )  # fmt: skip


def split_held_out(targets: Float[Array, "n t"], coded: bool) -> tuple[Array, Array]:
    """Split rows in random order into positions of held-out rows and of other rows."""
    n = len(targets)
    count = min(MOST_HELD, n // HELD_SHARE)
    # Every `step`-th row of those sorted by class: each class has its share of held-out rows.
    # Within a class the order stays random, as the sort is stable.
    place = xp.arange(n)
    if coded:
        label = (
            xp.cast(targets[:, 0] > 0, xp.int64)
            if targets.shape[1] == 1
            else targets.argmax(axis=1)
        )
        place = label.argsort(stable=True)
    step = max(1, n // max(count, 1))
    is_held_out = xp.zeros(n, xp.bool)
    is_held_out[place[xp.arange(count) * step]] = True
    return xp.flatnonzero(is_held_out), xp.flatnonzero(~is_held_out)
