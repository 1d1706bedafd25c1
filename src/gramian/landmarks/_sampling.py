"""Random subsets with known probabilities of inclusion."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

CERTAIN_PROBABILITY = 1 - 1e-9
"""Probabilities above are one: rounding could otherwise draw such a row twice."""


def distinct(n: int, size: int, rng: torch.Generator) -> Int[Tensor, " size"]:
    """Return `size` distinct numbers below n in increasing order, each set equally likely.

    Cost: O(size log size) while size is well below n, O(n) otherwise.
    """
    if 4 * size >= n:
        drawn: Tensor = torch.randperm(n, generator=rng)[:size].sort().values
        return drawn
    drawn = torch.randint(n, (size,), generator=rng).unique()
    while len(drawn) < size:  # a quarter at most is left each time
        more = torch.randint(n, (2 * (size - len(drawn)),), generator=rng)
        new = more[~torch.isin(more, drawn)]
        new = new[_first_of_each(new)][: size - len(drawn)]
        drawn = torch.cat([drawn, new])
    return drawn.sort().values


def _first_of_each(values: Tensor) -> Tensor:
    """Return the positions at which a value occurs for the first time, in order."""
    _, inverse = values.unique(return_inverse=True)
    first = torch.full((int(inverse.max()) + 1 if len(values) else 0,), len(values))
    first = first.scatter_reduce(0, inverse, torch.arange(len(values)), "amin")
    return first.sort().values


def thinned(n: int, probability: float, rng: torch.Generator) -> Int[Tensor, " r"]:
    """Return numbers below n, each kept with the same probability, in the time of their count."""
    if probability >= 1:
        return torch.arange(n)
    p = torch.tensor(probability, dtype=torch.float64)
    count = torch.binomial(torch.tensor(float(n), dtype=torch.float64), p, generator=rng)
    return distinct(n, int(count), rng)


def bernoulli(probability: Float[Tensor, " n"], rng: torch.Generator) -> Int[Tensor, " k"]:
    """Return the positions that are kept, each on its own."""
    u = torch.rand(len(probability), generator=rng, dtype=torch.float64)
    return (u < probability).nonzero()[:, 0]


def multinomial(
    weight: Float[Tensor, " n"], draws: int, rng: torch.Generator
) -> tuple[Int[Tensor, " k"], Float[Tensor, " k"]]:
    """Draw positions in proportion to `weight`, with replacement.

    `torch.multinomial` ends at 2²⁴ positions.

    Returns
    -------
    positions, probability
        Each position once, in increasing order, and how likely it was to be drawn at all.
    """
    total = weight.double().cumsum(0)
    u = torch.rand(draws, generator=rng, dtype=torch.float64) * total[-1]
    drawn = torch.searchsorted(total, u, right=True).clamp(max=len(weight) - 1)
    positions = drawn.unique()
    share = (weight[positions].double() / total[-1]).clamp(max=1.0)
    return positions, -torch.expm1(draws * torch.log1p(-share))


def proportional(scores: Float[Tensor, " n"], m: int) -> Float[Tensor, " n"]:
    """Return probabilities min(1, c · score) that sum to m.

    Where fewer than m scores are positive, those are certain and the others share the rest.
    """
    if m >= len(scores):
        return torch.ones_like(scores)
    scores = scores + max(float(scores.sum()) * 1e-12, 1e-300) / len(scores)
    ordered = scores.sort(descending=True).values
    rest = ordered.flip(0).cumsum(0).flip(0)  # the sum from each score on
    left = m - torch.arange(len(scores), dtype=scores.dtype)  # for it and those after it
    certain = int((ordered * left >= rest)[:m].sum())
    if certain >= m:
        return (scores >= ordered[m - 1]).to(scores.dtype)
    return (scores * (left[certain] / rest[certain])).clamp(max=1.0)


def systematic(probability: Float[Tensor, " n"], rng: torch.Generator) -> Int[Tensor, " m"]:
    """Return positions in increasing order; each is included with exactly its probability.

    As many as the probabilities sum to, which must be a whole number: Madow's systematic sampling.
    (Drawing without replacement in proportion to scores gives as many, but with probabilities that
    are not proportional to them.)

    The order is random among rows whose probabilities have the same whole part of the logarithm to
    base 2, and those come before larger ones: so rows of about one probability are drawn as often
    as they should be, up to one. Ten rows of three clusters, where each cluster is a third of the
    sum, miss one in 5 % of the cases if the order is all random.
    """
    certain = probability > CERTAIN_PROBABILITY
    rest = ((~certain) & (probability > 0)).nonzero()[:, 0]
    u = torch.rand(len(rest), generator=rng, dtype=torch.float64)
    rest = rest[(probability[rest].double().log2().floor() + u).argsort()]
    total = probability[rest].cumsum(0)
    count = round(float(total[-1])) if len(rest) else 0
    if count == 0:
        return certain.nonzero()[:, 0]
    u = torch.rand(1, generator=rng, dtype=torch.float64) + torch.arange(count)
    hit = torch.searchsorted(total * (count / total[-1]), u, right=True)
    hit = hit.clamp(max=len(rest) - 1)
    return torch.cat([certain.nonzero()[:, 0], rest[hit]]).sort().values
