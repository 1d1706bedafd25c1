"""Random Fourier features: random waves whose inner products have the kernel as mean."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ..._messages.checks import as_count
from ..._parameters.types import Count, KernelLike, Lengthscale, MemoryLimit, RandomState
from ...approximations import FourierMap
from .. import validation
from ..base import restore_on_error
from ..types import RowsLike
from .base import FeatureTransformer


@dataclass(eq=False, repr=False)
class RandomFourierFeatures(FeatureTransformer):
    r"""Random Fourier features of kernels that depend on x - z alone.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        ``"gaussian"``, ``"laplacian"``, ``"l1_laplacian"``, ``"matern12"``, ``"matern32"``,
        ``"matern52"``, ``"rational_quadratic"``, or an object of these; multiples, sums and
        products of such objects, of all features or some (`Kernel.on`).
    lengthscale : float, sequence of d floats, or "median", default="median"
        As in `KernelRidge`.
    n_components : int, default=100
        Number of features s.
    memory_limit : int, str or None, default=None
        Bytes that `transform` may allocate. None: the memory of the machine.
    random_state : int, RandomState or None, default=None
        For the waves and the median heuristic.

    Attributes
    ----------
    map_ : FourierMap
        The features without scikit-learn; its frequencies and phases.
    kernel_ : Kernel
        Kernel with its lengthscale.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if all features have names.

    See Also
    --------
    sklearn.kernel_approximation.RBFSampler : Cosines with random phases for the Gaussian kernel,
        with larger variance.
    NystromTransformer : Features that depend on the data, for any kernel.

    Notes
    -----
    Cost of `fit`: d s random numbers; of `transform`: n s d operations. The error of an inner
    product is about :math:`1 / \sqrt s` for any data.

    References
    ----------
    .. [1] Rahimi & Recht, *Random features for large-scale kernel machines*, NeurIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RandomFourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> F = RandomFourierFeatures(n_components=200, random_state=0).fit_transform(X)
    >>> bool(np.allclose((F**2).sum(axis=1), 1))
    True
    """

    kernel: KernelLike = "gaussian"
    _: KW_ONLY
    lengthscale: Lengthscale = "median"
    n_components: Count = 100
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> RandomFourierFeatures:
        """Draw the waves; only the number of features and the median distance of X matter.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of d features; see `KernelRidge.fit`.
        y : None
            Ignored.

        Returns
        -------
        RandomFourierFeatures
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the kernel has no known spectral density, or the input cannot be used.
        """
        with restore_on_error(self):
            size = as_count(self.n_components, "n_components")
            rows = validation.unlabelled_rows(self, X)
            for_kernel, for_waves = validation.generators(self.random_state, 2)
            self.kernel_ = self._resolved_kernel(rows, for_kernel)
            self.map_ = FourierMap.build(self.kernel_, rows.shape[1], size, rng=for_waves)
        return self
