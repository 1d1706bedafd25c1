"""Types of the parameters of a fit, for editors and mypy.

At run time each is `Any`, so that nothing that looks at annotations, as the checks of types in the
tests do, refuses a value before scikit-learn's rules allow it: in `fit`, in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from typing import Literal, Protocol, TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike
    from torch import Tensor

    from ..cells import Partition
    from ..data import LinearMap, RowSource
    from ..kernels import Kernel
    from ..landmarks import Selector
    from ..losses import Loss
    from ..metric import Metric
    from ..operators import Engine
    from ..solvers import Solver

    class Splitter(Protocol):
        """Methods of scikit-learn's splitters."""

        def split(self, X: Any, y: Any = None) -> Any:
            """Yield pairs of row numbers."""

        def get_n_splits(self, X: Any = None) -> Any:
            """Return how many."""

    KernelLike: TypeAlias = str | Kernel | Callable[[Any, Any], float]
    Lengthscale: TypeAlias = float | Sequence[float] | np.ndarray | str
    Penalty: TypeAlias = float | Sequence[float] | np.ndarray | Literal["auto"]
    LandmarksLike: TypeAlias = int | str | Path | ArrayLike | Tensor | RowSource | Selector | None
    CellsLike: TypeAlias = int | str | Partition | None
    LossLike: TypeAlias = str | Loss
    Folds: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None
    SolverLike: TypeAlias = str | Solver[Any, Any]
    Count: TypeAlias = int
    Number: TypeAlias = float
    Tolerance: TypeAlias = float | Literal["auto"]
    Flag: TypeAlias = bool
    Inputs: TypeAlias = bool | Literal["quantile", "auto"]
    MetricLike: TypeAlias = str | Metric | LinearMap | ArrayLike | None
    OptionalFlag: TypeAlias = bool | None
    EngineLike: TypeAlias = str | Engine
    MemoryLimit: TypeAlias = float | str | None
    Callbacks: TypeAlias = Sequence[Callable[..., Any]]
    FileLike: TypeAlias = str | Path | None
    OptionalCount: TypeAlias = int | None
    OptionalKernel: TypeAlias = KernelLike | None
    OptionalLengthscale: TypeAlias = Lengthscale | None
    OptionalNumber: TypeAlias = float | None
    Starts: TypeAlias = int | Literal["auto"]
    RandomState: TypeAlias = int | np.random.RandomState | None
else:
    KernelLike = Lengthscale = Penalty = LandmarksLike = Folds = SolverLike = Any
    Count = Number = Flag = EngineLike = MemoryLimit = Callbacks = FileLike = Any
    OptionalCount = OptionalKernel = OptionalLengthscale = OptionalNumber = Any
    CellsLike = LossLike = RandomState = Starts = OptionalFlag = Inputs = MetricLike = Tolerance = (
        Any
    )
