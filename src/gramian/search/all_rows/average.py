"""averaged: weights of fits whose mean predicts held-out rows best, by greedy selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

STEPS = 20
"""Weights are multiples of a twentieth: finer ones fit the held-out rows."""

LEAST = 0.1
"""A member of less weight is left out: it costs as much as the others in every prediction."""

Loss = Callable[[Float[Tensor, "v t"]], float]


def averaged(values: Sequence[Float[Tensor, "v t"]], loss: Loss) -> list[float]:
    """Return the weights, of sum 1, of a mean that `loss` is small for.

    Starting from the best alone, the one is added that lowers the loss of the mean most, with
    repetition (Caruana, Niculescu-Mizil, Crew, Ksikes, *Ensemble selection from libraries of
    models*, ICML 2004), and the best of these means is kept.

    Parameters
    ----------
    values : sequence of Tensor of shape (v, t)
        Predictions of the held-out rows.
    loss : callable
        Of predictions.
    """
    alone = [loss(each) for each in values]
    first = min(range(len(values)), key=alone.__getitem__)
    counts = [0] * len(values)
    counts[first] = 1
    total, best, least = values[first].double(), list(counts), alone[first]
    for size in range(2, STEPS + 1):
        tried = [loss((total + each) / size) for each in values]
        k = min(range(len(values)), key=tried.__getitem__)
        counts[k] += 1
        total = total + values[k]
        if tried[k] < least:
            best, least = list(counts), tried[k]
    kept = [c if c >= LEAST * sum(best) else 0 for c in best]
    shares = [c / sum(kept) for c in kept]
    parts = [w * each.double() for w, each in zip(shares, values, strict=True) if w > 0]
    if not loss(torch.stack(parts).sum(dim=0)) <= alone[first]:  # those left out carried it
        shares = [float(k == first) for k in range(len(values))]
    return shares
