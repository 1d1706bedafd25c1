"""Parameters of a search, and the recipe of the defaults with which it compares its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ...callbacks import Checkpoint
from ...data import RowSource, as_rows
from ...engines import Engine
from ...kernels import medians
from ...kernels._lengthscale import lengthscale_of
from ...kernels.base import kernels
from ...search import Budget, Material, Recipe, Space, TrialCallback
from ...search.space import as_kernel
from ..choice.choose import FEW_ROWS, compare_recipes
from ..inputs.training_data import TrainingData
from ..settings.settings import FitSettings

LossOf = Callable[[Array, Array, Array | None], float]


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Parameters of a search: budget, space, score, splits and limits.

    - `cv`: None: five folds of fewer than 1,500 rows, three of them of fewer than 2,000, else a
      fifth of the rows, at most 2,000.
    - `standardize`: whether features that are not encoded are scaled to mean 0 and deviation 1.
    - `score`: loss that compares fits, a function of predictions, true targets and weights of
      held-out rows; the mean squared error if None.
    - `memory_limit`: approximate limit of the memory, without the given data.
    - `watchers`: called with each `Trial`; one that returns True ends the search.
    - `checkpoint`: names the file of the journal that keeps the steps of the search.
    - `blend`: package whose trees are averaged with the result; None for no trees.
    """

    budget: Budget = field(default_factory=Budget)
    space: Space = field(default_factory=Space)
    cv: object = None
    engine: str | Engine = "auto"
    standardize: bool = True
    score: LossOf | None = None
    memory_limit: int | None = None
    watchers: Sequence[TrialCallback] = ()
    checkpoint: Checkpoint | None = None
    blend: str | None = None

    def of(self, rows: RowSource, names: Sequence[str] | None = None) -> SearchSettings:
        """Return the settings of a search on given rows, without maps that these do not allow.

        - `names`: name of the column of each feature, for kernels of columns.
        """
        space = self.space.with_names(names)
        space = space.of_sparse() if rows.sparse else space
        return replace(self, space=space.without_maps() if space.takes_features_as_given else space)

    def unscaled_features(self, d: int) -> frozenset[int]:
        """Return the features, out of d, that one of the kernels takes in its own units."""
        return frozenset().union(*(as_kernel(k).unscaled_features(d) for k in self.space.kernels))


def choose_default_recipe(
    material: Material, data: TrainingData, settings: SearchSettings, rng: RandomStream
) -> tuple[Recipe, float] | None:
    """Return the recipe that the defaults of `KernelRidge` choose by leave-one-out, and its loss.

    - `material`: all rows of the search.
    - `data`: training data, with the classes.

    Return None if the user has restricted the search, or there are more than 1,000 rows: defaults
    and search then compare the same recipes on the same kind of held-out rows.

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
