"""The Tanimoto kernel of fingerprints: bits or counts that two rows share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._sparse import squared_norms
from .._lengthscale import LengthscaleKernel
from .._products import check_nonnegative, matmul, sums_of_rows
from ..base import Prepared, Side, kernels

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Counts: TypeAlias = Literal["product", "minmax"]
else:  # what users give is checked by the kernel
    Counts = Any


@kernels.register("tanimoto")
@dataclass(frozen=True)
class Tanimoto(LengthscaleKernel):
    r"""Tanimoto kernel of bits or counts: intersection of two rows over their union.

    Features must be at least 0, and are not standardised. For bits it is RDKit's similarity of bit
    vectors, also called Jaccard similarity. It is 1 for two rows of zeros, so that k(x, x) is 1 for
    all rows; in RDKit it is 1 in older releases, and 0 in later ones and for counts.

    Use it for sets: fingerprints of molecules, or other features that are present or absent. An
    entry costs d multiplications, or d differences with ``"minmax"``.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or str, default=1.0
        One number cancels, and ``"median"`` means 1; one per feature weighs the features.
    counts : {"product", "minmax"}, default="product"
        Measure of the intersection of features that are not bits. ``"product"``:
        :math:`x^\top z / (\|x\|^2 + \|z\|^2 - x^\top z)`, of dense or sparse rows. ``"minmax"``:
        :math:`\sum \min(x, z) / \sum \max(x, z)`, RDKit's similarity of count vectors; d
        differences per entry, of dense rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import KernelRidgeClassifier
    >>> from gramian.kernels import Tanimoto
    >>> X, y = load_digits(return_X_y=True)
    >>> bits = (X > 8).astype(float)
    >>> est = KernelRidgeClassifier(Tanimoto(), penalty=1e-4).fit(bits[:1000], y[:1000])
    >>> print(f"{est.score(bits[1000:], y[1000:]):.2f} are right")
    0.92 are right
    """

    counts: Counts = "product"

    instead: ClassVar[str] = "counts='product'"
    nonnegative: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    parts: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts not in ("product", "minmax"):
            raise ValueError(f"counts must be 'product' or 'minmax', not {self.counts!r}")

    @property
    def sparse_ok(self) -> bool:
        return self.counts == "product"

    def prepare(self, points: Array, side: Side) -> Prepared:
        """Return rows with their sizes, which are squared norms, or sums for "minmax"."""
        x = self.scaled(points)
        # The points are checked, not the scaled rows, so that an error shows the user's value.
        check_nonnegative(points, "Tanimoto")
        if self.counts == "product":
            return x, squared_norms(x)[:, None]
        return x, x.sum(axis=1, keepdims=True)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        shared, total = self._shared(left, right, out)
        return xp.divide_(shared, total)

    def _shared(self, left: Prepared, right: Prepared, out: Array) -> tuple[Array, Array]:
        """Return intersections, in `out`, and unions of rows; both are 1 for empty unions."""
        (x, a), (z, b) = left, right
        total = xp.cast(a + b.T, out.dtype)
        if self.counts == "product":
            shared = matmul(x, z, out)
            total -= shared
        else:
            distance = xp.cast(xp.cdist(x, z, p=1.0), out.dtype)
            # Min and max follow from the sum and the l1 distance: 2 min = a + b - d, 2 max = a + b
            # + d.
            shared = xp.clip_(xp.subtract(total, distance, out=out), min=0.0)
            total += distance
        empty, void = a == 0, b == 0
        if bool(empty.any()) and bool(void.any()):
            # 0 / 0 becomes 1 / 1, so that each row of zeros has an entry of 1 with itself.
            both = xp.cast(empty & void.T, out.dtype)
            shared, total = xp.add_(shared, both), xp.add_(total, both)
        return shared, total

    @property
    def differentiable(self) -> bool:
        return self.counts == "product"

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients, see `Kernel.gradients`; 0 between rows of zeros."""
        if not self.differentiable:
            return super().gradients(left, right, v, weights)
        (x, _), (z, _) = left, right
        shared, total = self._shared(left, right, xp.empty((len(x), len(z)), like=v))
        # The union is a + b - shared, so that this sum is the sum of both squared norms.
        both = shared + total  # the squared norms
        inverse = 1 / xp.square(total)
        if weights is not None:
            inverse *= weights
        sums = sums_of_rows(xp.multiply_(both, inverse), v, z)
        far_terms = xp.matmul(xp.multiply_(shared, inverse), v)[..., None] * x[:, None]
        return xp.multiply_(xp.subtract_(sums, far_terms, alpha=2.0), self._inverse(x))
