"""with_all_rows: the last fit of a search, to more rows than it has worked with."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..data import Complement, RowSource, as_rows
from ..operators import KernelOperator
from ..paths.sample import squared_loss
from ..problems import NystromProblem
from ..search import Member, Search
from ..search.full_fit import MEMORY
from ..search.refit import importances, iterated
from ..solvers import Falkon, deadline, max_iterations, solve
from .held_rows import MEMORY_SHARE, in_memory

logger = logging.getLogger("gramian")

ALL_ROWS = 100_000
"""Rows up to which all may be centers."""

HELD_BYTES = 1 << 32
"""Bytes that all rows may take in memory."""

LANDMARKS = (10_000, 5_000, 2_000)
"""Numbers of landmarks beyond, as the time that is left allows."""

FALKON_ITERATIONS = 15
FALKON_RATE = 4e8
"""Kernel evaluations per second that FALKON is planned with: a slow core."""


def with_all_rows(
    search: Search,
    members: list[Member],
    rows: RowSource,
    targets: Float[Tensor, "n t"],
    weights: Float[Tensor, " n"] | None,
    index: Int[Tensor, " s"],
) -> list[Member]:
    """Return the members fitted to all rows, as far as the budget allows.

    Parameters
    ----------
    search : Search
    members : list of Member
        Fitted to a sample.
    rows : RowSource of shape (n, d)
    targets : Tensor of shape (n, t)
    weights : Tensor of shape (n,), optional
    index : Tensor of shape (s,)
        Numbers of the rows of the sample.

    Returns
    -------
    list of Member
        All rows as centers, where conjugate gradient comes to the residual of the fit to the
        sample in time, up to 100,000 rows. Else FALKON with as many landmarks as time allows, if
        that has a smaller error on the rows that the search has held out; else as they are.
    """
    if not any(bool(member.coef.any()) for member in members):  # the mean, which more rows share
        return members
    n, d = rows.shape
    if n <= ALL_ROWS and n * d * rows.dtype.itemsize <= HELD_BYTES:
        found = _exact(search, members, rows, targets, weights, index)
        if found is not None:
            return found
    falkon = _falkon(search, rows, targets, weights, index)
    return members if falkon is None else [falkon]


def _exact(
    search: Search,
    members: list[Member],
    rows: RowSource,
    targets: Tensor,
    weights: Tensor | None,
    index: Tensor,
) -> list[Member] | None:
    n, s = len(rows), len(index)
    seconds = max((fit.seconds for fit in search.fits), default=math.inf)
    expected = len(members) * seconds * (n / s) ** 2
    if not search.clock.allows(expected, 30.0 * n * n * len(members)):
        return None
    X = rows.take(torch.arange(n))
    found: list[Member] = []
    for member in members:
        Z = search.material.quantiles.scores(X) if member.quantiles else X
        Z = Z if member.map is None else member.map.forth(Z)
        K = KernelOperator(member.kernel, Z, Z, search.engine, meter=search.clock.meter, **MEMORY)
        most = search.clock.budget.evaluations
        ends = time.monotonic() + search.clock.left / (len(members) - len(found))
        coef = iterated(K, targets, weights, member, search.material.rng, ends, most)
        if coef is None:
            return None
        penalty = member.shift / (float(n) if weights is None else float(weights.sum()))
        found.append(replace(member, centers=Z, coef=coef, penalty=penalty, all_rows=True))
    return found


def _falkon(
    search: Search,
    rows: RowSource,
    targets: Tensor,
    weights: Tensor | None,
    index: Tensor,
) -> Member | None:
    """Return the best stem with landmarks from all rows; None if it is no better."""
    material = search.material
    stem, split = search.least(), material.splits[0]
    held, order = index[split.held].sort()
    stays = torch.ones(len(rows), dtype=torch.bool)
    stays[held] = False
    mapped: RowSource = rows
    if stem.recipe.inputs == "quantile":
        mapped = material.quantiles.apply(mapped)
    map_ = material.composed(stem.recipe.inputs, stem.maps[0])
    mapped = mapped if map_ is None else map_.apply(mapped)
    mapped, _ = in_memory(mapped, MEMORY_SHARE * HELD_BYTES)
    m = _landmarks(search, len(rows))
    if m is None:
        return None
    kernel = stem.fits[0].kernel
    fitted = Complement(mapped, held)
    K = KernelOperator(kernel, fitted, fitted, search.engine, meter=search.clock.meter)
    penalty = stem.penalty * len(split.learn) / len(rows)
    landmarks = torch.randperm(len(fitted), generator=material.rng)[:m].sort().values
    w = None if weights is None else weights[stays]
    problem = NystromProblem.at(K, landmarks, targets[stays].to(rows.dtype), penalty, w)
    stop = [max_iterations(FALKON_ITERATIONS), deadline(time.monotonic() + search.clock.left)]
    result = solve(problem, Falkon(), stop=stop, rng=material.rng)
    centers, coef = problem.K.cols.take(torch.arange(m)), result.state.coef.double()
    values = (replace(problem.K, rows=as_rows(mapped.take(held))) @ coef)[order.argsort()]
    loss, best = _losses(search, values)
    logger.info("FALKON with %d landmarks: loss %.4g, all rows of the sample %.4g", m, loss, best)
    if not loss < best:
        return None
    return Member(
        stem.recipe, 1.0, kernel, stem.recipe.inputs == "quantile", map_, centers, coef, penalty,
        problem.shift, False, importances(material, stem),
    )  # fmt: skip


def _losses(search: Search, values: Tensor) -> tuple[float, float]:
    """Return the loss of predictions of the first held-out rows, and that of the result on them."""
    material, expected = search.material, search.expected()
    if len(material.splits) == 1:
        return search.loss_of(values), search.loss_of(expected)
    v, w = len(values), material.held_weights
    w = None if w is None else w[:v]
    truth = material.truth[:v]
    return squared_loss(values, truth, w), squared_loss(expected[:v], truth, w)


def _landmarks(search: Search, n: int) -> int | None:
    """Return how many landmarks there is time for."""
    for m in LANDMARKS:
        seconds = 2.0 * FALKON_ITERATIONS * n * m / FALKON_RATE / 4 + 3e-11 * m**3
        if m < n and search.clock.allows(seconds, (FALKON_ITERATIONS + 3) * float(n) * m):
            return m
    return None
