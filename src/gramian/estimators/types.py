"""Types of the arguments of methods: rows, targets, weights; at run time each is `Any`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Literal, TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix
    from sklearn.base import TransformerMixin

    from .._parameters.types import LandmarksLike
    from ..approximations import FeatureMap
    from ..data import ReadOptions, RowSource, Table

    Records: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
    RowsLike: TypeAlias = ArrayLike | sparray | spmatrix | str | Path | RowSource | Table | Records
    TargetsLike: TypeAlias = ArrayLike | str | tuple[str, ...]
    Weights: TypeAlias = ArrayLike | str | None
    Values: TypeAlias = np.ndarray  # or a lazy dask array
    Deviations: TypeAlias = bool | Literal["errors"]
    Labels: TypeAlias = ArrayLike | None
    Columns: TypeAlias = Sequence[str] | None
    Groups: TypeAlias = ArrayLike | str | None
    Read: TypeAlias = Mapping[str, Any] | ReadOptions | None
    FeaturesLike: TypeAlias = LandmarksLike | FeatureMap | TransformerMixin
    Norm: TypeAlias = Literal["spectral", "frobenius", "trace"]
    ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None
else:
    FeaturesLike = Norm = RowsLike = TargetsLike = Weights = Labels = ClassWeight = Any
    Columns = Groups = Read = Values = Deviations = Any
