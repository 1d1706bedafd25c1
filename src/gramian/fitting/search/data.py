"""Scaled training data of a search, the `Material` of its fits, and held-out predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._messages.errors import TextError
from ...callbacks import Checkpoint
from ...callbacks.journal import Journal
from ...data import RowSource, Standardizer, as_rows, subset
from ...data.rows.digest import digest, tensor_digest
from ...kernels import Kernel
from ...kernels._hyperparameters import amplify
from ...kernels.base import kernels
from ...model import KernelModel, Model
from ...search import CellSearch, Material, Member, Score, SearchState
from ...search.space import as_kernel
from ..choice.tuning import criterion_of, tune
from ..held_out.splits import search_splits
from ..held_out.validation import HeldValues
from ..inputs.features import standardizer_of
from ..inputs.training_data import TrainingData
from .settings import SearchSettings

MOST_ROWS = 20_000
"""Rows that a search works with; of more, a random sample. The last fit takes all."""


@dataclass(frozen=True, eq=False)
class ScaledData:
    """Scaled training data of a search, with the scaling that maps models back."""

    data: TrainingData
    rows: RowSource
    targets: Float[Array, "n t"]
    features: Standardizer | None
    of_targets: Standardizer

    @classmethod
    def of(
        cls,
        data: TrainingData,
        standardize: bool,
        unscaled_features: frozenset[int] = frozenset(),
    ) -> ScaledData:
        """Scale targets, and other features if `standardize`, to mean 0 and deviation 1."""
        features, rows = None, data.rows
        # An encoding has scaled its features; scaled sparse rows would be dense.
        if standardize and data.encoding is None and not rows.sparse:
            features = standardizer_of(data, unscaled_features)
            rows = rows if features is None else features.apply(rows)
        of_targets = Standardizer.fit(as_rows(data.targets), weights=data.weights)
        if (
            data.coded
        ):  # Codes stay on the scale of errors; their mean is the best constant prediction.
            of_targets = Standardizer(of_targets.mean, xp.ones_like(of_targets.scale))
        targets = of_targets.scale_numbers(data.targets)
        return cls(data, rows, targets, features, of_targets)

    def model(self, member: Member, material: Material) -> KernelModel:
        """Return the model of a member, for rows and predictions in the user's units."""
        scale = self.of_targets
        return KernelModel(
            member.kernel,
            member.centers,
            member.coef,
            self.features,
            scale.mean,
            scale.scale,
            self.data.feature_names,
            self.data.classes,
            self.data.encoding,
            self.data.target,
            quantiles=material.quantiles if member.quantiles else None,
            metric=member.map,
            importances=member.importances,
            cells=member.cells,
            medians=self.data.medians,
            reading=self.data.reading,
        )


def check_data(data: TrainingData) -> None:
    """Raise ValueError if there are too few rows for a search."""
    if len(data.rows) < 5:
        raise TextError(
            f"too few rows of positive weight, n_samples = {len(data.rows)}: a search needs 5 at "
            "least, to hold some out; use {KernelRidge}"
        )


def material_of(
    scaled: ScaledData, settings: SearchSettings, rng: RandomStream
) -> tuple[Material, Int[Array, " s"] | None]:
    """Return the rows of a search in memory, and their indices unless all rows are used."""
    data, n = scaled.data, len(scaled.rows)
    index = None
    if n > MOST_ROWS:
        # In order, so that rows of a file are read in one pass.
        index = xp.sort(rng.sample(n, MOST_ROWS))
    rows = scaled.rows if index is None else subset(scaled.rows, index)
    X = rows.take(xp.arange(len(rows)))
    Y = scaled.targets if index is None else scaled.targets[index]
    weights = data.weights if index is None or data.weights is None else data.weights[index]
    splits = None
    if settings.cv is not None:
        # Splits of the sample: row numbers of the user are translated to it.
        splits = search_splits(settings.cv, data if index is None else data.part(index), rng)
    material = Material.of(
        X,
        xp.cast(Y, X.dtype),
        weights,
        coded=data.coded,
        splits=splits,
        rng=rng,
        scales=None if scaled.features is None else scaled.features.scale,
    )
    return material, index


