"""Base classes of the estimators on features: landmarks, map and memory."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._messages.checks import as_bytes, as_count, readable_bytes
from ..._parallel.machine import machine_memory
from ..._parameters.types import (
    EngineLike,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    OptionalCount,
    RandomState,
)
from ...approximations import FeatureMap, KernelColumns, NystromMap
from ...data import RowSource, is_collection
from ...fitting.inputs.kernel_matrix import announce_calls, check_matrix_settings, of_matrix
from ...fitting.inputs.objects import ObjectRows
from ...fitting.methods.base import given_points
from ...fitting.plans.memory import LEAST_BLOCKS
from ...fitting.settings import landmarks as landmark_settings
from ...fitting.settings import resolve
from ...kernels import Kernel
from ...landmarks import Landmarks
from ...operators import KernelOperator
from ...solvers import BLOCK_BYTES
from .. import validation
from ..base import check_names, has_features, is_matrix, lazily, set_parameters
from ..types import RowsLike, Values


class FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformer from rows of any source to a dense array, with a memory limit."""

    map_: FeatureMap
    kernel: KernelLike
    lengthscale: Lengthscale
    memory_limit: MemoryLimit
    random_state: RandomState

    def __new__(cls: type[Transformer], *_args: object, **params: object) -> Transformer:
        """Raise an error for unknown parameters before `__init__`, with the names in gramian."""
        check_names(cls, params, TypeError)
        estimator: Transformer = super().__new__(cls)
        return estimator

    def set_params(self: Transformer, **params: Any) -> Transformer:
        """Set parameters, and parameters of kernel objects, as in ``kernel__lengthscale``."""
        set_parameters(self, params)
        return self

    def __sklearn_tags__(self) -> Tags:
        """Accept sparse rows, split a kernel matrix in both dimensions, and keep float32."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_matrix(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _room(self) -> int:
        """Return the memory limit in bytes."""
        limit = self.memory_limit
        return machine_memory() if limit is None else as_bytes(limit)

    def _resolved_kernel(self, rows: RowSource, rng: RandomStream) -> Kernel:
        names = getattr(self, "feature_names_in_", None)
        kernel = resolve.kernel(self.kernel, self.lengthscale).with_names(names)
        return resolve.kernel_for(kernel, rows, rng)

    def _blocks(self, used: int, what: str) -> int:
        """Return the memory for blocks of rows beyond `used`; raise ValueError if too little."""
        free_bytes = self._room() - used
        if free_bytes < LEAST_BLOCKS:
            allowed = "this process may use" if self.memory_limit is None else "memory_limit allows"
            raise ValueError(
                f"{what} and blocks of rows need {readable_bytes(used + LEAST_BLOCKS)}, but "
                f"{allowed} {readable_bytes(self._room())}"
            )
        return min(free_bytes, BLOCK_BYTES)

    def _result(self, rows: RowSource, columns: int) -> int:
        """Return the memory for blocks next to a result of `columns` columns."""
        used = len(rows) * columns * rows.dtype.itemsize
        what = f"the {len(rows):,} x {columns:,} result (transform fewer rows at a time)"
        free_bytes = self._blocks(used, what)
        return max(free_bytes // 2, min(free_bytes, LEAST_BLOCKS))  # features are copied once

    def transform(self, X: RowsLike) -> Values:
        """Return the features of rows; of `KernelPCA`, their components.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, s)
            Features in the dtype of X; Float64 if X has integers that need it.
        """
        if is_collection(X):
            return lazily(self, "transform", X)
        check_is_fitted(self)
        rows = validation.new_rows(self, X)
        return self._transform_rows(rows, self._result(rows, self._n_features_out))

    def _transform_rows(self, rows: RowSource, memory_bytes: int) -> np.ndarray:
        return self.map_.features(rows, memory_bytes=memory_bytes)

    @property
    def _n_features_out(self) -> int:
        return self.map_.width


Transformer = TypeVar("Transformer", bound=FeatureTransformer)


class NystromEstimator(FeatureTransformer):
    """Transformer on the Nystrom features of its rows."""

    map_: NystromMap | KernelColumns
    landmarks: LandmarksLike
    engine: EngineLike

    def _fit_map(
        self,
        rows: RowSource,
        for_kernel: RandomStream,
        for_landmarks: RandomStream,
        *,
        m: int | None = None,
        rank: int | None = None,
    ) -> tuple[Kernel, RowSource, Landmarks]:
        """Set `map_` and `landmark_index_`; return the kernel, its rows and the landmarks."""
        kernel, own_rows = self._kernel_of(rows, for_kernel, m)
        self.map_, chosen = self._map(
            own_rows, kernel, for_landmarks, landmarks=self.landmarks, m=m, rank=rank
        )
        self.landmark_index_ = chosen.index
        return kernel, own_rows, chosen

    def _rank(self, n_components: OptionalCount) -> int | None:
        return None if n_components is None else as_count(n_components, "n_components")

    def _kernel_of(
        self, rows: RowSource, rng: RandomStream, m: int | None = None
    ) -> tuple[Kernel, RowSource]:
        """Return the kernel and its rows, which are row numbers for a given matrix."""
        if has_features(self.kernel):
            return self._resolved_kernel(rows, rng), rows
        # A given matrix has no features: row numbers take the place of rows, and a kernel that
        # looks up entries takes the place of the kernel.
        check_matrix_settings(self.lengthscale, self.landmarks, rows)
        announce_calls(rows, self.landmarks, m)
        return of_matrix(rows)

    def _kernel_kept(self, kernel: Kernel, rows: RowSource, index: Array | None) -> object:
        """Return the value of `kernel_`; for a given matrix, let the map read its columns."""
        if has_features(self.kernel) or index is None:
            return kernel
        count = len(rows)
        if isinstance(rows, ObjectRows):
            # New objects are compared with the landmarks alone: m calls a row, not n.
            self.objects_ = [rows.calls.objects[i] for i in index.tolist()]
            count, index = len(index), xp.arange(len(index))
        # A new row of a matrix has a column for each training row: the map picks the landmarks.
        self.map_ = KernelColumns(index, self.map_.normalizer, count)
        return self.kernel

    def _map(
        self,
        rows: RowSource,
        kernel: Kernel,
        rng: RandomStream,
        *,
        landmarks: LandmarksLike,
        m: int | None = None,
        rank: int | None = None,
    ) -> tuple[NystromMap, Landmarks]:
        """Select the landmarks, m if a selector is named, and build their Nystrom map."""
        memory = self._blocks(0, "features")
        K = KernelOperator(kernel, rows, rows, self.engine, memory)
        chosen = chosen_landmarks(K, landmarks, m, rng)
        count = chosen.points.shape[0]
        # Five float64 matrices at the peak: the kernel matrix, eigenvectors with their workspace,
        # and the normaliser.
        memory = self._blocks(40 * count**2, f"the factors of {count:,} landmarks")
        mapping = NystromMap.build(
            kernel, chosen.points, rank, engine=self.engine, memory_bytes=memory
        )
        return mapping, chosen

    def _passes(self, *maps: NystromMap | KernelColumns, more: int = 0) -> int:
        """Return the memory for blocks of each map, after the maps, all moments and `more` bytes.

        The copies of a block of features take half of this memory.
        """
        held_bytes = sum(8 * xp.size(mapping.normalizer) for mapping in maps)
        width = sum(mapping.width for mapping in maps)
        used = held_bytes + 40 * width**2 + more
        free_bytes = self._blocks(used, f"the covariance of {width:,} features")
        # Half of the memory is for copies, unless tiles would no longer fit into the other half.
        return max(free_bytes // (2 * len(maps)), min(free_bytes, LEAST_BLOCKS) // len(maps))


def chosen_landmarks(
    K: KernelOperator, landmarks: LandmarksLike, m: int | None, rng: RandomStream
) -> Landmarks:
    """Select landmarks; the name of a selector selects m, or its default number."""
    n = K.shape[0]
    selector = landmark_settings.selector(landmarks, n, sequential=not K.rows.random_access)
    if isinstance(selector, RowSource):
        return given_points(selector, K)
    if selector is None:
        # All rows are landmarks, each with weight one.
        index = xp.arange(n)
        return Landmarks(K.points(index), xp.ones(n, xp.float64), index)
    # A selector object has its own number, which ``n_components`` must not replace.
    if isinstance(landmarks, str) and m is not None:
        selector = replace(selector, m=m)
    return selector.select(K, rng=rng)


def component_count(requested: OptionalCount, available: int) -> int:
    """Return the requested number of components, at most `available`."""
    if requested is None:
        return available
    if as_count(requested, "n_components") > available:
        # Level 4 is the line of the user: below are this function, the private method and `fit`.
        warnings.warn(
            f"n_components={requested} exceeds the {available} dimensions that the features span: "
            f"keeping {available}",
            stacklevel=4,
        )
    return min(int(requested), available)
