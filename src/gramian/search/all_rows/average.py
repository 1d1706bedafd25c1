"""Greedy selection of weights for the mean of several fits, by held-out loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import _arrays as xp
from ..._arrays import Array, Float

WEIGHT_STEPS = 20
"""Weights are multiples of 1/20: finer weights overfit the held-out rows."""

LEAST_WEIGHT = 0.1
"""Least weight of a member: a smaller one costs as much in every prediction."""

Loss = Callable[[Float[Array, "v t"]], float]


def average_fits(values: Sequence[Float[Array, "v t"]], loss: Loss) -> list[float]:
    """Choose the weights of several fits, with sum 1, by the held-out loss of the weighted mean.

    Starting from the best fit, add the fit that lowers the loss of the mean most, with repetition
    (Caruana, Niculescu-Mizil, Crew, Ksikes, *Ensemble selection from libraries of models*, ICML
    2004), and keep the best of these means.

    Parameters
    ----------
    values : sequence of Array of shape (v, t)
        Predictions of the held-out rows.
    loss : callable
        Loss of predictions.
    """
    alone = [loss(prediction) for prediction in values]
    first = min(range(len(values)), key=alone.__getitem__)
    counts = [0] * len(values)
    counts[first] = 1
    total, best, least_loss = xp.to_float64(values[first]), list(counts), alone[first]
    # The loop continues past a rise of the loss, because a later addition may lower it below the
    # least so far.
    for size in range(2, WEIGHT_STEPS + 1):
        tried = [loss((total + prediction) / size) for prediction in values]
        k = min(range(len(values)), key=tried.__getitem__)
        counts[k] += 1
        total = total + values[k]
        if tried[k] < least_loss:
            best, least_loss = list(counts), tried[k]
    large_counts = [c if c >= LEAST_WEIGHT * sum(best) else 0 for c in best]
    shares = [c / sum(large_counts) for c in large_counts]
    parts = [
        w * xp.to_float64(prediction) for w, prediction in zip(shares, values, strict=True) if w > 0
    ]
    # Dropping the members of small weight may lose the gain.
    if not loss(xp.stack(parts).sum(axis=0)) <= alone[first]:
        shares = [float(k == first) for k in range(len(values))]
    return shares
