"""Folds of a path of penalties, problems without the held-out rows, and errors on these rows."""

from __future__ import annotations

from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream, Shaped
from ..._messages.errors import TextError
from ...data import Targets, as_columns, complement
from ...problems import NystromProblem
from ...search import Split

HELD_OUT = 5
"""A single split holds out one row in five."""


def other_rows(n: int, index: Int[Array, " k"]) -> Int[Array, " _"]:
    """Return the indices 0 .. n-1 that are not in `index`."""
    is_other = xp.ones(n, xp.bool)
    is_other[index] = False
    return xp.flatnonzero(is_other)


def without(problem: NystromProblem, held: Int[Array, " r"]) -> NystromProblem:
    """Return the problem without the held-out rows."""
    if len(held) == 0:
        return problem
    stays = other_rows(len(problem.targets), held)
    K = replace(problem.K, rows=complement(problem.K.rows, held))
    weights = None if problem.weights is None else as_columns(problem.weights).part(stays)
    return NystromProblem(K, as_columns(problem.targets).part(stays), problem.penalty, weights)


def error(
    problem: NystromProblem, held: Int[Array, " r"], coef: Float[Array, "m t"], coded: bool
) -> tuple[float, float]:
    """Return the error of a function on some rows, and its mean squared error.

    Both are weighted by the observation weights. The error is the mean squared error, or for class
    codes the share of rows with a wrong class. Cost: a kernel evaluation per row and landmark.
    """
    predicted = problem.K.at(held) @ xp.to_float64(coef)
    y = xp.to_float64(problem.targets[held])
    weight = xp.ones(len(held), like=y) if problem.weights is None else problem.weights[held]
    squared = _mean(xp.square(predicted - y).mean(axis=1), weight)
    return (_mean(labels(predicted) != labels(y), weight) if coded else squared), squared


def _mean(values: Shaped[Array, " r"], weight: Float[Array, " r"]) -> float:
    return float((values * xp.to_float64(weight)).sum() / xp.sum_float64(weight))


def labels(values: Targets) -> Int[Array, " n"]:
    """Return the index of the class of each row, from codes or from decision values."""
    values = as_columns(values).gather()
    return xp.cast(values[:, 0] > 0, xp.int64) if values.shape[1] == 1 else values.argmax(axis=1)


def folds(
    n: int, cv: int | None, rng: RandomStream, classes: Int[Array, " n"] | None = None
) -> list[Split]:
    """Return the folds of a path: for each fit, its training rows and the rows that it leaves out.

    - `n`: number of rows; at least two, and at least the number of folds.
    - `cv`: number of folds; None to hold out a fifth of the rows once.
    - `classes`: classes; each part has the same share of each class, up to one row.
    """
    count = HELD_OUT if cv is None else cv
    if n < (cv or 2):
        raise TextError(
            "there are {} rows, too few for {penalty='auto'} with {cv=}; give a penalty", n, cv
        )
    order = _mix_rows(n, rng, classes)
    # The order is class by class: every count-th row gives each part its share of each class.
    parts = [xp.sort(order[i::count]) for i in range(count)]
    return [Split(other_rows(n, part), part) for part in (parts[:1] if cv is None else parts)]


def share(
    n: int, fraction: float, rng: RandomStream, classes: Int[Array, " n"] | None = None
) -> Int[Array, " r"]:
    """Draw a fraction of the rows, up to rounding, and return their indices in increasing order.

    - `n`: number of rows; at least two.
    - `fraction`: fraction between 0 and 1; at least one row is drawn, and one remains.
    - `classes`: classes; each class has the same share of its rows drawn, up to one row, and one
      row of each remains.
    """
    count = min(max(round(fraction * n), 1), n - 1)
    order = _mix_rows(n, rng, classes)
    # 1. Take rows at equal distances from a random one: each class is hit in proportion.
    first = rng.random((), xp.float64)
    held_rows = order[xp.cast((xp.arange(count) + first) * n / count, xp.int64).clip(max=n - 1)]
    if classes is None:
        return xp.sort(held_rows)
    # 2. Find classes that are held out whole.
    gone = xp.bincount(classes[held_rows], minlength=int(classes.max()) + 1) == xp.bincount(classes)
    # 3. `held_rows` is class by class: the last row of each of those classes stays.
    after = xp.array([-1], xp.int64)
    last = xp.diff(xp.concat([classes[held_rows], after])) != 0
    return xp.sort(held_rows[~(gone[classes[held_rows]] & last)])


def _mix_rows(n: int, rng: RandomStream, classes: Int[Array, " n"] | None) -> Int[Array, " n"]:
    """Return the row indices in random order, one class after the other."""
    order = rng.permutation(n)
    if classes is not None:
        order = order[classes[order].argsort(stable=True)]
    return order
