"""Fit of a recipe at all penalties of a path, with all rows as centers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.machine import read_seconds
from ..._parallel.workers import one_blas_thread
from ...engines import Engine
from ...kernels import Kernel
from ...operators import KernelOperator
from ...paths import FullPath
from ...paths.closed_form import direct_work
from ...paths.sample import MEDIAN_ROWS, Sample, squared_loss
from ...paths.work import Work
from ...problems import FullProblem
from ..clock import Clock
from ..material import Material
from ..recipe import Recipe
from ..samples.sampled_fit import Stem
from .path_points import (
    BLOCK_MEMORY,
    VALIDATION_INTERVAL,
    Ends,
    Point,
    factorise_matrix,
    store_entries,
    watch_path,
)

DIRECT_ROWS = 1500
"""Largest number of rows for a float64 factorisation per penalty, which has no least penalty."""

PATH_SHIFTS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""N times the penalties of a path with float32 products, which resolve no smaller ones."""

FEW_TARGETS = 4
"""Largest number of targets for which all shifts are solved together."""

PILOT_ROWS = 4000
"""Rows that choose the shift of more targets."""

SMALL_SHIFTS = (3e-3, 1e-3, 1e-4)
"""Further shifts, with float64 products, tried if the last of PATH_SHIFTS was the best."""

WINDOW_SHIFTS = 2
"""Shifts on each side of the best one of a similar fit, such as one of half the lengthscale."""

DIRECT_SHIFTS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)

PATH_ITERATIONS = 20
"""Typical iterations of a path: 12 for noisy targets, 22 to 30 for exact functions."""

LEAST_SHIFT = 1e-10
"""Least shift of a factorisation in a search, for targets that are almost exact functions."""


@dataclass(frozen=True, eq=False)
class FullFit:
    """Fit of a recipe to the rows of each split, at its best penalty.

    Attributes
    ----------
    stem : Stem
    recipe : Recipe
        Recipe of the stem, with the lengthscale of this fit.
    kernels : sequence of Kernel
        Kernels of the splits, with their lengthscales.
    shift : float
        N times the penalty; N is the total weight of the training rows of a split.
    penalty : float
        Penalty per row of a split.
    loss : float
    losses : tuple of (penalty, loss)
    values : Array of shape (v, t)
        Predictions of all held-out rows.
    coefs : sequence of Array
        Coefficients of the splits, in the order of their rows.
    residual : float
        Largest relative residual of the systems; 0 for factorisations.
    iterations : int
    seconds : float
    """

    stem: Stem
    recipe: Recipe
    kernels: tuple[Kernel, ...]
    shift: float
    penalty: float
    loss: float
    losses: tuple[tuple[float, float], ...]
    values: Float[Array, "v t"]
    coefs: tuple[Float[Array, "_ t"], ...]
    residual: float
    iterations: int
    seconds: float


def full_fit(
    material: Material,
    stem: Stem,
    multiple: float,
    *,
    clock: Clock,
    engine: str | Engine = "auto",
    ends: float = math.inf,
    most: float = math.inf,
    small: bool = False,
    shifts: Sequence[float] | None = None,
    near: float | None = None,
) -> FullFit:
    """Fit a recipe with all rows as centers, and return the best penalty on the held-out rows.

    Parameters
    ----------
    material : Material
    stem : Stem
    multiple : float
        Lengthscale as a multiple of the median distance.
    clock : Clock
    engine : str or Engine, default="auto"
    ends : float, default=inf
        Deadline of the iterations, by `read_seconds`.
    most : float, default=inf
        Limit on the kernel evaluations of the search, which also ends iterations.
    small : bool, default=False
        Whether to try smaller penalties, with products in float64.
    shifts : sequence of float, optional
        N times the penalties, decreasing; chosen by default.
    near : float, optional
        The best shift of a similar fit, to which the chosen shifts are close.
    """
    started = read_seconds()
    recipe, until = replace(stem.recipe, multiple=multiple), (ends, most)
    kernels, runs, total = [], [], 0.0
    # The first split of each kind chooses: folds on both sides of `DIRECT_ROWS` are factorised in
    # part and iterated in part, on different shifts.
    direct = iterated = shifts
    for split, map_ in zip(material.splits, stem.maps, strict=True):
        sample = material.sample(recipe.inputs, split).with_map(map_)
        # The median is measured on mapped rows of each split: the metric changes distances, and the
        # lengthscale is a multiple of them.
        kernel = recipe.make_kernel().resolve(sample.first(MEDIAN_ROWS).X)
        kernels.append(kernel)
        K = KernelOperator(kernel, sample.X, sample.X, engine, meter=clock.meter, **BLOCK_MEMORY)
        problem = FullProblem(K, sample.Y, 0.0, sample.weights)
        total = problem.total
        if len(sample.X) <= DIRECT_ROWS:
            if direct is None:
                # The sample's best penalty may be below all of these shifts.
                tried = {*DIRECT_SHIFTS, LEAST_SHIFT, stem.penalty * total}
                direct = _select_near(sorted(tried, reverse=True), near)
            runs.append(factorise_matrix(problem, sample, direct))
        else:
            if small:
                problem = problem.double()
            if iterated is None:
                small_shifts = SMALL_SHIFTS if small else None
                iterated = small_shifts or _shifts(problem, sample, material, clock, until, near)
            runs.append(_iterate_path(problem, sample, material, iterated, clock, until))
    return _best(material, stem, recipe, tuple(kernels), runs, total, started)


