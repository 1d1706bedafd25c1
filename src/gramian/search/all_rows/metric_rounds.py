"""Metrics that follow from a fit with all rows as centers: the next round, and a flatter one.

`next_round` is that of the paper's machine, Radhakrishnan et al., Science 383, 2024: gradients of
the predictor at its own rows. A sample that is too small to show what matters has gradients of
noise; those of all rows are sharper.
"""

from __future__ import annotations

from dataclasses import replace

from ...engines import Engine
from ...metric import RecursiveFeatureMachine
from ...metric.outer_products import map_of, outer_products
from ...operators import CostMeter, KernelOperator
from ..material import Material
from ..recipe import L1
from ..samples.sampled_fit import Stem
from .full_fit import FullFit
from .path_points import MEMORY

LEAST_POWER = 0.1
"""Of a metric that is made flatter: all features count nearly alike below."""


def next_round(
    material: Material,
    fit: FullFit,
    machine: RecursiveFeatureMachine,
    *,
    engine: str | Engine = "auto",
    meter: CostMeter,
) -> Stem | None:
    """Return the stem of a fit with the metric of its gradients; None if they all vanish.

    Parameters
    ----------
    material : Material
    fit : FullFit
    machine : RecursiveFeatureMachine
        Its gradient rows, and its first power for a stem that has no metric yet.
    engine : str or Engine, default="auto"
    meter : CostMeter

    Notes
    -----
    Cost, for each split of n rows with s gradient rows: s n kernel evaluations and s n d
    operations.
    """
    stem, s = fit.stem, machine.gradient_rows
    inputs, w = material.inputs(fit.recipe.inputs), material.weights
    found = []
    for split, map_, kernel, coef in zip(
        material.splits, stem.maps, fit.kernels, fit.coefs, strict=True
    ):
        X, some = inputs[split.learn], split.learn[:s]
        X = X if map_ is None else map_.forth(X)
        K = KernelOperator(kernel, X[:s], X, engine, meter=meter, **MEMORY)
        root = None if w is None else w[some].sqrt()
        M = outer_products(K, X[:s], coef.to(X.dtype), map_, root)
        if M is None:
            return None
        found.append(M)
    power = stem.recipe.power if stem.recipe.rounds else machine.powers[0]
    recipe = replace(
        stem.recipe, rounds=stem.recipe.rounds + 1, power=power, learner=stem.recipe.kernel
    )
    return replace(
        stem,
        recipe=recipe,
        maps=tuple(map_of(M, power, diagonal=stem.recipe.kernel == L1) for M in found),
        gradients=sum(found[1:], found[0]) / len(found),
        loss=fit.loss,
        penalty=fit.penalty,
    )


def flatter(fit: FullFit) -> Stem | None:
    """Return the stem of a fit with half the power of its metric; None without a metric.

    The features that matter most stand out less, and no others are seen. A sample with few
    landmarks is best with few features; many rows, near each other, have use for more of them.
    Measured on 41,000 rows of beijing_pm25 that lie near each other, held-out error of cells of
    5,500: 15.7 with the metric of a sample of 20,000, 14.9 with three quarters of its power, 14.8
    with half.
    """
    stem = fit.stem
    M, power = stem.gradients, stem.recipe.power / 2
    if M is None or power < LEAST_POWER:
        return None
    map_ = map_of(M, power, diagonal=stem.recipe.kernel == L1)
    recipe = replace(stem.recipe, power=power)
    return replace(
        stem, recipe=recipe, maps=(map_,) * len(stem.maps), loss=fit.loss, penalty=fit.penalty
    )
