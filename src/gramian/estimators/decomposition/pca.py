"""KernelPCA: principal components of Nystrom features, with pre-images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, RandomStream
from ..._messages.checks import as_positive
from ..._parameters.types import (
    EngineLike,
    Flag,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    Number,
    OptionalCount,
    RandomState,
)
from ...approximations import NystromMap, largest_first
from ...data import RowSource, as_rows
from ...engines import choose_covering, choose_engine
from ...fitting.settings import resolve
from .. import validation
from ..base import describe_kernel, has_features, restore_on_error
from ..types import RowsLike
from .base import NystromEstimator, component_count
from .projection import MomentsOfFeatures, PreImage, project_features

ROUNDING_UNITS = 100
"""Largest difference between features of equal rows, in units of rounding."""


@dataclass(eq=False, repr=False)
class KernelPCA(NystromEstimator):
    r"""Kernel principal component analysis on data of any size.

    The exact principal components of the Nystrom approximation :math:`\hat K`, centered; with all
    rows as landmarks, the components of K.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components. None: all of positive variance, up to the number of landmarks.
    kernel : str or Kernel, default="gaussian"
        One of `gramian.kernels.names`, or a kernel object with its own lengthscale.
        ``"precomputed"``: X is its n x n matrix, and new rows have n columns; a function of two
        objects, where X is a list of objects, as in `KernelRidge`.
    lengthscale : float, sequence of d floats, or "median", default="median"
        As in `KernelRidge`.
    landmarks : None, int, str, array of shape (m, d) or Selector, default="auto"
        As in `KernelRidge`. None: all rows, which is exact.
    fit_inverse_transform : bool, default=False
        Whether to learn pre-images for `inverse_transform`.
    penalty : float, default=1e-6
        Ridge per sample of the pre-images: scikit-learn's ``alpha / n``.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that a call may allocate. None: the memory of the machine.
    random_state : int, RandomState or None, default=None
        For random landmarks and the median heuristic.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (k,)
        Eigenvalues of the centered matrix, largest first, as in scikit-learn.
    explained_variance_ : ndarray of shape (k,)
        Variance of each component over the training rows: ``eigenvalues_ / (n - 1)``.
    explained_variance_ratio_ : ndarray of shape (k,)
        Share of the variance in the space of the kernel. Variance outside the span of the
        landmarks counts as unexplained.
    map_ : NystromMap
    mean_ : ndarray of shape (s,)
        Mean of the features.
    eigenvectors_ : ndarray of shape (s, k)
        Eigenvectors in the space of the features.
    preimage_ : PreImage
        Only with ``fit_inverse_transform``.
    kernel_, landmark_index_, n_features_in_, feature_names_in_
        As in `NystromTransformer`.

    See Also
    --------
    sklearn.decomposition.KernelPCA : Exact, from the n x n matrix.

    Notes
    -----
    Rows are centered in the space of the kernel by the mean of the training rows, like
    scikit-learn's; in the space of the features this is plain centering. The sign of a component
    is arbitrary: here the largest entry of an eigenvector is positive.

    Cost of `fit`: a fit of `NystromTransformer`, then one pass over the rows: n m kernel
    evaluations, 3 n m² operations, 40 m² bytes, no memory that grows with n. Of `transform`: n m
    evaluations and 2 n m² operations. Pre-images: one more pass, twice the work.

    With landmarks drawn by their ridge leverage scores for the ridge :math:`\frac{\epsilon}{k}
    \sum_{i>k} \sigma_i(K)` of the unnormalised matrix (here ``n * penalty``), whose effective
    dimension is at most :math:`k + k / \epsilon`, and as many as that up to a logarithm, the
    projection on the first k components is within a factor :math:`1 + \epsilon` of the best, in
    squared Frobenius norm in the space of the kernel [1]_. The theorem is about matrices that are
    not centered.

    References
    ----------
    .. [1] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017, table 1 and
       theorem 18.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelPCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> pca = KernelPCA(2, landmarks=50, fit_inverse_transform=True, random_state=0)
    >>> Z = pca.fit_transform(X)
    >>> Z.shape, pca.inverse_transform(Z).shape
    ((150, 2), (150, 4))
    """

    n_components: OptionalCount = None
    _: KW_ONLY
    kernel: KernelLike = "gaussian"
    lengthscale: Lengthscale = "median"
    landmarks: LandmarksLike = "auto"
    fit_inverse_transform: Flag = False
    penalty: Number = 1e-6
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> KernelPCA:
        """Compute the principal components of the features.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of d features; see `KernelRidge.fit`.
        y : None
            Ignored.

        Returns
        -------
        KernelPCA
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, or does not fit in memory.
        """
        with restore_on_error(self):
            self._rank(self.n_components)
            penalty = as_positive(self.penalty, "penalty")
            rows = validation.unlabelled_rows(self, X, least=2)
            for_kernel, for_landmarks, for_inverse = validation.generators(self.random_state, 3)
            if self.fit_inverse_transform and not has_features(self.kernel):
                raise ValueError(
                    "fit_inverse_transform=True requires rows of features, which "
                    f"{describe_kernel(self.kernel)} does not have; leave it out"
                )
            kernel, own_rows, chosen = self._fit_map(rows, for_kernel, for_landmarks)
            # Before `_kernel_kept`, whose map for a given matrix no longer reads row numbers.
            self._decompose(own_rows)
            self.kernel_ = self._kernel_kept(kernel, rows, chosen.index)
            if self.fit_inverse_transform:
                self._learn_inverse(rows, penalty, for_inverse)
            # Pre-images of an earlier fit belong to other components.
            elif hasattr(self, "preimage_"):
                del self.preimage_
        return self

    def _decompose(self, rows: RowSource) -> None:
        size = self.map_.block_size(rows, self._passes(self.map_))
        running, total = rows.fold(MomentsOfFeatures(self.map_), size=size)
        moments = running.finish()
        n, scatter = moments.count, moments.scatter
        trace = float(xp.diagonal(scatter).sum())
        eps = xp.finfo(rows.dtype).eps
        # Rows that are one point to the kernel leave a trace that is rounding of their features.
        rounding = (ROUNDING_UNITS * eps) ** 2 * float(total)
        # The cut is the largest of three roundings: float64 sums, features in the dtype of the
        # rows, and features of equal rows.
        smallest = max(max(la.FLOAT64_EPS * len(scatter), eps) * trace, rounding)
        values, vectors = largest_first(scatter, smallest)
        if float(values[0]) <= smallest:  # one component, which is zero at any row
            values, vectors = xp.zeros_like(values), xp.zeros_like(vectors)
        k = component_count(self.n_components, len(values))
        # Of the kernel, not of its features: it includes the residual of the landmarks.
        variance = float(total) - n * float(moments.mean @ moments.mean)
        self.eigenvalues_ = values[:k].clip(min=0)
        self.explained_variance_ = self.eigenvalues_ / (n - 1)
        ratio = self.eigenvalues_ / variance if variance > 0 else np.zeros(k)
        self.explained_variance_ratio_ = ratio
        self.mean_, self.eigenvectors_ = moments.mean, vectors[:, :k]

    def _learn_inverse(self, rows: RowSource, penalty: float, rng: RandomStream) -> None:
        assert isinstance(self.map_, NystromMap)  # a given matrix has no pre-images
        # 1. The codes of the landmarks are the centers, in float64 whatever the dtype of the rows.
        codes = self._transform_rows(as_rows(xp.to_float64(self.map_.points)), 1 << 28)
        kernel = resolve.kernel_for(resolve.kernel("gaussian", "median"), as_rows(codes), rng)
        # 2. The engine of the rows may have no float64 tiles: another one on its device replaces
        # it.
        row_engine = choose_engine(self.engine, dtype=codes.dtype)  # rows may be narrower
        engine = choose_covering(row_engine, kernel, dtype=codes.dtype, sparse=False)
        centers = NystromMap.build(kernel, codes, engine=engine)
        # 3. Besides the maps, two float64 matrices of s x d: H'X and its part from one block.
        more = 16 * centers.width * rows.shape[1]
        memory = self._passes(self.map_, centers, more=more)
        size = self.map_.block_size(rows, memory)
        self.preimage_ = PreImage.build(self._projection, centers, rows, size, penalty)

    def _transform_rows(self, rows: RowSource, memory_bytes: int) -> np.ndarray:
        return rows.map(self._projection, size=self.map_.block_size(rows, memory_bytes))

    @property
    def _projection(self) -> Callable[[Array], Array]:
        return partial(project_features, self.map_, self.mean_, self.eigenvectors_)

    def inverse_transform(self, X: RowsLike) -> np.ndarray:
        """Return rows with approximately these components.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Components, as from `transform`.

        Returns
        -------
        ndarray of shape (n, d)
            Rows in the dtype of X.

        Raises
        ------
        NotFittedError
            If the fit was without ``fit_inverse_transform=True``.

        Notes
        -----
        Most points in the space of the kernel are the image of no row; the result is the
        prediction of a kernel ridge regression from components to rows (Gaussian kernel of the
        median lengthscale of the components, with the same landmarks).

        References
        ----------
        .. [1] Bakir, Weston, Schölkopf, *Learning to find pre-images*, NeurIPS 2003.
        """
        check_is_fitted(self, "preimage_", msg="fit with fit_inverse_transform=True first")
        codes = as_rows(X)
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have one column for each of the {self._n_features_out} components, not "
                f"{codes.shape[1]}"
            )
        memory = self._result(codes, self.n_features_in_)
        return self.preimage_.rows(codes, memory)

    @property
    def _n_features_out(self) -> int:
        return int(self.eigenvectors_.shape[1])