def full_work(n: int, v: int, shifts: int, targets: int, itemsize: int = 4) -> Work:
    """Return the work of `full_fit` with n training rows and v held-out rows of one split."""
    if n <= DIRECT_ROWS:
        return direct_work(n, shifts) + Work(double_evaluations=float(v) * n)
    looks = PATH_ITERATIONS / VALIDATION_INTERVAL * v * n
    validation = Work(looks) if itemsize == 4 else Work(double_evaluations=looks)
    return FullPath.work(n, shifts, targets, PATH_ITERATIONS, itemsize) + validation


def _best(
    material: Material,
    stem: Stem,
    recipe: Recipe,
    kernels: tuple[Kernel, ...],
    runs: Sequence[dict[float, Point]],
    total: float,
    started: float,
) -> FullFit:
    # Runs differ in their shifts if only some were factorised, or ended where a matrix was not
    # definite.
    shared = [s for s in runs[0] if all(s in run for run in runs)]
    weights, truth = material.held_weights, material.truth
    # One loss over all held-out rows, not a mean of the splits, because splits may differ in
    # size.
    values = {s: xp.concat([run[s].values for run in runs]) for s in shared}
    losses = {s: squared_loss(values[s], truth, weights) for s in shared}
    # Shifts decrease, and `min` returns the first of equal losses: the largest penalty, which is
    # safer away from the rows.
    shift = min(shared, key=lambda s: losses[s])
    points = [run[shift] for run in runs]
    return FullFit(
        stem,
        recipe,
        kernels,
        shift,
        shift / total,
        losses[shift],
        tuple((s / total, losses[s]) for s in shared),
        values[shift],
        tuple(point.coef for point in points),
        max(point.residual for point in points),
        max(point.iteration for point in points),
        read_seconds() - started,
    )


def _iterate_path(
    problem: FullProblem,
    sample: Sample,
    material: Material,
    shifts: Sequence[float],
    clock: Clock,
    ends: Ends,
) -> dict[float, Point]:
    """Return the best iterate of each shift."""
    penalties = [s / problem.total for s in shifts]
    # Threads of the BLAS would keep waiting after each product, in the time of the workers.
    with one_blas_thread:
        path = FullPath.build(problem, penalties, rng=material.rng, **store_entries(clock))
        return watch_path(path, shifts, sample, ends)


def _shifts(
    problem: FullProblem,
    sample: Sample,
    material: Material,
    clock: Clock,
    ends: Ends,
    near: float | None,
) -> Sequence[float]:
    """Return the shifts of a path (N times the penalties).

    For many targets these are the best shift on a part of the rows, and the next one.

    The columns of a product are shifts times targets: seven shifts of ten classes would take
    several times the seconds of one shift.
    """
    n, t = problem.targets.shape
    if t <= FEW_TARGETS or n < 2 * PILOT_ROWS:
        return _select_near(PATH_SHIFTS, near)
    part = sample.first(PILOT_ROWS)
    K = KernelOperator(
        problem.K.kernel, part.X, part.X, problem.K.engine, meter=problem.K.meter, **BLOCK_MEMORY
    )
    part_problem = FullProblem(K, part.Y, 0.0, part.weights)
    points = _iterate_path(part_problem, part, material, PATH_SHIFTS, clock, ends)
    best = PATH_SHIFTS.index(min(points, key=lambda s: points[s].loss))
    # At the end of the path there is no next shift; the last two then replace the pair.
    return PATH_SHIFTS[best : best + 2] if best + 2 <= len(PATH_SHIFTS) else PATH_SHIFTS[-2:]


def _select_near(shifts: Sequence[float], near: float | None) -> Sequence[float]:
    """Return the shift closest to `near` with two neighbours on each side; all shifts if None."""
    if near is None:
        return shifts
    at = min(range(len(shifts)), key=lambda i: abs(math.log(shifts[i] / near)))
    return shifts[max(0, at - WINDOW_SHIFTS) : at + WINDOW_SHIFTS + 1]
