"""KernelKMeans: k-means on Nystrom features, in memory or in passes over the rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ..._messages.checks import as_count
from ..._parameters.types import (
    Count,
    EngineLike,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    Number,
    OptionalCount,
    RandomState,
    Starts,
)
from ...data import RowSource, Sum, as_rows
from .. import validation
from ..base import restore_on_error
from ..types import RowsLike, Weights
from .base import NystromEstimator
from .lloyd import Lloyd, distances, inertia, nearest_centers

MOST_REMOTE_ROWS = 10_000
"""Most remote rows that are gathered to find initial centers."""


@dataclass(eq=False, repr=False)
class KernelKMeans(ClusterMixin, NystromEstimator):
    r"""Kernel k-means clustering on data of any size.

    k-means on the Nystrom features of :math:`\hat K`, or of K with all rows as landmarks.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k.
    kernel : str or Kernel, default="gaussian"
        One of `gramian.kernels.names`, or a kernel object with its own lengthscale.
        ``"precomputed"``: X is its n x n matrix, and new rows have n columns; a function of two
        objects, where X is a list of objects, as in `KernelRidge`.
    lengthscale : float, sequence of d floats, or "median", default="median"
        As in `KernelRidge`.
    landmarks : None, int, str, array of shape (m, d) or Selector, default="auto"
        As in `KernelRidge`. None: all rows.
    n_components : int or None, default=None
        Largest number of features, as in `NystromTransformer`.
    n_init : int or "auto", default="auto"
        Runs of scikit-learn's KMeans; the best is kept. "auto": one, from k-means++.
    max_iter : int, default=300
        Iterations of Lloyd's algorithm.
    tol : float, default=1e-4
        Movement of the centers, relative to the variance of the features, at which it stops.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that a call may allocate. None: the memory of the machine. If the features of all
        rows do not fit into a quarter of it, they are computed again in each iteration.
    random_state : int, RandomState or None, default=None
        For random landmarks, the median heuristic and the first centers.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
    inertia_ : float
        Weighted sum of the squared distances of the features from their centers. The residual of
        the landmarks, ``k(x, x) - |f(x)|²``, does not depend on the clusters and is left out.
    cluster_centers_ : ndarray of shape (k, s)
        Centers in the space of the features.
    n_iter_ : int
    map_ : NystromMap
    kernel_, landmark_index_, n_features_in_, feature_names_in_
        As in `NystromTransformer`.

    See Also
    --------
    sklearn.cluster.KMeans : The algorithm on features in memory.

    Notes
    -----
    Cost of `fit`: a fit of `NystromTransformer`; the features, n m kernel evaluations and 2 n m s
    operations; n s k operations an iteration; n s numbers of memory. If these do not fit:
    KMeans on the features of as many random rows as fit, then iterations over all rows, each
    of which recomputes the features in one pass.

    With landmarks drawn by their ridge leverage scores for the ridge :math:`\frac{\epsilon}{k}
    \sum_{i>k} \sigma_i(K)` of the unnormalised matrix (here ``n * penalty``), whose effective
    dimension is at most :math:`k + k / \epsilon`, and as many as that up to a logarithm, the
    best clustering of :math:`\hat K` is within a factor :math:`1 + \epsilon` of the best of K,
    k the number of clusters [1]_.

    References
    ----------
    .. [1] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017, table 1 and
       theorem 17.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from gramian import KernelKMeans
    >>> X, y = make_circles(200, factor=0.2, noise=0.05, random_state=0)
    >>> clusters = KernelKMeans(2, lengthscale=0.5, n_init=5, random_state=0).fit(X)
    >>> clusters.labels_.shape
    (200,)
    """

    n_clusters: Count = 8
    _: KW_ONLY
    kernel: KernelLike = "gaussian"
    lengthscale: Lengthscale = "median"
    landmarks: LandmarksLike = "auto"
    n_components: OptionalCount = None
    n_init: Starts = "auto"
    max_iter: Count = 300
    tol: Number = 1e-4
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None, sample_weight: Weights = None) -> KernelKMeans:
        """Cluster the rows.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of d features; see `KernelRidge.fit`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Nonnegative: weight 2 counts a row twice; a row of weight 0 gets a label but moves no
            center. Landmarks and the median distance do not depend on the weights.

        Returns
        -------
        KernelKMeans
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, or does not fit in memory.
        """
        with restore_on_error(self):
            count = as_count(self.n_clusters, "n_clusters")
            as_count(self.max_iter, "max_iter")
            rank = self._rank(self.n_components)
            rows = validation.unlabelled_rows(self, X)
            if len(rows) < count:
                # In the words of scikit-learn's KMeans, which `check_estimator` expects.
                raise ValueError(f"n_samples={len(rows)} should be >= n_clusters={count}")
            weights = validation.weight_tensor(sample_weight, len(rows))
            for_kernel, for_landmarks, rng = validation.generators(self.random_state, 3)
            kernel, own_rows, chosen = self._fit_map(rows, for_kernel, for_landmarks, rank=rank)
            # Before `_kernel_kept`, whose map for a given matrix no longer reads row numbers.
            self._cluster(own_rows, weights, rng)
            self.kernel_ = self._kernel_kept(kernel, rows, chosen.index)
        return self

    def _cluster(
        self, rows: RowSource, weights: Float[Array, " n"] | None, rng: RandomStream
    ) -> None:
        n, memory = len(rows), self._passes(self.map_)
        # 1. If all features fit into memory, scikit-learn's KMeans clusters them.
        share = self._share(rows)
        if rows.fits(share // self.map_.width):
            self._in_memory(self.map_.features(rows, memory_bytes=memory), weights, rng)
            return
        # 2. Otherwise it finds initial centers from as many random rows as fit, but at least ten
        # rows for each cluster.
        sample_limit = share // (self.map_.width + rows.shape[1])
        sample_limit = sample_limit if rows.fits() else min(sample_limit, MOST_REMOTE_ROWS)
        count = max(sample_limit, min(n, 10 * self.n_clusters))
        # Sorted, so that a file is read from front to back.
        index = xp.sort(rng.sample(n, count))
        sample = as_rows(rows.take(index))
        sample_weight_part = None if weights is None else weights[index]
        start = self._in_memory(
            self.map_.features(sample, memory_bytes=memory), sample_weight_part, rng
        )
        # 3. Lloyd's algorithm on all rows, whose blocks need the memory of the sample.
        del sample
        lloyd = Lloyd.run(self.map_, rows, start, self.max_iter, float(self.tol), memory, weights)
        # `_in_memory` has set these attributes for the sample: replace them.
        self.cluster_centers_ = xp.cast(lloyd.centers, rows.dtype)
        self.labels_, self.inertia_ = lloyd.labels, lloyd.inertia
        self.n_iter_ = lloyd.iterations

    def _share(self, rows: RowSource) -> int:
        """Return the largest number of entries of the features in memory: a quarter of the limit.

        KMeans copies the features once, to compute their variance.
        """
        return self._room() // (4 * rows.dtype.itemsize)

    def _in_memory(
        self, features: Array, weights: Float[Array, " n"] | None, rng: RandomStream
    ) -> Array:
        """Cluster features in memory and return the centers, in float64."""
        from sklearn.cluster import KMeans  # imports take a third of a second

        seed = int(rng.integers(2**31 - 1, size=()))
        clustering = KMeans(
            self.n_clusters,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
            copy_x=False,  # the features are ours
        ).fit(features, sample_weight=None if weights is None else weights)
        self.cluster_centers_, self.labels_ = clustering.cluster_centers_, clustering.labels_
        self.inertia_, self.n_iter_ = float(clustering.inertia_), int(clustering.n_iter_)
        return xp.to_float64(clustering.cluster_centers_)

    def transform(self, X: RowsLike) -> np.ndarray:
        """Return the distances of the features of rows from the centers.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, k)
            Distances in the dtype of X; Float64 if X has integers that need it.
        """
        rows, centers, size = self._new(X)
        return rows.map(partial(distances, self.map_, centers), size=size)

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the index of the nearest center of each row, of shape (n,)."""
        rows, centers, size = self._new(X)
        return rows.map(partial(nearest_centers, self.map_, centers), size=size)

    def score(self, X: RowsLike, y: object = None, sample_weight: Weights = None) -> float:
        """Return minus the sum of the squared distances from the nearest centers.

        Parameters
        ----------
        X : as in `fit`
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Factors of the distances.
        """
        rows, centers, size = self._new(X)
        weights = validation.weight_tensor(sample_weight, len(rows))
        beside = () if weights is None else (weights,)
        total = rows.fold(Sum(partial(inertia, self.map_, centers)), *beside, size=size)
        return -float(total)

    def _new(self, X: RowsLike) -> tuple[RowSource, Array, int]:
        """Return new rows, the centers in float64, and the rows of a block."""
        check_is_fitted(self)
        rows, centers = validation.new_rows(self, X), xp.to_float64(self.cluster_centers_)
        return rows, centers, self.map_.block_size(rows, self._result(rows, len(centers)))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
