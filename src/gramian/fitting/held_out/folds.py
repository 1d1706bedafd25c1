"""Held-out rows: folds, problems without them, and errors on them."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ..._messages.errors import TextError
from ...data import Targets, complement, gather_numbers, take_numbers
from ...problems import NystromProblem
from ...search import Split

HELD_OUT = 5
"""A single split holds out one row in five."""


def other_rows(n: int, index: Int[Tensor, " k"]) -> Int[Tensor, " _"]:
    """Return the numbers 0 .. n-1 that are not in `index`."""
    is_other = torch.ones(n, dtype=torch.bool)
    is_other[index] = False
    return is_other.nonzero()[:, 0]


def without(problem: NystromProblem, held: Int[Tensor, " r"]) -> NystromProblem:
    """Return the problem without some rows."""
    if len(held) == 0:
        return problem
    stays = other_rows(len(problem.targets), held)
    K = replace(problem.K, rows=complement(problem.K.rows, held))
    weights = None if problem.weights is None else take_numbers(problem.weights, stays)
    return NystromProblem(K, take_numbers(problem.targets, stays), problem.penalty, weights)


def error(
    problem: NystromProblem, held: Int[Tensor, " r"], coef: Float[Tensor, "m t"], coded: bool
) -> tuple[float, float]:
    """Return the error of a function on some rows, and its mean squared error.

    Both are weighted by the observation weights. The error is the mean squared error, or for class
    codes the share of rows with a wrong class. Cost: a kernel evaluation per row and landmark.
    """
    predicted = problem.K.at(held) @ coef.double()
    y = problem.targets[held].double()
    weight = y.new_ones(len(held)) if problem.weights is None else problem.weights[held]
    squared = _mean((predicted - y).square().mean(dim=1), weight)
    return (_mean(labels(predicted) != labels(y), weight) if coded else squared), squared


def _mean(values: Shaped[Tensor, " r"], weight: Float[Tensor, " r"]) -> float:
    return float((values * weight.double()).sum() / weight.sum(dtype=torch.float64))


def labels(values: Targets) -> Int[Tensor, " n"]:
    """Return the class of each row of codes, or of the values of a classifier."""
    values = gather_numbers(values)
    return (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(dim=1)


def folds(
    n: int, cv: int | None, rng: torch.Generator, classes: Int[Tensor, " n"] | None = None
) -> list[Split]:
    """Return the folds of a path: rows to fit, and the left-out rows for the error.

    Parameters
    ----------
    n : int
        Number of rows; at least two, and at least the number of folds.
    cv : int or None
        Number of folds; None to hold out a fifth of the rows once.
    rng : torch.Generator
    classes : Tensor of shape (n,), optional
        Classes; each part has the same share of each class, to one row.
    """
    count = HELD_OUT if cv is None else cv
    if n < (cv or 2):
        raise TextError(
            "there are {} rows, too few for {penalty='auto'} with {cv=}; give a penalty", n, cv
        )
    order = _mix_rows(n, rng, classes)
    # The order is class by class: every count-th row gives each part its share of each class.
    parts = [order[i::count].sort().values for i in range(count)]
    return [Split(other_rows(n, part), part) for part in (parts[:1] if cv is None else parts)]


def share(
    n: int, fraction: float, rng: torch.Generator, classes: Int[Tensor, " n"] | None = None
) -> Int[Tensor, " r"]:
    """Return the increasing numbers of a random fraction of the rows, to one row.

    Parameters
    ----------
    n : int
        Number of rows; at least two.
    fraction : float
        Fraction between 0 and 1; at least one row is drawn, and one remains.
    rng : torch.Generator
    classes : Tensor of shape (n,), optional
        Classes; the rows have the same share of each class, to one row, and one row of each
        remains.
    """
    count = min(max(round(fraction * n), 1), n - 1)
    order = _mix_rows(n, rng, classes)
    # 1. Take rows at equal distances from a random one: each class is hit in proportion.
    first = torch.rand((), generator=rng, dtype=torch.float64)
    held_rows = order[((torch.arange(count) + first) * n / count).long().clamp(max=n - 1)]
    if classes is None:
        return held_rows.sort().values
    # 2. Find classes that are held out whole.
    gone = classes[held_rows].bincount(minlength=int(classes.max()) + 1) == classes.bincount()
    # 3. `held_rows` is class by class: the last row of each of those classes stays.
    last = classes[held_rows].diff(append=torch.tensor([-1])) != 0
    return held_rows[~(gone[classes[held_rows]] & last)].sort().values


def _mix_rows(n: int, rng: torch.Generator, classes: Int[Tensor, " n"] | None) -> Int[Tensor, " n"]:
    """Return the row numbers in random order, one class after the other."""
    order = torch.randperm(n, generator=rng)
    if classes is not None:
        order = order[classes[order].argsort(stable=True)]
    return order
