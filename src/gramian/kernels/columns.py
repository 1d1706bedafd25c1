"""Kernel of some of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, cast

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import it_has, join_words
from .._messages.errors import ParameterError
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
    columns : sequence of int, or of str
        Indices of the features, from 0, or names of columns of a frame, in the order for the
        kernel. A fit to a frame replaces names by indices; `kernel_` and model files have these. A
        column that the encoding of a table turns into several features, such as a category, is
        all of them.

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
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> KernelRidge(Gaussian("median").on(["bmi", "bp"])).fit(X, y).kernel_.columns
    (2, 3)
    """

    columns: Sequence[int | str]

    def __post_init__(self) -> None:
        columns = _checked_columns(self.columns)
        dim = self.kernel.dim
        # A named column may become several features: a fit compares their number.
        too_many = dim is not None and len(columns) > dim
        if too_many or (not _are_names(columns) and dim not in (None, len(columns))):
            kind = "names" if _are_names(columns) else "numbers"
            raise ValueError(
                f"columns must be {dim} {kind} for the kernel {self.kernel!r}, not {len(columns)}"
            )
        object.__setattr__(self, "columns", columns)
        if _are_names(columns):
            self.kernel.with_names(columns if dim in (None, len(columns)) else None)

    def with_names(self, names: Sequence[str] | None) -> Kernel:
        """Return this kernel with indices in place of names, see `Kernel.with_names`."""
        if not _are_names(self.columns):
            inner = None if names is None else [names[k] for k in self.numbers if k < len(names)]
            return replace(self, kernel=self.kernel.with_names(inner))
        if names is None:
            raise _no_names(self)
        column_names = list(dict.fromkeys(names))
        for name in self.columns:
            if name not in column_names:
                raise ValueError(
                    f"the kernel {self!r} needs the column {name!r}, which X lacks or which has a "
                    f"single value; {it_has(column_names, name)}"
                )
        numbers = [k for name in self.columns for k, own in enumerate(names) if own == name]
        if self.kernel.dim not in (None, len(numbers)):
            raise ValueError(
                f"the kernel {self.kernel!r} takes {self.kernel.dim} features, but the columns "
                f"{join_words(self.columns)} have {len(numbers)} after the encoding of the table; "
                "give columns of numbers without gaps, or as many features"
            )
        inner_kernel = self.kernel.with_names([names[k] for k in numbers])
        return replace(self, kernel=inner_kernel, columns=tuple(numbers))

    @property
    def sparse_ok(self) -> bool:
        return len(self.columns) <= FEW_COLUMNS

    @property
    def instead(self) -> str:
        return f"at most {FEW_COLUMNS} columns"

    def unscaled_features(self, d: int) -> frozenset[int]:
        if _are_names(self.columns):
            # Where the columns are is not known yet; whether there are such features is.
            return self.kernel.unscaled_features(len(self.columns))
        numbers = self.numbers
        return frozenset(numbers[k] for k in self.kernel.unscaled_features(len(numbers)))

    def used_features(self, d: int) -> frozenset[int]:
        numbers = self.numbers
        return frozenset(numbers[k] for k in self.kernel.used_features(len(numbers)))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns; raise ValueError if they are names, which only a fit can look up."""
        if _are_names(self.columns):
            raise _no_names(self)
        return cast("tuple[int, ...]", self.columns)

    @property
    def parts(self) -> int:
        return self.kernel.parts + 1

    def select_features(self, points: Array) -> Array:
        """Return the features of the kernel; raise ValueError if rows have fewer features."""
        numbers = self.numbers
        if max(numbers) >= points.shape[1]:
            raise ValueError(
                f"the kernel uses feature {max(numbers)}, counted from 0, but the rows have "
                f"only {points.shape[1]} features"
            )
        return take_columns(points, numbers)

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
        out[..., list(self.numbers)] = selected_gradients
        return out

    def diag(self, x: Array) -> Float[Array, " b"]:
        return self.kernel.diag(self.select_features(x))

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        return self.kernel.rounding(left[:-1], right[:-1], eps)

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        return self.kernel.may_underflow(left[:-1], right[:-1], dtype)


def _checked_columns(columns: Any) -> tuple[int, ...] | tuple[str, ...]:
    """Return columns as a tuple; raise ValueError unless they differ, and are of one kind."""
    as_tuple = () if isinstance(columns, str) else tuple(columns)
    if _are_names(as_tuple) and len(set(as_tuple)) == len(as_tuple):
        return as_tuple
    numbers = tuple(int(column) for column in as_tuple if not isinstance(column, str))
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(as_tuple):
        expected = "a list of different numbers of features, from 0 on, or of different names"
        remedy = f"give [{columns!r}]" if isinstance(columns, str) else ""
        raise ParameterError("columns", columns, expected, remedy)
    return numbers


def _are_names(columns: Sequence[Any]) -> TypeGuard[tuple[str, ...]]:
    return len(columns) > 0 and all(isinstance(column, str) for column in columns)


def _no_names(kernel: Columns) -> ValueError:
    return ValueError(
        f"the kernel {kernel!r} selects columns by name, but the rows have no names; fit a frame "
        "with these columns, or give their numbers, as in .on([0, 1])"
    )
