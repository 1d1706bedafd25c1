"""refit: the last fit of a member of the result, to all rows, at the shift that was chosen."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import LinearMap
from ..engines import Engine
from ..kernels import Kernel
from ..operators import KernelOperator
from ..paths import FullPath, direct_path
from ..problems import FullProblem
from .clock import Clock
from .full_fit import DIRECT_ROWS, MEMORY, MOST_ITERATIONS, SHIFTS, SOLVED, FullFit
from .material import Material


@dataclass(frozen=True, eq=False)
class Member:
    """A function of the result: a kernel, centers and coefficients, and the maps before them.

    Attributes
    ----------
    fit : FullFit
        What it comes from.
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
    all_rows : bool
        Whether held-out rows are among the centers.
    """

    fit: FullFit
    weight: float
    kernel: Kernel
    quantiles: bool
    map: LinearMap | None
    centers: Float[Tensor, "n k"]
    coef: Float[Tensor, "n t"]
    penalty: float
    all_rows: bool


def refit(
    material: Material,
    fit: FullFit,
    weight: float,
    *,
    clock: Clock,
    engine: str | Engine = "auto",
    ends: float = math.inf,
) -> Member:
    """Fit to all rows, held-out ones included, with the shift that was chosen without them.

    It starts from the coefficients without them. Where its residual does not come down to that of
    the fit that was chosen, as within too short a time, that one is returned.

    Parameters
    ----------
    material : Material
    fit : FullFit
    weight : float
    clock : Clock
    engine : str or Engine, default="auto"
    ends : float, default=inf
        The time of `time.monotonic` at which iterations end.
    """
    recipe, map_ = fit.recipe, fit.stem.map if len(material.splits) > 1 else fit.stem.maps[0]
    kernel = _mean_kernel(fit)
    X = material.inputs(recipe.inputs)
    X = X if map_ is None else map_.forth(X)
    K = KernelOperator(kernel, X, X, engine, meter=clock.meter, **MEMORY)
    problem = FullProblem(K, material.Y, 0.0, material.weights)
    penalty = fit.shift / problem.total
    quantiles = recipe.inputs == "quantile"
    if len(X) <= 2 * DIRECT_ROWS:
        for _, coef in direct_path(problem, [penalty]):
            return Member(fit, weight, kernel, quantiles, map_, X, coef, penalty, True)
    coef = None
    if len(material.splits) == 1:
        start = torch.zeros_like(material.Y, dtype=torch.float64)
        start[material.splits[0].learn] = fit.coefs[0]
        coef = _iterated(problem, fit, start, penalty, material, ends)
    if coef is not None or len(material.splits) > 1:
        coef = _iterated(problem, fit, None, penalty, material, ends) if coef is None else coef
        return Member(fit, weight, kernel, quantiles, map_, X, coef, penalty, True)
    learn = material.splits[0].learn
    return Member(
        fit, weight, kernel, quantiles, map_, X[learn], fit.coefs[0], fit.penalty, False
    )


def _iterated(
    problem: FullProblem,
    fit: FullFit,
    start: Tensor | None,
    penalty: float,
    material: Material,
    ends: float,
) -> Tensor | None:
    """Return coefficients whose residual is as small as that of the fit; None if they are not."""
    if fit.shift < SHIFTS[-1]:
        problem = problem.double()
    path = FullPath.build(problem, [penalty], rng=material.rng)
    aim = max(fit.residual, SOLVED)
    for stage in path.stages(None if start is None else start[None]):
        if float(stage.residual[0]) <= aim and stage.iteration > 0:
            return stage.coef[0]
        if stage.iteration >= 2 * MOST_ITERATIONS or time.monotonic() > ends:
            return None
    return None


def _mean_kernel(fit: FullFit) -> Kernel:
    """Return the kernel with the mean lengthscale of the splits."""
    lengthscales = [kernel.lengthscale for kernel in fit.kernels]  # type: ignore[attr-defined]
    return fit.kernels[0].set_params(lengthscale=sum(lengthscales) / len(lengthscales))