def with_tuned_kernels(settings: SearchSettings, material: Material) -> SearchSettings:
    """Return settings whose kernel objects have tuned hyper-parameters, and k(x, x) of mean one.

    The criterion is the marginal likelihood, for classes the leave-one-out error, of up to 2,000
    rows. Held-out rows of the search are among them.
    """
    space = settings.space
    if not space.takes_features_as_given:
        return settings
    data = TrainingData(as_rows(material.X), xp.to_float64(material.Y), material.weights)
    name = "leave_one_out" if material.coded else "likelihood"
    criterion = criterion_of(data, name, material.rng)

    def tune_one(kernel: str | Kernel) -> str | Kernel:
        if isinstance(kernel, str) and kernels.make(kernel).stationary:
            return kernel
        resolved = as_kernel(kernel).resolve(criterion.X)
        if not isinstance(kernel, str):
            resolved = tune(criterion, resolved).kernel
        # Penalties of a search are for kernels of this size.
        size = float(resolved.diag(criterion.X).mean())
        return kernel if size == 1.0 and isinstance(kernel, str) else amplify(resolved, 1 / size)

    return replace(settings, space=replace(space, kernels=tuple(map(tune_one, space.kernels))))


def search_journal(
    checkpoint: Checkpoint,
    settings: SearchSettings,
    data: TrainingData,
    material: Material,
    rng: RandomStream,
) -> Journal:
    """Return the journal of a search in the file of a checkpoint.

    Raise ValueError if the file is not a journal, or belongs to a search with other data or
    settings.
    """
    # Everything that changes a step of the search: a file of another search must not be resumed.
    parts = [part for split in material.splits for part in (split.train, split.validation)]
    about = {
        "fit": "a search",
        "rows": digest(data.rows),
        "targets": tensor_digest(data.targets),
        "weights": tensor_digest(data.weights),
        "held-out rows": " ".join(map(tensor_digest, parts)),
        "random_state": tensor_digest(rng.state()),
        "budget": repr(settings.budget),
        "settings": repr(
            (settings.space, settings.standardize, settings.memory_limit, settings.blend)
        ),
        "scoring": repr(settings.score),
    }
    return Journal(checkpoint.path, about, resume=checkpoint.resume)


def score_of(settings: SearchSettings, material: Material, targets: Standardizer) -> Score | None:
    """Return the score of the settings as a function of scaled predictions and targets."""
    score_given = settings.score
    if score_given is None:
        return None
    # Scores of the user are in the units of the targets.
    truth = xp.to_float64(material.truth) * targets.scale + targets.mean

    def score(values: Float[Array, "v t"]) -> float:
        predicted = xp.to_float64(values) * targets.scale + targets.mean
        loss = float(score_given(predicted, truth, material.held_weights))
        return loss if math.isfinite(loss) else math.inf

    return score


def held_out(
    found: SearchState,
    by_cells: CellSearch | None,
    members: Sequence[Member],
    model: Model,
    scaled: ScaledData,
    index: Int[Array, " s"] | None,
) -> HeldValues:
    """Return predictions of the held-out rows, in the units of the targets.

    - `members`: members of the result.
    - `model`: the model of these members.
    - `index`: indices of the rows of the search; None if the search has all rows.

    If the model learned from the held-out rows, or has cells, the result is the search's own
    predictions, by fits that did not learn from the rows. Otherwise the model predicts the
    validation rows of the first split, from which it did not learn. Cost: nothing, or one
    prediction of these rows.
    """
    scale, material = scaled.of_targets, found.material
    if by_cells is not None and members[0].cells is not None:
        values, material = by_cells.predict_held_out(), by_cells.material
    elif any(member.all_rows for member in members):
        values = found.predict_held_out()
    else:
        # The model was fitted without these rows, and can predict them itself.
        validation = material.splits[0].validation
        rows = subset(scaled.data.rows, validation if index is None else index[validation])
        v, weights = len(validation), material.held_weights
        truth = xp.to_float64(material.truth[:v]) * scale.scale + scale.mean
        return HeldValues(model.predict(rows), truth, None if weights is None else weights[:v])
    predictions, truth = (
        xp.to_float64(part) * scale.scale + scale.mean for part in (values, material.truth)
    )
    return HeldValues(predictions, truth, material.held_weights)
