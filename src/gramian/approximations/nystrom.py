"""Features of the Nystrom approximation of a kernel, or of a given kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int
from .._sparse import cast, dense, is_sparse
from ..data import RowSource, as_rows
from ..engines import Engine, choose_covering
from ..kernels import Kernel
from ..operators import KernelOperator
from ..operators.budget import Budget
from .base import DEFAULT_BLOCK_BYTES, FeatureMap, largest_first


@dataclass(frozen=True, eq=False)
class KernelColumns(FeatureMap):
    """Features of `NystromMap`, from rows of a kernel matrix instead of rows of features.

    Attributes
    ----------
    index : Array of shape (m,)
        Columns of the landmarks.
    normalizer : Array of shape (m, s)
        Matrix that turns kernel values into features, as in `NystromMap`.
    count : int
        Columns of a row, one per training row.
    """

    index: Int[Array, " m"]
    normalizer: Float[Array, "m s"]
    count: int

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """Raise AttributeError, because only values of the kernel are available."""
        raise AttributeError("features of kernel='precomputed' have no kernel, only its values")

    @property
    def width(self) -> int:
        return self.normalizer.shape[1]

    @property
    def dim(self) -> int:
        return self.count

    def apply(self, block: Float[Array, "b n"]) -> Float[Array, "b s"]:
        # In float64: the normalizer is large where eigenvalues are small, and its products
        # cancel.
        return xp.cast(xp.to_float64(block[:, self.index]) @ self.normalizer, block.dtype)

    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        m, s = self.normalizer.shape
        return max(1, memory_bytes // (8 * (rows.shape[1] + 2 * m + 2 * s)))


@dataclass(frozen=True)
class NystromMap(FeatureMap):
    r"""Features :math:`f(x) = \Lambda^{-1/2} U^\top k(Z, x)` of m landmarks Z.

    With :math:`k(Z, Z) = U \Lambda U^\top`, the inner products of the features are
    :math:`\hat K = K_{nm} K_{mm}^+ K_{mn}`. In the space of the kernel, rows are projected on the
    span of the landmarks, so that :math:`0 \preceq \hat K \preceq K`.

    Attributes
    ----------
    kernel : Kernel
    points : Array of shape (m, d)
        The landmarks, dense.
    normalizer : Array of shape (m, s)
        :math:`U \Lambda^{-1/2}` in float64, largest eigenvalue first; s is the number of
        eigenvalues kept.
    engine : Engine

    Notes
    -----
    Cost of the features of n rows: n m kernel evaluations, 2 n m s operations.

    References
    ----------
    .. [1] Williams & Seeger, *Using the Nystrom method to speed up kernel machines*, NeurIPS 2000.
    .. [2] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017, eq. (1).
    """

    kernel: Kernel
    points: Float[Array, "m d"]
    normalizer: Float[Array, "m s"]
    engine: Engine

    projects: ClassVar[bool] = True

    @classmethod
    def build(
        cls,
        kernel: Kernel,
        points: Any,
        rank: int | None = None,
        *,
        engine: str | Engine = "auto",
        memory_bytes: int = DEFAULT_BLOCK_BYTES,
    ) -> NystromMap:
        """Build the Nystrom map of given landmarks.

        Parameters
        ----------
        kernel : Kernel
            Resolved: without ``lengthscale="median"``.
        points : row source, or any input of `as_rows`, of shape (m, d)
        rank : int, optional
            Largest number of features, from the leading eigenpairs of K_mm; all by default.
        engine : str or Engine, default="auto"
        memory_bytes : int
            Memory for blocks of rows.

        Notes
        -----
        Cost: m² kernel evaluations, about 9 m³ operations, 32 m² bytes, all in float64.

        Eigenvalues up to ``eps * trace(K_mm)`` count as rounding and are removed. For float32
        points the limit is ``4 eps32`` times the mean of the diagonal: a float32 entry of K_nm has
        an error of about ``eps32``, and a feature has this error over the root of its eigenvalue.
        scikit-learn's Nystroem raises eigenvalues below 1e-12 to that value instead, and always has
        as many features as landmarks.
        """
        source = as_rows(points)
        K = KernelOperator(kernel, source, source, engine, memory_bytes)
        A = xp.to_host(K.double().dense())
        # Denormal entries would slow down LAPACK 30 times; entries that are not finite are an
        # error.
        la.prepare_(A)
        values, vectors = largest_first(A, _cut(A, source.dtype), rank)
        # A kernel that vanishes at all landmarks has features of zero.
        scale = xp.where(values > 0, values, xp.inf)
        normalizer = vectors / xp.sqrt(scale)
        landmarks = source.take(xp.arange(len(source)))
        return cls(kernel, dense(landmarks), normalizer, K.engine)

    @property
    def width(self) -> int:
        return self.normalizer.shape[1]

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    def apply(self, block: Float[Array, "b d"]) -> Float[Array, "b s"]:
        # Entries are computed in the wider dtype of both sides, as in `KernelOperator`.
        dtype = xp.promote_types(block.dtype, self.points.dtype)
        x, z = cast(block, dtype), cast(self.points, dtype)
        sparse = is_sparse(x) or is_sparse(z)
        engine = choose_covering(self.engine, self.kernel, dtype=dtype, sparse=sparse)
        return xp.cast(xp.to_host(engine.matvec(self.kernel, x, z, self.normalizer)), block.dtype)

    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        m, s = self.normalizer.shape
        itemsize = max(rows.dtype.itemsize, self.points.dtype.itemsize)
        budget = Budget(self.engine, memory_bytes, rows.shape[1], itemsize, s)
        budget.check(m)
        return budget.rows_per_pass(m, result=8 * s)


def _cut(A: Array, dtype: xp.DType) -> float:
    trace = float(xp.diagonal(A).sum())
    return max(la.FLOAT64_EPS * trace, 4 * xp.finfo(dtype).eps * trace / len(A))
