"""Weighted mean of kernel models of the same inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from ..conformal import ConformalPredictor
from ..data import Encoding, ReadOptions
from ..engines import Engine
from .base import KernelPart, Label, Model
from .file.checks import check_average, check_parts, same_encoding
from .file.write import write_model
from .uncertainty.probabilities import Probabilities

SHARED_FIELDS = ("feature_names", "classes", "target", "probabilities", "reading")


@dataclass(frozen=True)
class CombinedModel(Model):
    """Base of models that combine others, with the description of these."""

    feature_names: tuple[str, ...] | None = field(init=False)
    classes: tuple[Label, ...] | None = field(init=False)
    encoding: Encoding | None = field(init=False)
    target: tuple[str, ...] | None = field(init=False)
    probabilities: Probabilities | None = field(init=False)
    reading: ReadOptions | None = field(init=False)

    def _describe_as(self, model: Model) -> None:
        """Take the names, classes, encoding and map to probabilities of a model."""
        for name in (*SHARED_FIELDS, "encoding"):
            # A frozen dataclass refuses plain assignment, also in its own `__post_init__`.
            object.__setattr__(self, name, getattr(model, name))


@dataclass(frozen=True)
class AverageModel(CombinedModel):
    """Model whose values are the weighted mean of the values of several kernel models.

    Parameters
    ----------
    weights : tuple of float
        Weights of the models: at least 0, with sum 1.
    models : tuple of KernelPart
        Models with the same features, classes, encoding, targets and map to probabilities. Their
        ``info`` is not saved.
    info : mapping, optional
        Facts about the average that JSON can hold.
    conformal : ConformalPredictor, optional
        Calibration of prediction intervals, or of sets of classes.

    Raises
    ------
    ValueError
        If the models differ in their features or targets.

    Notes
    -----
    A prediction costs as much as the predictions of all models. Gradients are means as well. Memory
    and the file contain the encoding once, and the centers of each model, mapped by its own maps.
    """

    weights: tuple[float, ...]
    models: tuple[KernelPart, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    conformal: ConformalPredictor | None = None

    def __post_init__(self) -> None:
        check_average(self.weights, [_parts(model) for model in self.models])
        first = self.models[0]
        for name in SHARED_FIELDS:
            if any(getattr(model, name) != getattr(first, name) for model in self.models):
                raise ValueError(f"the models of an average must have the same {name}")
        if not all(same_encoding(model.encoding, first.encoding) for model in self.models):
            raise ValueError("the models of an average must have the same encoding")
        self._describe_as(first)

    @property
    def parts(self) -> tuple[KernelPart, ...]:
        return self.models

    @property
    def shares(self) -> tuple[float, ...]:
        return self.weights

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t"]:
        """Return the mean of the models' values; see `Model.predict`."""
        rows = self.rows(X)
        return self._mean(
            model.predict(rows, engine=engine, memory_bytes=memory_bytes) for model in self.models
        )

    def gradient(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t d"]:
        """Return the mean of the models' gradients; see `Model.gradient`."""
        rows = self.rows(X)
        return self._mean(
            model.gradient(rows, engine=engine, memory_bytes=memory_bytes) for model in self.models
        )

    def feature_importances(
        self, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, " d"]:
        """Return the mean of the models' importances; see `Model.feature_importances`."""
        return self._mean(
            model.feature_importances(engine=engine, memory_bytes=memory_bytes)
            for model in self.models
        )

    def _mean(self, values: Iterable[Array]) -> Array:
        """Return the weighted mean of tensors, computed one after the other."""
        # `values` is a generator: besides the sum, only the values of one model are in memory. The
        # sum begins as a scalar, and takes the shape of the first values.
        total = xp.zeros((), xp.float64)
        for weight, value in zip(self.weights, values, strict=True):
            total = total + weight * value
        return total

    def save(self, path: str | Path) -> None:
        """Write all models to one file; see `Model.save`."""
        for model in self.models:
            # A file of parts that do not fit together would be refused by `load_model`.
            check_parts(_parts(model))
        write_model(path, self, self.weights)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> AverageModel:
        """Read an average written by `save`; see `KernelModel.load`."""
        from .file.read import load_as  # which imports this module

        return load_as(cls, path, verify)


def _parts(model: KernelPart) -> dict[str, Any]:
    return {f.name: getattr(model, f.name) for f in fields(model)}
