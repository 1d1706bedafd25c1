"""Types of parameters: what users may give for kernels, landmarks, penalties and others."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from .._arrays import Array
from ..cells import Partition
from ..data import LinearMap, RowSource
from ..kernels import Kernel
from ..landmarks import Selector
from ..losses import Loss
from ..metric import Metric
from ..operators import Engine
from ..solvers import Solver

# Estimators and settings import all of these: `get_type_hints` evaluates the annotations of
# inherited fields in the module of the subclass.
__all__ = [
    "Callbacks",
    "CellsLike",
    "Count",
    "EngineLike",
    "FileLike",
    "Flag",
    "Folds",
    "Indices",
    "Inputs",
    "KernelLike",
    "LandmarksLike",
    "Lengthscale",
    "LossLike",
    "MemoryLimit",
    "MetricLike",
    "Number",
    "OptionalCount",
    "OptionalFlag",
    "OptionalKernel",
    "OptionalLengthscale",
    "OptionalNumber",
    "Penalty",
    "Points",
    "RandomState",
    "ScoringLike",
    "SolverLike",
    "Starts",
    "Tolerance",
    "Verbosity",
]


@runtime_checkable
class Splitter(Protocol):
    """Methods of scikit-learn's splitters."""

    def split(self, X: Any, y: Any = None) -> Any:
        """Yield pairs of row numbers."""

    def get_n_splits(self, X: Any = None) -> Any:
        """Return the number of folds."""


@runtime_checkable
class SupportsArray(Protocol):
    """Arrays and frames. NumPy's `ArrayLike` would take eight lines of each printed signature."""

    def __array__(self) -> np.ndarray:
        """Return the values."""


KernelLike: TypeAlias = str | Kernel | Callable[[Any, Any], float]
Lengthscale: TypeAlias = float | Sequence[float] | np.ndarray | str
Penalty: TypeAlias = float | Sequence[float] | np.ndarray | Literal["auto"]
Points: TypeAlias = SupportsArray | Sequence[Sequence[float]] | Array | RowSource
LandmarksLike: TypeAlias = int | str | Path | Points | Selector | None
CellsLike: TypeAlias = int | str | Partition | None
LossLike: TypeAlias = str | Loss
Indices: TypeAlias = SupportsArray | Sequence[int]
Folds: TypeAlias = int | Splitter | Iterable[tuple[Indices, Indices]] | None
ScoringLike: TypeAlias = str | Callable[..., float] | None
SolverLike: TypeAlias = str | Solver[Any, Any]
Count: TypeAlias = int
Number: TypeAlias = float
Tolerance: TypeAlias = float | Literal["auto"]
Flag: TypeAlias = bool
Inputs: TypeAlias = bool | Literal["quantile", "auto"]
MetricLike: TypeAlias = str | Metric | LinearMap | SupportsArray | Sequence[Sequence[float]] | None
OptionalFlag: TypeAlias = bool | None
EngineLike: TypeAlias = str | Engine
MemoryLimit: TypeAlias = float | str | None
Callbacks: TypeAlias = Sequence[Callable[..., Any]]
FileLike: TypeAlias = str | Path | None
OptionalCount: TypeAlias = int | None
OptionalKernel: TypeAlias = KernelLike | None
OptionalLengthscale: TypeAlias = Lengthscale | None
OptionalNumber: TypeAlias = float | None
Verbosity: TypeAlias = int | Literal["auto"]
Starts: TypeAlias = int | Literal["auto"]
RandomState: TypeAlias = int | np.random.RandomState | None
