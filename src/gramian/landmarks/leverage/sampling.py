"""Random subsets with known probabilities of inclusion."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

CERTAIN_PROBABILITY = 1 - 1e-9
"""Probabilities above count as one; rounding could otherwise draw such a row twice."""


def draw_distinct(n: int, size: int, rng: torch.Generator) -> Int[Tensor, " size"]:
    """Draw `size` distinct numbers below n in increasing order, each set equally likely.

    Cost: O(size log size) while size is well below n, O(n) otherwise.
    """
    # A large set would need many rounds of rejection, and a permutation costs O(n) at most.
    if 4 * size >= n:
        drawn: Tensor = torch.randperm(n, generator=rng)[:size].sort().values
        return drawn
    drawn = torch.randint(n, (size,), generator=rng).unique()
    while len(drawn) < size:  # each pass leaves a quarter at most
        more = torch.randint(n, (2 * (size - len(drawn)),), generator=rng)
        new = more[~torch.isin(more, drawn)]
        # The first draws are kept, not the smallest numbers, which would bias the set.
        new = new[_first_positions(new)][: size - len(drawn)]
        drawn = torch.cat([drawn, new])
    return drawn.sort().values


def _first_positions(values: Tensor) -> Tensor:
    """Return the positions at which a value occurs for the first time, in order."""
    _, inverse = values.unique(return_inverse=True)
    first = torch.full((int(inverse.max()) + 1 if len(values) else 0,), len(values))
    first = first.scatter_reduce(0, inverse, torch.arange(len(values)), "amin")
    return first.sort().values


def draw_thinned(n: int, probability: float, rng: torch.Generator) -> Int[Tensor, " r"]:
    """Draw each number below n with the same probability, in time proportional to their count."""
    if probability >= 1:
        return torch.arange(n)
    p = torch.tensor(probability, dtype=torch.float64)
    count = torch.binomial(torch.tensor(float(n), dtype=torch.float64), p, generator=rng)
    return draw_distinct(n, int(count), rng)


def bernoulli(probability: Float[Tensor, " n"], rng: torch.Generator) -> Int[Tensor, " k"]:
    """Draw each position independently."""
    u = torch.rand(len(probability), generator=rng, dtype=torch.float64)
    # The strict comparison draws no row of probability zero, because u may be zero.
    return (u < probability).nonzero()[:, 0]


def multinomial(
    weight: Float[Tensor, " n"], draws: int, rng: torch.Generator
) -> tuple[Int[Tensor, " k"], Float[Tensor, " k"]]:
    """Draw positions with replacement, in proportion to `weight`.

    `torch.multinomial` supports at most 2²⁴ positions.

    Returns
    -------
    positions, probability
        Each drawn position once, in increasing order, and its probability of being drawn at least
        once.
    """
    total = weight.double().cumsum(0)
    u = torch.rand(draws, generator=rng, dtype=torch.float64) * total[-1]
    # With `right`, rows of weight zero are never drawn. The clamp catches a draw rounded to the
    # total.
    drawn = torch.searchsorted(total, u, right=True).clamp(max=len(weight) - 1)
    positions = drawn.unique()
    share = (weight[positions].double() / total[-1]).clamp(max=1.0)
    # 1 - (1 - share)^draws would lose the digits of small shares.
    return positions, -torch.expm1(draws * torch.log1p(-share))


def proportional(scores: Float[Tensor, " n"], m: int) -> Float[Tensor, " n"]:
    """Return probabilities min(1, c · score) that sum to m.

    If fewer than m scores are positive, these get probability 1, and the others share the rest.
    """
    if m >= len(scores):
        return torch.ones_like(scores)
    # A tiny share for each row fills the sample up if too few scores are positive.
    scores = scores + max(float(scores.sum()) * 1e-12, 1e-300) / len(scores)
    ordered = scores.sort(descending=True).values
    tails = ordered.flip(0).cumsum(0).flip(0)  # sums from each score on
    remaining = m - torch.arange(len(scores), dtype=scores.dtype)  # for it and later scores
    certain = int((ordered * remaining >= tails)[:m].sum())
    # All draws are certain, and no probability remains for the others.
    if certain >= m:
        return (scores >= ordered[m - 1]).to(scores.dtype)
    return (scores * (remaining[certain] / tails[certain])).clamp(max=1.0)


def systematic(probability: Float[Tensor, " n"], rng: torch.Generator) -> Int[Tensor, " m"]:
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
    uncertain = ((~certain) & (probability > 0)).nonzero()[:, 0]
    u = torch.rand(len(uncertain), generator=rng, dtype=torch.float64)
    uncertain = uncertain[(probability[uncertain].double().log2().floor() + u).argsort()]
    total = probability[uncertain].cumsum(0)
    count = round(float(total[-1])) if len(uncertain) else 0
    if count == 0:
        return certain.nonzero()[:, 0]
    u = torch.rand(1, generator=rng, dtype=torch.float64) + torch.arange(count)
    # The sum is scaled to the whole number that it differs from by rounding.
    hit = torch.searchsorted(total * (count / total[-1]), u, right=True)
    hit = hit.clamp(max=len(uncertain) - 1)
    return torch.cat([certain.nonzero()[:, 0], uncertain[hit]]).sort().values
