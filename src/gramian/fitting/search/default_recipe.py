"""Recipe that the defaults of `KernelRidge` choose, with which the search compares its own."""

from __future__ import annotations

from ... import _arrays as xp
from ..._arrays import RandomStream
from ...data import as_rows
from ...kernels import medians
from ...kernels._lengthscale import lengthscale_of
from ...kernels.base import kernels
from ...search import Material, Recipe, Space
from ..choice.choose import FEW_ROWS, compare_recipes
from ..inputs.training_data import TrainingData
from ..settings.settings import FitSettings
from .settings import SearchSettings


def choose_default_recipe(
    material: Material, data: TrainingData, settings: SearchSettings, rng: RandomStream
) -> tuple[Recipe, float] | None:
    """Return the recipe that the defaults of `KernelRidge` choose by leave-one-out, and its loss.

    Parameters
    ----------
    material : Material
        All rows of the search.
    data : TrainingData
        Training data, with the classes.

    Returns
    -------
    tuple of Recipe and float, or None
        None if the user has restricted the search, or there are more than 1,000 rows: defaults and
        search then compare the same recipes on the same kind of held-out rows.

    Notes
    -----
    Cost: some ten eigenvalue problems of n rows, see `compare_recipes`.
    """
    space = settings.space
    is_usual = space.kernels == Space().kernels and space.multiples is None and settings.cv is None
    if len(material.X) > FEW_ROWS or not is_usual or "quantile" not in space.inputs:
        return None
    training = TrainingData(
        as_rows(material.X), xp.to_float64(material.Y), material.weights, data.classes
    )
    best, _ = compare_recipes(FitSettings(), training, landmarks=None, rng=rng)
    multiple = medians(lengthscale_of(best.kernel))
    if multiple is None:
        return None
    return Recipe(kernels.name_of(best.kernel), best.inputs, multiple), best.loss
