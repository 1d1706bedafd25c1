"""Held-out rows: folds, problems without them, and errors on them."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ..data import Complement
from ..problems import NystromProblem

HELD_OUT = 5
"""One row in so many is held out if there is a single split."""


def without(problem: NystromProblem, held: Int[Tensor, " r"]) -> NystromProblem:
    """Return the problem on the other rows."""
    stays = torch.ones(len(problem.targets), dtype=torch.bool)
    stays[held] = False
    K = replace(problem.K, rows=Complement(problem.K.rows, held))
    weights = None if problem.weights is None else problem.weights[stays]
    return NystromProblem(K, problem.targets[stays], problem.penalty, weights)


def fits_per_level(cv: int | None) -> float:
    """Return the fits of one level of a path, in units of one fit to all rows."""
    return 1 - 1 / HELD_OUT if cv is None else cv - 1.0


def error(
    problem: NystromProblem, held: Int[Tensor, " r"], coef: Float[Tensor, "m t"], coded: bool
) -> tuple[float, float]:
    """Return the error of a function on some rows, and its mean squared error.

    Both are weighted by the observation weights. The first one is the second, or for class codes
    the share of the rows whose class is wrong. Cost: a kernel evaluation for each and landmark.
    """
    predicted = problem.K[held] @ coef.double()
    y = problem.targets[held].double()
    weight = y.new_ones(len(held)) if problem.weights is None else problem.weights[held]
    squared = _mean((predicted - y).square().mean(dim=1), weight)
    return (_mean(labels(predicted) != labels(y), weight) if coded else squared), squared


def _mean(values: Shaped[Tensor, " r"], weight: Float[Tensor, " r"]) -> float:
    return float((values * weight.double()).sum() / weight.sum(dtype=torch.float64))


def labels(values: Float[Tensor, "n t"]) -> Int[Tensor, " n"]:
    """Return the class of each row of codes, or of the values of a classifier."""
    return (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(dim=1)


def folds(
    n: int, cv: int | None, rng: torch.Generator, classes: Int[Tensor, " n"] | None = None
) -> list[Int[Tensor, " _"]]:
    """Return the row numbers, increasing, that each of the fits leaves out.

    Parameters
    ----------
    n : int
        Rows; at least two, and as many as folds.
    cv : int or None
        Folds; None for a single fifth of the rows.
    rng : torch.Generator
    classes : Tensor of shape (n,), optional
        Each part has the same share of each, to one row.
    """
    count = HELD_OUT if cv is None else cv
    if n < (cv or 2):
        raise ValueError(
            f"there are {n} rows, too few for penalty='auto' with cv={cv!r}; give a penalty"
        )
    order = torch.randperm(n, generator=rng)
    if classes is not None:
        order = order[classes[order].argsort(stable=True)]
    parts = [order[i::count].sort().values for i in range(count)]
    return parts[:1] if cv is None else parts
