"""Last fit of a member of the result to all rows, at the chosen shift."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.workers import one_blas_thread
from ..._sparse import slice_rows, take_rows
from ...data import LinearMap
from ...engines import Engine
from ...kernels import Kernel
from ...model.cells import CellCenters
from ...operators import KernelOperator
from ...paths import FullPath, direct_path
from ...paths.full import PATH_RANK
from ...paths.sample import MEDIAN_ROWS
from ...problems import FullProblem
from ..clock import Clock
from ..material import Material
from ..recipe import Recipe
from ..samples.sampled_fit import Stem
from .full_fit import DIRECT_ROWS, PATH_SHIFTS, FullFit
from .path_points import BLOCK_MEMORY, MOST_ITERATIONS, SOLVED_RESIDUAL, Ends, is_over
from .single_shift import path_of_one


@dataclass(frozen=True, eq=False)
class Member:
    """One of the models whose average a search returns: maps, kernel, centers, coefficients.

    Attributes
    ----------
    recipe : Recipe
    weight : float
    kernel : Kernel
    quantiles : bool
        Whether features become normal scores first.
    map : LinearMap or None
    centers : Array of shape (n, k)
        Mapped rows.
    coef : Array of shape (n, t)
    penalty : float
        Penalty per row.
    shift : float
        The number that is added to the diagonal of K: N times the penalty, with N the sum of the
        weights.
    all_rows : bool
        Whether all rows are centers, including held-out rows.
    importances : Array of shape (d,), or None
        Fractions of the features in the diagonal of M; None without a learned metric.
    cells : CellCenters, optional
        Centers of each cell, if there are cells.
    """

    recipe: Recipe
    weight: float
    kernel: Kernel
    quantiles: bool
    map: LinearMap | None
    centers: Float[Array, "n k"]
    coef: Float[Array, "n t"]
    penalty: float
    shift: float
    all_rows: bool
    importances: Float[Array, " d"] | None = None
    cells: CellCenters | None = None


def refit(
    material: Material,
    fit: FullFit,
    weight: float,
    *,
    clock: Clock,
    engine: str | Engine = "auto",
    ends: float,
    most: float = math.inf,
) -> Member:
    """Fit all rows, including held-out rows, at the shift of `fit`.

    Iterations start from the coefficients of `fit`. If time is too short to reach the residual of
    `fit`, return `fit` itself, as fitted to the first split.

    Parameters
    ----------
    material : Material
    fit : FullFit
    weight : float
    clock : Clock
    engine : str or Engine, default="auto"
    ends : float
        Deadline of the iterations, by `read_seconds`.
    most : float, default=inf
        Limit on the kernel evaluations of the search, which also ends iterations.
    """
    # Each fold has learned its own metric. All rows use the map of the mean matrix.
    map_ = fit.stem.map if len(material.splits) > 1 else fit.stem.maps[0]
    X = _mapped_rows(material, fit, map_)
    kernel = _kernel(material, fit, X)
    K = KernelOperator(kernel, X, X, engine, meter=clock.meter, **BLOCK_MEMORY)
    problem = FullProblem(K, material.Y, 0.0, material.weights)
    # The shift is kept, so the penalty per row falls as the held-out rows join.
    penalty = fit.shift / problem.total
    coef = clock.steps.run(
        f"refit {fit.recipe}",
        lambda: _coefficients(problem, fit, penalty, material, clock, (ends, most)),
    )
    all_rows = coef is not None
    # The coefficients of the first split need its map and its lengthscale.
    if coef is None:
        map_, kernel, coef = fit.stem.maps[0], fit.kernels[0], fit.coefs[0]
        learn, penalty = material.splits[0].train, fit.penalty
        X = take_rows(_mapped_rows(material, fit, map_), learn)
    inputs = fit.recipe.inputs
    return Member(
        fit.recipe, weight, kernel, inputs == "quantile", material.compose(inputs, map_), X, coef,
        penalty, fit.shift, all_rows, importances(material, fit.stem),
    )  # fmt: skip


def _mapped_rows(material: Material, fit: FullFit, map_: LinearMap | None) -> Float[Array, "n k"]:
    X = material.inputs(fit.recipe.inputs)
    return X if map_ is None else map_.forth(X)


def sampled_member(material: Material, stem: Stem) -> Member:
    """Return the fit of a stem to its first sample, if time was too short for a better fit."""
    fit, inputs = stem.fits[0], stem.recipe.inputs
    return Member(
        stem.recipe, 1.0, fit.kernel, inputs == "quantile",
        material.compose(inputs, stem.maps[0]), fit.centers, fit.coef, fit.penalty,
        fit.total * fit.penalty, False, importances(material, stem),
    )  # fmt: skip


def constant(member: Member) -> Member:
    """Return the zero function, which predicts the mean of the targets."""
    # A model needs at least one center; its coefficient is zero.
    centers = slice_rows(member.centers, 0, 1)
    return replace(member, weight=1.0, centers=centers, coef=xp.zeros_like(member.coef[:1]))


def importances(material: Material, stem: Stem) -> Float[Array, " d"] | None:
    """Return the fractions of the features in the diagonal of M; None without a metric."""
    if stem.gradients is None:
        return None
    diagonal = xp.diagonal(stem.gradients)
    if stem.recipe.inputs == "common" and material.common is not None:
        # M belongs to the features on their common scale: by the chain rule, a gradient with
        # respect to a standardised feature has that scale as a factor.
        diagonal = diagonal * xp.square(material.common.array)
    return diagonal / diagonal.sum()


def _coefficients(
    problem: FullProblem,
    fit: FullFit,
    penalty: float,
    material: Material,
    clock: Clock,
    ends: Ends,
) -> Array | None:
    """Return the coefficients of all rows; None if the budget is too small."""
    n, spent = len(problem.targets), problem.K.meter.evaluations
    is_direct = n <= 2 * DIRECT_ROWS
    if is_direct and spent + n * n <= ends[1]:
        for _, coef in direct_path(problem, [penalty]):
            return coef
    # A start is worthwhile only if the budget covers two iterations.
    if is_over(ends, spent + n * min(PATH_RANK, n // 2) + n * n):
        return None
    # The folds have different coefficients of the same rows, so they give no start.
    start = None
    if len(material.splits) == 1:
        start = xp.zeros_like(material.Y, dtype=xp.float64)
        start[material.splits[0].train] = fit.coefs[0]
    # Products in float32 resolve no smaller shift.
    double = fit.shift < PATH_SHIFTS[-1]
    aim = max(fit.residual, SOLVED_RESIDUAL)
    problem = replace(problem.double() if double else problem, penalty=penalty)
    # As in `full_fit`: threads of the BLAS would keep waiting in the time of the workers.
    with one_blas_thread:
        path = path_of_one(problem, rng=material.rng, clock=clock)
        return _until(path, aim, ends, start)


def _until(path: FullPath, aim: float, ends: Ends, start: Array | None) -> Array | None:
    """Iterate until the residual reaches `aim`; return None if the budget ends earlier."""
    meter = path.problem.K.meter
    before = meter.evaluations
    # The start itself never counts, even at a small residual: held-out rows have no coefficients
    # yet.
    for stage in path.stages(None if start is None else start[None]):
        if float(stage.residual[0]) <= aim and stage.iteration > 0:
            return stage.coef[0]
        # The last iteration predicts the evaluations of the next one.
        step, before = meter.evaluations - before, meter.evaluations
        if stage.iteration >= 2 * MOST_ITERATIONS or is_over(ends, before + step):
            return None
    return None


def _kernel(material: Material, fit: FullFit, X: Float[Array, "n k"]) -> Kernel:
    """Return the kernel of the only split, or the kernel with the median of all mapped rows."""
    if len(fit.kernels) == 1:
        return fit.kernels[0]
    # The rows of the material may be sorted, so the first ones are no sample.
    index = material.rng.sample(len(X), MEDIAN_ROWS)
    return fit.recipe.make_kernel().resolve(take_rows(X, index))
