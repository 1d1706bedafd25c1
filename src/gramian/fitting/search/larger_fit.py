"""Final fit of a search to more rows than its sample: by cells, or with landmarks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._parallel.machine import read_seconds
from ...callbacks import Checkpoint
from ...data import Complement, RowSource, as_rows
from ...model import CellCenters
from ...operators import KernelOperator
from ...paths.sample import squared_loss
from ...problems import NystromProblem
from ...search import CellSearch, Material, Member, SearchState, Split
from ...search.all_rows.last_fit import importances
from ...search.search_state import SAMPLE_WINS
from ...solvers import Falkon, deadline, max_iterations, solve

logger = logging.getLogger("gramian")

HELD_OUT = (50, 10_000)
"""Cells hold out one row in 50, and at most 10,000 rows."""

LANDMARK_COUNTS = (10_000, 5_000, 2_000)
"""Numbers of landmarks beyond, as the time that is left allows."""

FALKON_ITERATIONS = 15
FALKON_RATE = 4e8
"""Kernel evaluations per second that FALKON is planned with: a slow core."""


def cell_search(
    search: SearchState,
    rows: RowSource,
    targets: Float[Array, "n t"],
    weights: Float[Array, " n"] | None,
    index: Int[Array, " s"],
    most: int,
    folds: Sequence[Split] = (),
) -> CellSearch | None:
    """Return a search by cells of as many rows as fit in memory; None if the sample has as many.

    - `search`: search on a sample.
    - `index`: indices of the rows of the sample, which the cells include.
    - `most`: number of rows that memory allows.
    - `folds`: splits of the rows that choose lengthscale and penalty.
    """
    sample = search.material
    if most <= len(index):
        return None
    # 1. The rows in memory: the sample, with which the search has compared, and random others.
    in_memory_rows, index = _some_with(index, len(rows), most, sample.rng)
    n = len(in_memory_rows)
    if n < len(rows):
        logger.info("cells have %d of %d rows, as many as memory holds", n, len(rows))
    # 2. Held-out rows: these of the search, so that losses are comparable, and more, so that most
    # cells have some.
    validation = index[sample.splits[0].validation]
    is_free = xp.ones(n, xp.bool)
    is_free[index] = False
    other_numbers = xp.flatnonzero(is_free)
    more = max(0, min(n // HELD_OUT[0], HELD_OUT[1]) - len(validation))
    validation = xp.concat([validation, other_numbers[sample.rng.sample(len(other_numbers), more)]])
    is_free[:] = True
    is_free[validation] = False
    # 3. The material of the cells, with the scales and the maps of the sample: its metric belongs
    # to them.
    material = Material.of(
        rows.take(in_memory_rows),
        xp.cast(targets[in_memory_rows], rows.dtype),
        None if weights is None else weights[in_memory_rows],
        coded=sample.coded,
        splits=[Split(xp.flatnonzero(is_free), validation)],
        rng=sample.rng,
        scales=sample.scales,
    )
    # 4. The folds of the user number all rows: here, they number the rows in memory.
    place = xp.full((len(rows),), -1)
    place[in_memory_rows] = xp.arange(n)
    places = [Split(_places(place, fold.train), _places(place, fold.validation)) for fold in folds]
    return CellSearch(search, material.mapped_as(sample), places)


def _places(place: Int[Array, " n"], index: Int[Array, " k"]) -> Int[Array, " _"]:
    """Return the positions in memory of the rows `index` that are in memory."""
    positions = place[index]
    return positions[positions >= 0]


def _some_with(
    index: Int[Array, " s"], n: int, most: int, rng: RandomStream
) -> tuple[Int[Array, " k"], Int[Array, " s"]]:
    """Draw rows that include `index`; return their indices, and the places of `index`."""
    if n <= most:
        return xp.arange(n), index
    # The sample must be among the rows, because the search has chosen and compared with it.
    is_taken = xp.zeros(n, xp.bool)
    is_taken[index] = True
    other_numbers = xp.flatnonzero(~is_taken)
    is_taken[other_numbers[rng.sample(len(other_numbers), most - len(index))]] = True
    row_numbers = xp.flatnonzero(is_taken)
    return row_numbers, xp.find_insertions(row_numbers, index)


def members_of_cells(by_cells: CellSearch) -> list[Member]:
    """Return the models of a search by cells.

    The list is empty if the cells learned nothing, or the sample alone has a clearly smaller error.
    The fits of a sample are many, so that the best of them is better by chance. On diamonds with
    30 CPU seconds, a sample with 0.98 of the loss of the cells had 1.07 of their test error.
    """
    if not by_cells.predicts():
        return []
    if not SAMPLE_WINS * by_cells.squared_error() < by_cells.search.best_stem().loss:
        return []
    material, total = by_cells.material, by_cells.total
    members = []
    for weight, cells in zip(by_cells.weights, by_cells.models, strict=True):
        if weight > 0:
            fit, inputs = cells.fit, cells.fit.recipe.inputs
            members.append(
                Member(
                    fit.recipe, weight, cells.kernel, inputs == "quantile",
                    material.compose(inputs, cells.map), cells.centers, cells.coef,
                    fit.shift / total, fit.shift, False,
                    importances(material, fit.stem), CellCenters(cells.cells, cells.starts),
                )
            )  # fmt: skip
    return members


def with_landmarks(
    search: SearchState,
    rows: RowSource,
    targets: Float[Array, "n t"],
    weights: Float[Array, " n"] | None,
    index: Int[Array, " s"],
    checkpoint: Checkpoint | None = None,
) -> Member | None:
    """Fit the best stem to all rows by FALKON, with as many landmarks as time allows.

    Return None if the fit is no better on the held-out rows of the search, or there is no time.
    With a checkpoint, the state of FALKON is in a second file until the fit is finished.
    """
    material = search.material
    stem, split = search.best_stem(), material.splits[0]
    # 1. The held-out rows of the search stay held out: its result and this fit are compared on
    # them. In order, because files are read in order.
    validation, order = xp.sort_with_order(index[split.validation])
    stays = xp.ones(len(rows), xp.bool)
    stays[validation] = False
    # 2. The maps of the search, applied as rows are read: all rows may not fit in memory.
    mapped: RowSource = rows
    if stem.recipe.inputs == "quantile":
        mapped = material.quantiles.apply(mapped)
    map_ = material.compose(stem.recipe.inputs, stem.maps[0])
    mapped = mapped if map_ is None else map_.apply(mapped)
    m = _landmarks(search, len(rows) - len(validation))
    if m is None:
        return None
    kernel = stem.fits[0].kernel
    fitted = Complement(mapped, validation)
    K = KernelOperator(kernel, fitted, fitted, search.engine, meter=search.clock.meter)
    # 3. The ridge of the search, which is the penalty times the rows.
    penalty = stem.penalty * len(split.train) / len(rows)
    landmarks = xp.sort(material.rng.sample(len(fitted), m))
    w = None if weights is None else weights[stays]
    problem = NystromProblem.at(K, landmarks, xp.cast(targets[stays], rows.dtype), penalty, w)
    coef = search.clock.steps.run("landmarks", lambda: _solve(problem, search, checkpoint))
    centers = problem.K.cols.take(xp.arange(m))
    K_held = replace(problem.K, rows=as_rows(mapped.take(validation)))
    # 4. Predictions in the order of the search, in which its own are.
    values = (K_held @ coef)[order.argsort(stable=True)]
    loss, best = _losses(search, values)
    logger.info("FALKON with %d landmarks: loss %.4g, all rows of the sample %.4g", m, loss, best)
    if not loss < best:
        return None
    return Member(
        stem.recipe, 1.0, kernel, stem.recipe.inputs == "quantile", map_, centers, coef, penalty,
        problem.shift, False, importances(material, stem),
    )  # fmt: skip


def _solve(
    problem: NystromProblem, search: SearchState, checkpoint: Checkpoint | None
) -> Float[Array, "m t"]:
    """Solve a Nystrom problem by FALKON, and return the coefficients in float64."""
    stop = [
        max_iterations(FALKON_ITERATIONS),
        deadline(read_seconds() + search.clock.remaining_seconds),
    ]
    if checkpoint is None:
        return xp.to_float64(
            solve(problem, Falkon(), stop=stop, rng=search.material.rng).state.coef
        )
    # The file of the checkpoint is the journal of the search: the solver needs one of its own.
    path = checkpoint.path.with_name(f"{checkpoint.path.name}.falkon")
    saved = Checkpoint(path, checkpoint.every, checkpoint.resume, checkpoint.every_seconds)
    state = saved.restore(problem, Falkon())
    result = solve(
        problem, Falkon(), stop=stop, callbacks=[saved], state=state, rng=search.material.rng
    )
    # The journal has the result; the state of the solver would be resumed by another search.
    path.unlink(missing_ok=True)
    return xp.to_float64(result.state.coef)


def _losses(search: SearchState, values: Array) -> tuple[float, float]:
    """Return the losses of predictions and of the search's result on the first held-out rows."""
    material, expected = search.material, search.predict_held_out()
    # With one split, the score of the user compares; folds would need the predictions of all.
    if len(material.splits) == 1:
        return search.loss_of(values), search.loss_of(expected)
    v, w = len(values), material.held_weights
    w = None if w is None else w[:v]
    truth = material.truth[:v]
    return squared_loss(values, truth, w), squared_loss(expected[:v], truth, w)


def _landmarks(search: SearchState, n: int) -> int | None:
    """Return the number of landmarks that the remaining budget allows, or None."""
    for m in LANDMARK_COUNTS:
        # Products of the iterations, and factorisations of m x m matrices.
        seconds = 2.0 * FALKON_ITERATIONS * n * m / FALKON_RATE / 4 + 3e-11 * m**3
        if m < n and search.clock.allows(seconds, (FALKON_ITERATIONS + 3) * float(n) * m):
            return m
    return None
