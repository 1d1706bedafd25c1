"""End of a search whose default is almost linear, and leaves nothing to predict."""

from __future__ import annotations

from dataclasses import replace

from ... import _arrays as xp
from ..recipe import L1_KERNEL, Recipe
from ..samples.sampled_fit import screen_kernels
from ..samples.screen import LEARNER_KERNEL
from ..search_state import NOTHING_GAINED, SearchState
from .full_fit import FullFit, full_fit
from .metric_rounds import next_round

LINEAR_MULTIPLE = 8.0
"""Least lengthscale, in medians, of a default that may be almost linear."""

LINEAR_SHARE = 0.99
"""Share of the squares of a default's predictions that a linear function has to explain."""

ROWS_PER_FEATURE = 4
"""Least number of rows for each feature that show whether a function is linear."""

ROUND_GAIN = 0.99
"""Largest ratio of losses before and after a round that allows another one."""


def leaves_noise(search: SearchState, fit: FullFit) -> bool:
    """Return whether neither a metric nor a rough kernel improves an almost linear default.

    The errors of the default for held-out rows become targets: if neither a kernel of the Euclidean
    distance nor one of the l1 distance predicts these errors, other recipes have nothing to gain.

    Notes
    -----
    Cost: a fit with all rows as centers, and two fits to samples.
    """
    material, clock, machine = search.material, search.clock, search.space.machine
    index = material.held_out_index
    if len(index) < len(material.X) or not _is_linear(search, fit):
        return False
    if machine is not None and material.X.shape[1] > 1:
        stem = next_round(material, fit, machine, engine=search.engine, meter=clock.meter)
        if stem is not None:
            learned = full_fit(
                material, stem, fit.recipe.multiple, clock=clock, engine=search.engine,
                near=fit.shift,
            )  # fmt: skip
            if learned.loss < ROUND_GAIN * fit.loss:
                return False
    errors = xp.empty_like(material.Y)
    errors[index] = xp.cast(material.truth - fit.values, material.Y.dtype)
    of_errors = replace(material, Y=errors).mapped_as(material)
    limit = NOTHING_GAINED * search.squared_error(fit.values)
    for kernel in (LEARNER_KERNEL, L1_KERNEL):
        recipe = Recipe(kernel, fit.recipe.inputs, search.space.first(kernel))
        stem = screen_kernels(of_errors, recipe, search.effort, search.engine, clock.meter)
        values = xp.concat([part.values for part in stem.fits])
        if stem.loss < limit and search.predicts(values, of_errors.truth):
            return False
    return True


def _is_linear(search: SearchState, fit: FullFit) -> bool:
    """Return whether the predictions of held-out rows are almost a linear function."""
    material = search.material
    X = xp.to_float64(material.inputs(fit.recipe.inputs)[material.held_out_index])
    if ROWS_PER_FEATURE * X.shape[1] > len(X):
        return False
    Q, _ = xp.qr(xp.concat([xp.ones((len(X), 1), X.dtype), X], axis=1))
    values = xp.to_float64(fit.values)
    values = values - values.mean(axis=0)
    return float(xp.square(Q.T @ values).sum()) >= LINEAR_SHARE * float(xp.square(values).sum())
