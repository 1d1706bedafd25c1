"""Ranks: positions of marked rows among all rows, by a value, in a mergeable histogram."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Bool, Float, Int

MOST_BINS = 1 << 18
"""Most bins: 6 MB."""

ALL_BINS = 1 << 62
"""Unlimited bins: ranks of local rows are exact."""

_MAGNITUDE_BITS = (1 << 63) - 1


@dataclass(eq=False)
class Ranks:
    """Numbers of marked and unmarked rows in bins of a value.

    A bin contains the float64 numbers with the same leading bits, and bins are ordered like these
    bits. Each distinct value has its own bin while there are no more than `MOST_BINS` bins; beyond,
    the fewest possible last bits are dropped. Bins are therefore narrow where values are small or
    close together, whatever their range, and results for the same parts have the same bits.

    - `dropped`: number of last bits that bins leave out.
    - `bins`: leading bits of the bins, increasing.
    - `counts`: numbers of unmarked and of marked rows.
    """

    dropped: int
    bins: Int[Array, " b"]
    counts: Int[Array, "b 2"]

    @classmethod
    def of(
        cls, values: Float[Array, " n"], marked: Bool[Array, " n"], most: int = MOST_BINS
    ) -> Ranks:
        """Return the bins of some rows, at most `most` and at least two.

        Raise ValueError if a value is NaN, which has no place in any order.
        """
        if bool(xp.isnan(values).any()):
            raise ValueError("predictions hold NaN: they cannot be ordered")
        bins, place = xp.unique(_order_integers(xp.to_float64(values)), return_inverse=True)
        # Two counters for each bin in one pass: even for unmarked rows, odd for marked ones.
        counts = xp.bincount(2 * place + marked, minlength=2 * len(bins)).reshape(-1, 2)
        return cls(0, bins, counts)._within(most)

    def merge(self, other: Ranks, most: int = MOST_BINS) -> Ranks:
        """Return the bins of the rows of both ranks."""
        # Bits are dropped until the bins fit, so that the error depends on the data and not on the
        # order of the merges.
        dropped = max(self.dropped, other.dropped)
        # Bins are comparable only if both have dropped the same bits.
        a, b = (ranks._coarser(dropped - ranks.dropped) for ranks in (self, other))
        bins, place = xp.unique(xp.concat([a.bins, b.bins]), return_inverse=True)
        counts = xp.zeros((len(bins), 2), like=a.counts)
        xp.add_at(counts, place, xp.concat([a.counts, b.counts]))
        return Ranks(dropped, bins, counts)._within(most)

    @property
    def has_both(self) -> bool:
        """Whether some rows are marked, and others are not."""
        return bool((self.counts.sum(axis=0) > 0).all())

    @property
    def area_error(self) -> float:
        """Largest error of the area under the ROC curve if bins take the place of values.

        Pairs of a marked and another row in one bin count half: the error is at most half their
        share of all such pairs, and zero while each distinct value has its bin.
        """
        unmarked, marked = xp.to_float64(self.counts).T
        if not self.dropped:
            return 0.0
        return float((marked * unmarked).sum() / (marked.sum() * unmarked.sum()) / 2)

    def shares(self, parts: int) -> list[float]:
        """Return the share of marked rows in each of `parts` equal parts of the rows, by value.

        Parts are as long as in `numpy.array_split`; empty parts are left out. If a cut divides a
        bin, its rows count on both sides in proportion: while each value has its own bin, this
        affects only rows with equal values.
        """
        rows, marked = (
            part.cumsum(axis=0) for part in (self.counts.sum(axis=1), self.counts[:, 1])
        )
        n = int(rows[-1])
        # As `numpy.array_split` divides: the first parts get the rows that remain.
        sizes = [n // parts + (i < n % parts) for i in range(parts)]
        cuts = [sum(sizes[:i]) for i in range(parts + 1)]
        up_to = [_between(rows, marked, cut) for cut in cuts]
        return [
            (high - low) / size
            for low, high, size in zip(up_to, up_to[1:], sizes, strict=False)
            if size
        ]

    def _within(self, most: int) -> Ranks:
        """Return ranks of at most `most` bins, with the fewest bits dropped."""
        if len(self.bins) <= most:
            return self
        # Neighbours merge once all bits in which they differ are dropped: with fewer than `most`
        # boundaries left, there are at most `most` bins.
        apart = self.bins[1:] ^ self.bins[:-1]
        more = next(s for s in range(1, 64) if int((apart >> s != 0).sum()) < most)
        return self._coarser(more)

    def _coarser(self, more: int) -> Ranks:
        if more == 0:
            return self
        # Shifted bins stay sorted, so that equal ones are neighbours.
        bins, place = xp.unique(self.bins >> more, return_inverse=True)
        counts = xp.add_at(xp.zeros((len(bins), 2), like=self.counts), place, self.counts)
        return Ranks(self.dropped + more, bins, counts)


def _order_integers(values: Float[Array, " n"]) -> Int[Array, " n"]:
    """Return integers in the order of float64 numbers: their bits, inverted for negative ones.

    Minus zero is zero.
    """
    # Adding zero turns minus zero into zero, which has other bits.
    bits = xp.contiguous(values + 0.0).view(xp.int64)
    # The shift copies the sign to all bits: negative numbers are inverted, as their bits increase
    # with their size.
    return bits ^ ((bits >> 63) & _MAGNITUDE_BITS)


def _between(rows: Int[Array, " b"], marked: Int[Array, " b"], cut: int) -> float:
    """Return the number of marked rows among the first `cut` rows, from cumulative counts."""
    place = int(xp.find_insertions(rows, cut))  # the bin that the cut is in, or at the end of
    before = (int(rows[place - 1]), int(marked[place - 1])) if place else (0, 0)
    share = (cut - before[0]) / (int(rows[place]) - before[0])
    return before[1] + share * (int(marked[place]) - before[1])
