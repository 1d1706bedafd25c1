"""A diagnosis after a fit: one that converged and explains little has the wrong parameters."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._parameter_types import Callbacks
from ..callbacks import Validate
from ..problems import FullProblem, Problem
from ..solvers import Result

WEAK_R2 = 0.3
"""R2 below which a fit that converged is said to be weak."""

TRAINING_ROWS = 2000
"""Training rows on which it is measured where none are held out."""


def weak_fit(r2: float, where: str) -> str | None:
    """Return a warning about a solution of the problem that explains little of the target.

    Parameters
    ----------
    r2 : float
        NaN if it is unknown.
    where : str
        The rows on which it was measured, such as "500 held-out rows".
    """
    if not r2 < WEAK_R2:
        return None
    return (
        f"R2 is {r2:.2g} on {where}, although the solver converged: the lengthscale or the penalty "
        "is the likely cause, unless the target is mostly noise; try other lengthscales, such as a "
        "third and three times as large, and other penalties"
    )


def diagnosed(problem: Problem, result: Result, callbacks: Callbacks, coded: bool) -> str | None:
    """Return `weak_fit` of a regression that converged.

    Parameters
    ----------
    problem : Problem
    result : Result
    callbacks : sequence of callables
        A `Validate` among them has measured the error on its rows.
    coded : bool
        Whether targets are codes of classes: their R2 says little.

    Notes
    -----
    Without a `Validate`: 2,000 m kernel evaluations for m landmarks, where rows can be read in any
    order; nothing where they cannot, and none where all rows are centers.
    """
    if coded or result.reason != "converged":
        return None
    held = [callback for callback in callbacks if isinstance(callback, Validate)]
    if held:
        y = torch.as_tensor(held[0].y, dtype=torch.float64)
        seen = [row["valid_rmse"] for row in result.history if "valid_rmse" in row]
        mean = problem.targets.mean(dim=0, dtype=torch.float64).cpu()
        spread = float(((y.reshape(-1, len(mean)) - mean) * held[0].scale).square().mean().sqrt())
        r2 = 1 - (seen[-1] / spread) ** 2 if seen and spread > 0 else math.nan
        return weak_fit(r2, f"{len(y):,} held-out rows")
    if not problem.K.rows.random_access:
        return None
    n, count = len(problem.targets), min(len(problem.targets), TRAINING_ROWS)
    index = torch.arange(count) * n // count
    return weak_fit(_training_r2(problem, result.state.coef, index), f"{count:,} training rows")


def _training_r2(problem: Problem, coef: Float[Tensor, "m t"], index: Tensor) -> float:
    """Return R2 of all targets together on some rows, weighted by their observation weights."""
    there = index.to(problem.targets.device)
    y = problem.targets[there].double()
    weight = y.new_ones(len(y), 1)
    if problem.weights is not None:
        weight = problem.weights[there].double()[:, None]
    off = _residuals(problem, coef.double(), index, y)
    mean = (weight * y).sum(dim=0) / weight.sum()
    spread = float((weight * (y - mean).square()).sum())
    lost = float((weight * off.square()).sum())
    return 1 - lost / spread if spread > 0 else math.nan


def _residuals(
    problem: Problem,
    coef: Float[Tensor, "m t"],
    index: Int[Tensor, " k"],
    y: Float[Tensor, "k t"],
) -> Float[Tensor, "k t"]:
    """Return y - f of some rows; where all are centers and the system is solved, ridge times coef.

    Up to the residual of the system, which is far below what weak fits leave.
    """
    if isinstance(problem, FullProblem):
        return (problem.ridge * coef.to(y.device))[index.to(y.device)]
    return y - (problem.K.at(index) @ coef).to(y)
