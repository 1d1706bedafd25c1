"""next_round: a metric from a fit with all rows as centers, as the paper's machine learns it.

Radhakrishnan et al., Science 383, 2024: gradients of the predictor at its own rows. A sample that
is too small to show what matters has gradients of noise; those of all rows are sharper.
"""

from __future__ import annotations

from dataclasses import replace

from ..engines import Engine
from ..metric import RecursiveFeatureMachine
from ..metric.outer_products import map_of, outer_products
from ..operators import CostMeter, KernelOperator
from .full_fit import FullFit
from .material import Material
from .points import MEMORY
from .recipe import L1
from .sampled import Stem


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
