"""Kernel of some of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import take_columns
from .base import Kernel, Prepared, Side, kernels
from .combined import OfOne

FEW_COLUMNS = 512
"""Columns of sparse rows up to which they become dense, for kernels of dense rows too."""


@kernels.register("columns")
@dataclass(frozen=True)
class Columns(OfOne):
    """A kernel restricted to some features, as `Kernel.on` returns it.

    Use it for a separate kernel of each group of features, such as one for places and one for the
    rest. Rows may be sparse: up to 512 of their columns become dense, for any kernel k.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the selected features; several lengthscales are one for each of these.
    columns : sequence of int
        Indices of the features, from 0, in the order for the kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.kernels import Gaussian, Linear
    >>> X, y = load_diabetes(return_X_y=True)
    >>> k = Gaussian("median").on([2, 3]) + Linear().on([0, 1, *range(4, 10)])  # body and blood
    >>> est = KernelRidge(k, penalty=0.02).fit(X[:300], y[:300])
    >>> print(f"R2 {est.score(X[300:], y[300:]):.2f}")
    R2 0.51
    """

    columns: Sequence[int]

    def __post_init__(self) -> None:
        columns = tuple(int(column) for column in self.columns)
        if not columns or min(columns) < 0 or len(set(columns)) < len(columns):
            raise ValueError(
                "columns must be different numbers of features, from 0 on, and at least one, not "
                f"{self.columns!r}"
            )
        if self.kernel.dim not in (None, len(columns)):
            raise ValueError(
                f"columns must be {self.kernel.dim} numbers for the kernel {self.kernel!r}, not "
                f"{len(columns)}"
            )
        object.__setattr__(self, "columns", columns)

    @property
    def sparse_ok(self) -> bool:
        return len(self.columns) <= FEW_COLUMNS

    @property
    def instead(self) -> str:
        return f"at most {FEW_COLUMNS} columns"

    def unscaled_features(self, d: int) -> frozenset[int]:
        return frozenset(self.columns[k] for k in self.kernel.unscaled_features(len(self.columns)))

    def used_features(self, d: int) -> frozenset[int]:
        return frozenset(self.columns[k] for k in self.kernel.used_features(len(self.columns)))

    @property
    def parts(self) -> int:
        return self.kernel.parts + 1

    def select_features(self, points: Array) -> Array:
        """Return the features of the kernel; raise ValueError if rows have fewer features."""
        if max(self.columns) >= points.shape[1]:
            raise ValueError(
                f"the kernel uses feature {max(self.columns)}, counted from 0, but the rows have "
                f"only {points.shape[1]} features"
            )
        return take_columns(points, self.columns)

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return self.kernel.coordinates(self.select_features(points))

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        return replace(self, kernel=self.kernel.resolve(self.select_features(sample)))

    def prepare(self, points: Array, side: Side) -> Prepared:
        """Return the prepared features of the kernel, and a column that holds the number d.

        The number determines the length of gradients.
        """
        chosen = self.select_features(points)
        # A tile knows the prepared rows alone, and gradients need the number of all features.
        features = xp.full((len(points), 1), float(points.shape[1]), chosen.dtype, like=chosen)
        return *self.kernel.prepare(chosen, side), features

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        return self.kernel.tile(left[:-1], right[:-1], out, underflow=underflow)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients, see `Kernel.gradients`: 0 along all other features."""
        selected_gradients = self.kernel.gradients(left[:-1], right[:-1], v, weights)
        out = xp.zeros(
            (*selected_gradients.shape[:2], int(right[-1][0].item())), like=selected_gradients
        )
        out[..., list(self.columns)] = selected_gradients
        return out

    def diag(self, x: Array) -> Float[Array, " b"]:
        return self.kernel.diag(self.select_features(x))

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        return self.kernel.rounding(left[:-1], right[:-1], eps)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        return self.kernel.may_underflow(left[:-1], right[:-1], dtype)
