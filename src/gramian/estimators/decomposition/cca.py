"""Canonical correlations between the Nystrom features of two views of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array
from ..._messages.checks import as_count, as_positive
from ..._parameters.types import (
    Count,
    EngineLike,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    Number,
    OptionalKernel,
    OptionalLengthscale,
    OptionalNumber,
    RandomState,
)
from ...approximations import FeatureMap, Moments
from ...data import RowSource, refuse_remote
from ...fitting.settings import resolve
from ...kernels import Kernel
from .. import validation
from ..base import restore_on_error
from ..types import RowsLike, Values
from .base import NystromEstimator, component_count
from .projection import project_features


@dataclass(eq=False, repr=False)
class KernelCCA(NystromEstimator):
    r"""Regularised kernel canonical correlation analysis on data of any size.

    Finds functions f of x and g of y with correlated values: pairs that maximise the covariance
    of f(x) and g(y) subject to :math:`\mathrm{var} f + \lambda_x \|f\|^2 = \mathrm{var} g +
    \lambda_y \|g\|^2 = 1`, each pair uncorrelated in this sense with those before it.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    kernel, lengthscale, landmarks
        Kernel and landmarks of the first view, as in `KernelPCA`.
    penalty : float, default=1e-3
        Ridge per sample :math:`\lambda_x`. A small one finds correlations in any data.
    kernel_y, lengthscale_y, landmarks_y, penalty_y : default=None
        Parameters of the second view. None: as for the first view, but ``kernel_y`` alone implies
        the lengthscale ``"median"``.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that a call may allocate. None: the memory of the machine.
    random_state : int, RandomState or None, default=None
        For random landmarks and the median heuristic.

    Attributes
    ----------
    correlations_ : ndarray of shape (k,)
        The regularised correlations, largest first: covariances in the units above.
    x_weights_, y_weights_ : ndarray of shape (s_x, k), (s_y, k)
        Weights of the functions in the feature spaces.
    x_mean_, y_mean_ : ndarray
        Means of the features.
    map_, map_y_ : NystromMap
    kernel_, kernel_y_ : Kernel
        Kernels with their lengthscales.
    landmark_index_, landmark_index_y_ : ndarray, or None
    n_features_in_, feature_names_in_
        Features of the first view, as in `NystromTransformer`.

    See Also
    --------
    sklearn.cross_decomposition.CCA : Linear, without a penalty.

    Notes
    -----
    Features are centered, which centers the rows in the space of the kernel. Signs make the largest
    entry of each column of ``x_weights_`` positive.

    Cost of `fit`: twice the cost of `NystromTransformer`; one pass over both views at once, n m
    kernel evaluations each; about 20 (s_x + s_y)³ operations and 40 (s_x + s_y)² bytes; no memory
    that grows with n.

    With landmarks drawn by their ridge leverage scores for the ridges :math:`n \epsilon \lambda_x`
    and :math:`n \epsilon \lambda_y` of the unnormalised matrices, the correlation is within about
    :math:`\epsilon` of the correlation of the exact kernels [1]_.

    References
    ----------
    .. [1] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017, table 1 and
       theorem 19.
    .. [2] Hardoon, Szedmak, Shawe-Taylor, *Canonical correlation analysis*, Neural Computation 16,
       2004, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelCCA
    >>> t = np.linspace(-3, 3, 300)
    >>> X, Y = t[:, None], np.column_stack([np.sin(t), np.cos(t)])
    >>> bool(KernelCCA(1, random_state=0).fit(X, Y).score(X, Y) > 0.99)
    True
    """

    n_components: Count = 2
    _: KW_ONLY
    kernel: KernelLike = "gaussian"
    lengthscale: Lengthscale = "median"
    landmarks: LandmarksLike = "auto"
    penalty: Number = 1e-3
    kernel_y: OptionalKernel = None
    lengthscale_y: OptionalLengthscale = None
    landmarks_y: LandmarksLike = None
    penalty_y: OptionalNumber = None
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Tags:
        """Declare that `fit` requires a second view."""
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: RowsLike, y: RowsLike) -> KernelCCA:
        """Find the pairs of functions.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of the first view; see `KernelRidge.fit`.
        y : as X
            n rows of the second view, or numbers of shape (n,).

        Returns
        -------
        KernelCCA
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, or does not fit in memory.
        """
        with restore_on_error(self):
            as_count(self.n_components, "n_components")
            penalty = as_positive(self.penalty, "penalty")
            penalty_of_y = (
                penalty if self.penalty_y is None else as_positive(self.penalty_y, "penalty_y")
            )
            for side in (X, y):
                refuse_remote(
                    side,
                    "KernelCCA reads two sets of rows in parallel, which rows on a cluster do not "
                    "support; fit it to a sample, rows.take(index)",
                )
            second = validation.second_view(y)
            rows = validation.unlabelled_rows(self, X, least=2)
            check_consistent_length(np.empty((len(rows), 0)), np.empty((len(second), 0)))
            self._build_maps(rows, second)
            self._correlate(rows, second, penalty, penalty_of_y)
            self.n_features_y_ = second.shape[1]
        return self

    def _build_maps(self, rows: RowSource, second: RowSource) -> None:
        # Four generators: other settings of one view do not change the draws for the other view.
        of_x, points_x, of_y, points_y = validation.generators(self.random_state, 4)
        self.kernel_ = self._resolved_kernel(rows, of_x)
        self.kernel_y_ = resolve.kernel_for(self._kernel_of_y(), second, of_y, "y")
        landmarks = self.landmarks
        self.map_, chosen = self._map(rows, self.kernel_, points_x, landmarks=landmarks)
        landmarks = landmarks if self.landmarks_y is None else self.landmarks_y
        self.map_y_, chosen_y = self._map(second, self.kernel_y_, points_y, landmarks=landmarks)
        self.landmark_index_ = chosen.index
        self.landmark_index_y_ = chosen_y.index

    def _kernel_of_y(self) -> Kernel:
        if self.kernel_y is None:
            lengthscale = self.lengthscale if self.lengthscale_y is None else self.lengthscale_y
            return resolve.kernel(self.kernel, lengthscale)
        # A kernel of its own does not inherit a lengthscale in the units of the first view.
        lengthscale = "median" if self.lengthscale_y is None else self.lengthscale_y
        return resolve.kernel(self.kernel_y, lengthscale)

    def _correlate(self, rows: RowSource, second: RowSource, penalty: float, other: float) -> None:
        # 1. Covariance of the features of both views, from one pass over both.
        memory = self._passes(self.map_, self.map_y_)
        both = _side_by_side(
            _features(self.map_, rows, memory), _features(self.map_y_, second, memory)
        )
        moments, s = Moments.of(both), self.map_.width
        C = moments.scatter / moments.count
        # 2. Whitened by regularised inverse roots, the singular values of the cross-covariance are
        # the correlations.
        of_x, of_y = _inverse_root(C[:s, :s], penalty), _inverse_root(C[s:, s:], other)
        U, values, Vt = np.linalg.svd(of_x @ C[:s, s:] @ of_y, full_matrices=False)
        k = component_count(self.n_components, len(values))
        left_vectors, right = of_x @ U[:, :k], of_y @ Vt[:k].T
        # 3. A pair may change both signs: the largest weight of the first view is made positive.
        largest = xp.take_along(
            left_vectors, xp.abs(left_vectors).argmax(axis=0, keepdims=True), axis=0
        )
        sign = xp.where(largest < 0, -1.0, 1.0)
        self.correlations_ = values[:k]
        self.x_weights_, self.y_weights_ = (
            left_vectors * sign,
            right * sign,
        )
        self.x_mean_, self.y_mean_ = moments.mean[:s], moments.mean[s:]

    def transform(  # type: ignore[override]  # with y, a pair
        self, X: RowsLike, y: RowsLike | None = None
    ) -> Values | tuple[Values, Values]:
        """Return the values of the functions of the first view, for new rows.

        Parameters
        ----------
        X : as in `fit`
        y : as in `fit`, optional

        Returns
        -------
        ndarray of shape (n, k), or a pair of such
            Values for the first view, and with `y` for the second, in the dtypes of the views.
        """
        check_is_fitted(self)
        rows = validation.new_rows(self, X)
        scores = self._scores(rows, self.map_, self.x_mean_, self.x_weights_)
        if y is None:
            return scores
        second = validation.second_view(y)
        if second.shape[1] != self.n_features_y_:
            raise ValueError(
                f"y has {second.shape[1]} features, but KernelCCA was fitted with "
                f"{self.n_features_y_}"
            )
        return scores, self._scores(second, self.map_y_, self.y_mean_, self.y_weights_)

    def _scores(
        self, rows: RowSource, mapping: FeatureMap, mean: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        fn = partial(project_features, mapping, mean, weights)
        size = mapping.block_size(rows, self._result(rows, weights.shape[1]))
        return rows.map(fn, size=size)

    def score(self, X: RowsLike, y: RowsLike) -> float:
        """Return the mean correlation of the pairs of functions.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        float
            Mean correlation without the penalty, at most 1; a constant pair counts 0.
        """
        first, second = (side.astype(np.float64) for side in self._both(X, y))
        first, second = first - first.mean(axis=0), second - second.mean(axis=0)
        # A constant function has norm zero: the inner `where` avoids 0 / 0, the outer one counts
        # the pair as 0.
        norms = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
        products = (first * second).sum(axis=0)
        return float(np.mean(np.where(norms > 0, products / np.where(norms > 0, norms, 1), 0)))

    def _both(self, X: RowsLike, y: RowsLike) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        rows, second = validation.new_rows(self, X), validation.second_view(y)
        check_consistent_length(np.empty((len(rows), 0)), np.empty((len(second), 0)))
        return (
            self._scores(rows, self.map_, self.x_mean_, self.x_weights_),
            self._scores(second, self.map_y_, self.y_mean_, self.y_weights_),
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.x_weights_.shape[1])


def _features(mapping: FeatureMap, rows: RowSource, memory: int) -> Iterator[Array]:
    for _, _, F in mapping.strips(rows, memory_bytes=memory):
        yield xp.to_float64(F)


def _side_by_side(first: Iterator[Array], second: Iterator[Array]) -> Iterator[Array]:
    """Join blocks of two sequences with different block boundaries."""
    # Maps of different widths have different block sizes: the rest of the longer block waits for
    # the next block of the other view.
    a, b = next(first, None), next(second, None)
    while a is not None and b is not None:
        k = min(len(a), len(b))
        yield xp.concat([a[:k], b[:k]], axis=1)
        a = a[k:] if len(a) > k else next(first, None)
        b = b[k:] if len(b) > k else next(second, None)


def _inverse_root(C: Array, penalty: float) -> Array:
    """Return (C + penalty I)^(-1/2)."""
    values, vectors = la.eigenpairs(C)
    # Eigenvalues of a covariance are negative only by rounding.
    return (vectors / xp.sqrt(values.clip(min=0) + penalty)) @ vectors.T
