"""Error of a feature map as an approximation of a kernel."""

from __future__ import annotations

from typing import Any

from .._messages.checks import as_bytes, as_count
from .._parameters.types import (
    EngineLike,
    Lengthscale,
    MemoryLimit,
    OptionalCount,
    OptionalKernel,
    RandomState,
)
from ..approximations import (
    FeatureMap,
    NystromMap,
    frobenius_error,
    sampled_error,
    spectral_error,
    trace_error,
)
from ..data import as_rows, check_finite
from ..fitting.settings import resolve
from ..kernels import Kernel
from ..operators import KernelOperator
from . import validation
from .decomposition.base import chosen_landmarks
from .types import FeaturesLike, Norm, RowsLike

NORM_NAMES = ("spectral", "frobenius", "trace")


def nystrom_error(
    kernel: OptionalKernel,
    X: RowsLike,
    landmarks: FeaturesLike,
    norm: Norm = "spectral",
    *,
    lengthscale: Lengthscale = "median",
    sample: OptionalCount = None,
    engine: EngineLike = "auto",
    memory_limit: MemoryLimit = None,
    random_state: RandomState = None,
) -> float:
    r"""Return a norm of :math:`K - \hat K` for a Nystrom approximation or other features.

    Parameters
    ----------
    kernel : str, Kernel or None
        A name is combined with `lengthscale`. None: the kernel of the given map or transformer.
    X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
        n rows of d features.
    landmarks : int, str, array of shape (m, d), Selector, FeatureMap or transformer
        As in `KernelRidge`; or a map of `gramian.approximations`, or a fitted
        `NystromTransformer` or `RandomFourierFeatures`.
    norm : "spectral", "frobenius" or "trace", default="spectral"
        Norm of the absolute eigenvalues: the largest, the root of the sum of squares, or the sum.
    lengthscale : float, sequence of d floats, or "median", default="median"
        As in `KernelRidge`.
    sample : int or None, default=None
        Number of random rows and columns whose dense matrix gives the norm; it is not scaled up.
        None: all rows, without a matrix: the spectral norm by the Lanczos method to three digits,
        the others exactly. The trace norm then requires a projection, not random Fourier features.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes for blocks, features and the matrix of a sample. None: 1 GiB.
    random_state : int, RandomState or None, default=None
        For landmarks, the median heuristic, the sample and the start of Lanczos.

    Returns
    -------
    float
        The norm in the units of the kernel, computed in float64 for data of any dtype.

    Raises
    ------
    ValueError
        If a parameter cannot be used, or the matrix of the sample does not fit.

    See Also
    --------
    gramian.approximations : The underlying functions, with their costs.

    Notes
    -----
    Cost: spectral, 10 to 40 products of n² kernel evaluations; Frobenius, n² evaluations and
    2 n² s operations; trace, n m evaluations. With a sample, its square instead of n².

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import nystrom_error
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> few, many = (nystrom_error("gaussian", X, m, random_state=0) for m in (10, 100))
    >>> many < few
    True
    """
    if norm not in NORM_NAMES:
        raise ValueError(f"unknown norm {norm!r}; known: {', '.join(NORM_NAMES)}")
    if sample is not None:
        as_count(sample, "sample")
    rows = as_rows(X)
    check_finite(rows)
    for_kernel, for_landmarks, rng = validation.generators(random_state, 3)
    # A fitted transformer carries its map; every other value is a map or landmarks already.
    feature_map: Any = getattr(landmarks, "map_", landmarks)
    kernel_used = _kernel(kernel, lengthscale, feature_map).with_names(rows.feature_names)
    memory = 1 << 30 if memory_limit is None else as_bytes(memory_limit)
    K = KernelOperator(
        resolve.kernel_for(kernel_used, rows, for_kernel), rows, rows, engine, memory
    )
    features = feature_map if isinstance(feature_map, FeatureMap) else None
    if features is None:
        chosen = chosen_landmarks(K, feature_map, None, for_landmarks)
        features = NystromMap.build(K.kernel, chosen.points, engine=engine, memory_bytes=memory)
    # A given map may come from other data: no earlier check has compared its width with X.
    if features.dim != rows.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} features, but the given map is for rows of {features.dim}"
        )
    if sample is not None:
        return sampled_error(K, features, norm, sample, rng=rng)
    if norm == "spectral":
        return spectral_error(K, features, rng=rng)
    # Both are exact sums over all rows: only the Lanczos method above starts from a random vector.
    return frobenius_error(K, features) if norm == "frobenius" else trace_error(K, features)


def _kernel(kernel: OptionalKernel, lengthscale: Lengthscale, source: object) -> Kernel:
    if not isinstance(source, FeatureMap):
        return resolve.kernel(kernel, lengthscale)
    if kernel is None or isinstance(kernel, Kernel):
        return kernel or source.kernel
    raise ValueError(
        f"kernel={kernel!r} is a name, but the features were built with {source.kernel}; give "
        "kernel=None, or a kernel object to compare the features with"
    )
