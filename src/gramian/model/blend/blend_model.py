"""Weighted mean of a kernel model and boosted trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from ..._arrays import Array, Float
from ...conformal import ConformalPredictor
from ...engines import Engine
from ..average import AverageModel, CombinedModel
from ..base import KernelPart, Model
from ..file.checks import check_blend, check_parts
from ..file.write import write_model
from .trees import Trees


@dataclass(frozen=True)
class BlendModel(CombinedModel):
    """The mean ``weight * kernel_model + (1 - weight) * trees`` of the values of two models.

    Parameters
    ----------
    kernel_model : KernelModel or AverageModel
        The blend has the features, classes, encoding, targets and map to probabilities of this
        model.
    trees : Trees
        Trees of the same features, in the same units.
    weight : float
        Weight of the kernel model, from 0 to 1.
    info : mapping, optional
        Facts about the blend that JSON can hold.
    conformal : ConformalPredictor, optional
        Calibration of prediction intervals, or of sets of classes, of the blend.

    Raises
    ------
    ValueError
        If the weight is not from 0 to 1, or the models differ in their targets.

    Notes
    -----
    Trees are constant between their splits: a blend has no gradients, and no standard deviations.
    """

    kernel_model: Model
    trees: Trees
    weight: float
    info: Mapping[str, Any] = field(default_factory=dict)
    conformal: ConformalPredictor | None = None

    def __post_init__(self) -> None:
        check_blend(self.trees, self.weight, self.kernel_model.outputs)
        self._describe_as(self.kernel_model)

    @property
    def parts(self) -> tuple[KernelPart, ...]:
        return self.kernel_model.parts

    @property
    def shares(self) -> tuple[float, ...]:
        return self.kernel_model.shares

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t"]:
        """Return the mean of the values of kernel model and trees; see `Model.predict`."""
        rows = self.rows(X)
        values = self.kernel_model.predict(rows, engine=engine, memory_bytes=memory_bytes)
        return self.weight * values + (1 - self.weight) * self.trees.predict(rows)

    def feature_importances(
        self, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, " d"]:
        """Return the mean of the importances of both; for trees, shares in split gains."""
        shares = self.kernel_model.feature_importances(engine=engine, memory_bytes=memory_bytes)
        return self.weight * shares + (1 - self.weight) * self.trees.feature_importances()

    def gradient(self, X: Any, **settings: Any) -> NoReturn:
        """Raise ValueError, because trees have no gradients."""
        self._refuse("gradients")

    def deviations(self, X: Any, **settings: Any) -> NoReturn:
        """Raise ValueError: trees have no variance."""
        self._refuse("standard deviations")

    def out_of_range(self, X: Any, **settings: Any) -> NoReturn:
        """Raise ValueError: trees have no variance."""
        self._refuse("standard deviations")

    @staticmethod
    def _refuse(name: str) -> NoReturn:
        raise ValueError(
            f"a blend with trees has no {name}: use its kernel_model, or fit without blend"
        )

    def save(self, path: str | Path) -> None:
        """Write kernel model and trees to one file, trees in LightGBM's text format."""
        for part in self.parts:
            check_parts({f.name: getattr(part, f.name) for f in fields(part)})
        model = self.kernel_model
        write_model(path, self, model.weights if isinstance(model, AverageModel) else None)
