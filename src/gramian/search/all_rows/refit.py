"""refit: the last fit of a member of the result, to all rows, at the shift that was chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..._sparse import slice_rows, take_rows
from ...data import LinearMap
from ...engines import Engine
from ...kernels import Kernel
from ...model.cells import CellCenters
from ...operators import KernelOperator
from ...paths import FullPath, direct_path
from ...paths.full import RANK
from ...paths.sample import MEDIAN_ROWS
from ...problems import FullProblem
from ..clock import Clock
from ..material import Material
from ..recipe import Recipe
from ..samples.sampled_fit import Stem
from .full_fit import DIRECT_ROWS, SHIFTS, FullFit
from .path_points import MEMORY, MOST_ITERATIONS, SOLVED, Ends, is_over
from .single_shift import path_of_one


@dataclass(frozen=True, eq=False)
class Member:
    """A function of the result: a kernel, centers and coefficients, and the maps before them.

    Attributes
    ----------
    recipe : Recipe
    weight : float
    kernel : Kernel
    quantiles : bool
        Whether features are made normal by their quantiles first.
    map : LinearMap or None
    centers : Tensor of shape (n, k)
        Mapped.
    coef : Tensor of shape (n, t)
    penalty : float
        Per row.
    shift : float
        N times the penalty, N the sum of the weights: what is added to the diagonal of K.
    all_rows : bool
        Whether all rows are centers, held-out ones included.
    importances : Tensor of shape (d,), or None
        Shares of the features in the diagonal of M; None without a learned metric.
    cells : CellCenters, optional
        The centers of each cell, if there are cells.
    """

    recipe: Recipe
    weight: float
    kernel: Kernel
    quantiles: bool
    map: LinearMap | None
    centers: Float[Tensor, "n k"]
    coef: Float[Tensor, "n t"]
    penalty: float
    shift: float
    all_rows: bool
    importances: Float[Tensor, " d"] | None = None
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
    """Fit to all rows, held-out ones included, with the shift that was chosen without them.

    It starts from the coefficients without them. Where its residual does not come down to that of
    the fit that was chosen, as within too short a time, that one is returned: that of the first
    split.

    Parameters
    ----------
    material : Material
    fit : FullFit
    weight : float
    clock : Clock
    engine : str or Engine, default="auto"
    ends : float
        The time of `time.monotonic` at which iterations end.
    most : float, default=inf
        Kernel evaluations of the search at which they do.
    """
    map_ = fit.stem.map if len(material.splits) > 1 else fit.stem.maps[0]
    X = _mapped(material, fit, map_)
    kernel = _kernel(material, fit, X)
    K = KernelOperator(kernel, X, X, engine, meter=clock.meter, **MEMORY)
    problem = FullProblem(K, material.Y, 0.0, material.weights)
    penalty = fit.shift / problem.total
    coef = clock.steps.run(
        f"refit {fit.recipe}",
        lambda: _coefficients(problem, fit, penalty, material, clock, (ends, most)),
    )
    all_rows = coef is not None
    if coef is None:  # coefficients of the first split go with its map and its lengthscale
        map_, kernel, coef = fit.stem.maps[0], fit.kernels[0], fit.coefs[0]
        learn, penalty = material.splits[0].learn, fit.penalty
        X = take_rows(_mapped(material, fit, map_), learn)
    inputs = fit.recipe.inputs
    return Member(
        fit.recipe, weight, kernel, inputs == "quantile", material.composed(inputs, map_), X, coef,
        penalty, fit.shift, all_rows, importances(material, fit.stem),
    )  # fmt: skip


def _mapped(material: Material, fit: FullFit, map_: LinearMap | None) -> Float[Tensor, "n k"]:
    X = material.inputs(fit.recipe.inputs)
    return X if map_ is None else map_.forth(X)


def sampled_member(material: Material, stem: Stem) -> Member:
    """Return the fit of a stem to its first sample, for want of time for a better one."""
    fit, inputs = stem.fits[0], stem.recipe.inputs
    return Member(
        stem.recipe, 1.0, fit.kernel, inputs == "quantile",
        material.composed(inputs, stem.maps[0]), fit.centers, fit.coef, fit.penalty,
        fit.total * fit.penalty, False, importances(material, stem),
    )  # fmt: skip


def constant(member: Member) -> Member:
    """Return the function that is zero: the mean of the targets, as nothing else was found."""
    centers = slice_rows(member.centers, 0, 1)
    return replace(member, weight=1.0, centers=centers, coef=torch.zeros_like(member.coef[:1]))


def importances(material: Material, stem: Stem) -> Float[Tensor, " d"] | None:
    """Return the shares of the standardised features in the diagonal of M; None without one."""
    if stem.gradients is None:
        return None
    diagonal = stem.gradients.diagonal()
    if stem.recipe.inputs == "common" and material.common is not None:
        diagonal = diagonal * material.common.array.square()
    return diagonal / diagonal.sum()


def _coefficients(
    problem: FullProblem,
    fit: FullFit,
    penalty: float,
    material: Material,
    clock: Clock,
    ends: Ends,
) -> Tensor | None:
    """Return the coefficients of all rows; None if there is no time for them."""
    n, spent = len(problem.targets), problem.K.meter.evaluations
    few = n <= 2 * DIRECT_ROWS
    if few and spent + n * n <= ends[1]:
        for _, coef in direct_path(problem, [penalty]):
            return coef
    if is_over(ends, spent + n * min(RANK, n // 2) + n * n):  # two iterations, at least
        return None
    start = None
    if len(material.splits) == 1:
        start = torch.zeros_like(material.Y, dtype=torch.float64)
        start[material.splits[0].learn] = fit.coefs[0]
    double = fit.shift < SHIFTS[-1]
    aim = max(fit.residual, SOLVED)
    problem = replace(problem.double() if double else problem, penalty=penalty)
    path = path_of_one(problem, rng=material.rng, clock=clock)
    return _until(path, aim, ends, start)


def _until(path: FullPath, aim: float, ends: Ends, start: Tensor | None) -> Tensor | None:
    """Iterate until the residual is as small as `aim`; None if time is over before."""
    meter = path.problem.K.meter
    before = meter.evaluations
    for stage in path.stages(None if start is None else start[None]):
        if float(stage.residual[0]) <= aim and stage.iteration > 0:
            return stage.coef[0]
        step, before = meter.evaluations - before, meter.evaluations
        if stage.iteration >= 2 * MOST_ITERATIONS or is_over(ends, before + step):
            return None
    return None


def _kernel(material: Material, fit: FullFit, X: Float[Tensor, "n k"]) -> Kernel:
    """Return the kernel of the only split, or with the lengthscale of all rows in their own map."""
    if len(fit.kernels) == 1:
        return fit.kernels[0]
    some = torch.randperm(len(X), generator=material.rng)[:MEDIAN_ROWS]
    return fit.recipe.make_kernel().resolve(take_rows(X, some))
