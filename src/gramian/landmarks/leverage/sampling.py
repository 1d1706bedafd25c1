"""Random subsets with known probabilities of inclusion."""

from __future__ import annotations

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream

CERTAIN_PROBABILITY = 1 - 1e-9
"""Probabilities above count as one; rounding could otherwise draw such a row twice."""


def draw_distinct(n: int, size: int, rng: RandomStream) -> Int[Array, " size"]:
    """Draw `size` distinct integers below n in increasing order, each set equally likely.

    Cost: O(size log size) while size is well below n, O(n) otherwise.
    """
    # A large set would need many rounds of rejection, and a permutation costs O(n) at most.
    if 4 * size >= n:
        drawn: Array = xp.sort(rng.sample(n, size))
        return drawn
    drawn = xp.unique(rng.integers(n, size=(size,)))
    while len(drawn) < size:  # each pass leaves a quarter at most
        more = rng.integers(n, size=(2 * (size - len(drawn)),))
        new = more[~xp.isin(more, drawn)]
        # The first draws are kept, not the smallest numbers, which would bias the set.
        first_positions = np.sort(np.unique(new, return_index=True)[1])
        new = new[first_positions][: size - len(drawn)]
        drawn = xp.concat([drawn, new])
    return xp.sort(drawn)


def draw_thinned(n: int, probability: float, rng: RandomStream) -> Int[Array, " r"]:
    """Draw each integer below n with the same probability, in time proportional to the result."""
    if probability >= 1:
        return xp.arange(n)
    count = rng.binomial(n, probability)
    return draw_distinct(n, int(count), rng)


def bernoulli(probability: Float[Array, " n"], rng: RandomStream) -> Int[Array, " k"]:
    """Draw each position independently, with a probability of its own."""
    u = rng.random(len(probability), xp.float64)
    # The strict comparison draws no row of probability zero, because u may be zero.
    return xp.flatnonzero(u < probability)


def multinomial(
    weight: Float[Array, " n"], draws: int, rng: RandomStream
) -> tuple[Int[Array, " k"], Float[Array, " k"]]:
    """Draw positions with replacement, in proportion to `weight`.

    The number of positions is not limited.

    Returns
    -------
    positions, probability
        Each drawn position once, in increasing order, and its probability of being drawn at least
        once.
    """
    total = xp.to_float64(weight).cumsum(axis=0)
    u = rng.random(draws, xp.float64) * total[-1]
    # With `right`, rows of weight zero are never drawn. The clamp catches a draw rounded to the
    # total.
    drawn = xp.find_insertions(total, u, right=True).clip(max=len(weight) - 1)
    positions = xp.unique(drawn)
    share = (xp.to_float64(weight[positions]) / total[-1]).clip(max=1.0)
    # 1 - (1 - share)^draws would lose the digits of small shares.
    return positions, -xp.expm1(draws * xp.log1p(-share))


def proportional(scores: Float[Array, " n"], m: int) -> Float[Array, " n"]:
    """Return probabilities min(1, c · score) that sum to m.

    If fewer than m scores are positive, these get probability 1, and the others share the rest.
    """
    if m >= len(scores):
        return xp.ones_like(scores)
    # A tiny share for each row fills the sample up if too few scores are positive.
    scores = scores + max(float(scores.sum()) * 1e-12, 1e-300) / len(scores)
    ordered = xp.sort(scores, descending=True)
    # A row is certain if its share of the remaining sum, times the remaining draws, is 1 or more.
    # In decreasing order, certain rows come first, and each of them leaves less for the next.
    tails = xp.flip(xp.flip(ordered, 0).cumsum(axis=0), 0)  # sums from each score on
    remaining = m - xp.arange(len(scores), dtype=scores.dtype)  # for it and later scores
    certain = int((ordered * remaining >= tails)[:m].sum())
    # All draws are certain, and no probability remains for the others.
    if certain >= m:
        return xp.cast(scores >= ordered[m - 1], scores.dtype)
    return (scores * (remaining[certain] / tails[certain])).clip(max=1.0)


def systematic(probability: Float[Array, " n"], rng: RandomStream) -> Int[Array, " m"]:
    """Draw positions in increasing order, each with exactly its probability (Madow's sampling).

    The number of draws is the sum of the probabilities, which must be a whole number. (Drawing
    without replacement in proportion to scores gives as many, but with probabilities that are not
    proportional to them.)

    Rows are ordered by the integer part of the base-2 logarithm of their probabilities, and at
    random among equal ones. Rows of similar probability are then drawn as often as expected, up to
    one. In a fully random order, ten rows of three clusters, where each cluster is a third of the
    sum, miss a cluster in 5 % of the cases.
    """
    certain = probability > CERTAIN_PROBABILITY
    uncertain = xp.flatnonzero((~certain) & (probability > 0))
    u = rng.random(len(uncertain), xp.float64)
    uncertain = uncertain[
        (xp.floor(xp.log2(xp.to_float64(probability[uncertain]))) + u).argsort(stable=True)
    ]
    total = probability[uncertain].cumsum(axis=0)
    count = round(float(total[-1])) if len(uncertain) else 0
    if count == 0:
        return xp.flatnonzero(certain)
    u = rng.random(1, xp.float64) + xp.arange(count)
    # The sum is scaled to the whole number that it differs from by rounding.
    hit = xp.find_insertions(total * (count / total[-1]), u, right=True)
    hit = hit.clip(max=len(uncertain) - 1)
    return xp.sort(xp.concat([xp.flatnonzero(certain), uncertain[hit]]))
