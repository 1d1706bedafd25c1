"""NystromTransformer: features of m landmarks whose inner products approximate the kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ..._parameters.types import (
    EngineLike,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    OptionalCount,
    RandomState,
)
from ..._sparse import as_scipy, is_sparse
from .. import validation
from ..base import is_function, is_matrix, restore_on_error
from ..types import RowsLike
from .base import NystromEstimator

DEFAULT_SIZE = 100
"""Default number of landmarks, as in scikit-learn's Nystroem."""


@dataclass(eq=False, repr=False)
class NystromTransformer(NystromEstimator):
    r"""Features whose inner products are the Nystrom approximation of a kernel.

    :math:`\hat K = K_{nm} K_{mm}^+ K_{mn}` for m landmarks: a linear method on these features
    equals a kernel method with :math:`\hat K`.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        One of `gramian.kernels.names`, or a kernel object with its own lengthscale.
        ``"precomputed"``: X is its n x n matrix, and new rows have n columns; a function of two
        objects, where X is a list of objects, as in `KernelRidge`.
    lengthscale : float, sequence of d floats, or "median", default="median"
        As in `KernelRidge`.
    landmarks : None, int, str, array of shape (m, d) or Selector, default="auto"
        ``"auto"`` or the name of a selector: ``n_components`` landmarks, or 100. A number: that
        number of random distinct rows. None: all rows. Points are used unchanged.
    n_components : int or None, default=None
        Largest number of features: the leading eigenpairs of the kernel matrix of the landmarks.
        None: all. There are fewer if the landmarks are dependent to rounding.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that `fit` or `transform` may allocate, such as ``"500MB"``; the given data and the
        libraries are not counted. None: the memory of the machine.
    random_state : int, RandomState or None, default=None
        For random landmarks and the median heuristic.

    Attributes
    ----------
    map_ : NystromMap
        The features without scikit-learn, for any row source: ``map_.strips(rows)``.
    kernel_ : Kernel
        Kernel with its lengthscale.
    components_ : ndarray of shape (m, d), or csr_array for sparse rows of many features
        The landmarks.
    landmark_index_ : ndarray of shape (m,), or None
        Indices of the landmarks among the rows; None if landmarks are not rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if all features have names.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : The same inner products for the same landmarks. Its
        features are these, rotated; its ``gamma`` is ``1 / (2 * lengthscale**2)`` and its
        default ``1 / d``.
    RandomFourierFeatures : Features that do not depend on the data.

    Notes
    -----
    Cost of `fit`: the selection; m² kernel evaluations, about 9 m³ operations and 32 m² bytes, in
    float64. Of `transform`: n m kernel evaluations and 2 n m s operations. Float32 rows give
    float32 features.

    With landmarks sampled by their ridge leverage scores for the ridge :math:`\lambda` of the
    unnormalised matrix (here ``n * penalty``), as many as its effective dimension up to a
    logarithm, :math:`\hat K \preceq K \preceq \hat K + \lambda I` with high probability [1]_.

    References
    ----------
    .. [1] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017, theorem 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from gramian import NystromTransformer
    >>> X, y = load_iris(return_X_y=True)
    >>> features = NystromTransformer(n_components=30, random_state=0)
    >>> make_pipeline(features, LogisticRegression()).fit(X, y).score(X, y) > 0.9
    True
    """

    kernel: KernelLike = "gaussian"
    _: KW_ONLY
    lengthscale: Lengthscale = "median"
    landmarks: LandmarksLike = "auto"
    n_components: OptionalCount = None
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> NystromTransformer:
        """Choose landmarks and compute their normaliser.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of d features; see `KernelRidge.fit`.
        y : None
            Ignored.

        Returns
        -------
        NystromTransformer
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, or does not fit in memory.
        """
        with restore_on_error(self):
            rank = self._rank(self.n_components)
            rows = validation.unlabelled_rows(self, X)
            for_kernel, for_landmarks = validation.generators(self.random_state, 2)
            m = rank or min(DEFAULT_SIZE, len(rows))
            kernel, _, chosen = self._fit_map(rows, for_kernel, for_landmarks, m=m, rank=rank)
            # Fewer rows than ``n_components`` are no error: then all rows are landmarks.
            if rank is not None and len(chosen.weight) < min(rank, len(rows)):
                raise ValueError(
                    f"n_components={rank} requires at least as many landmarks, but landmarks="
                    f"{self.landmarks!r} gives {len(chosen.weight)}; give more landmarks"
                )
            points = chosen.points
            if is_matrix(self.kernel) and chosen.index is not None:
                # The chosen points are row numbers: the attribute shows the rows of the matrix
                # instead.
                points = rows.take(chosen.index)
            self.components_ = as_scipy(points) if is_sparse(points) else points
            self.kernel_ = self._kernel_kept(kernel, rows, chosen.index)
            if is_function(self.kernel):
                # Collected by `_kernel_kept`: the points above are only the numbers of these
                # objects.
                self.components_ = self.objects_
        return self
