"""Base classes of selectors, which choose m landmarks among n rows, and of their result."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, Field, dataclass, field
from typing import Any, ClassVar

from .._arrays import Array, Float, Int, RandomStream
from .._messages.checks import as_count, as_positive
from .._messages.errors import TextError
from .._registries.registry import Registry
from ..data import RowSource, refuse_remote
from ..operators import KernelOperator


@dataclass(frozen=True)
class Landmarks:
    """Landmarks that a selector has chosen, with their weights.

    Attributes
    ----------
    points : Array of shape (m, d)
    weight : Array of shape (m,)
        1 / (n p), with the probabilities p of the draws, which sum to one: ones for uniform draws.
    index : Array of shape (m,), or None
        Indices of the points among the rows; None if the points are not rows.
    penalty : float, or None
        Penalty that corresponds to this number of landmarks, as each selector defines it.
    coverage : float, or None
        Share of the rows that equal a landmark; None if not counted.
    effective_dimension : float, or None
        Effective dimension at `penalty`, if the selector estimates it.
    info : mapping
        Additional results, which the selector's docstring describes.
    """

    points: Float[Array, "m d"]
    weight: Float[Array, " m"]
    index: Int[Array, " m"] | None = None
    _: KW_ONLY
    penalty: float | None = None
    coverage: float | None = None
    effective_dimension: float | None = None
    info: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        misplaced = {"penalty", "coverage", "effective_dimension"} & set(self.info)
        if misplaced:
            names = ", ".join(sorted(misplaced))
            raise ValueError(f"info holds {names}; give Landmarks the field of that name")


class Selector(ABC):
    """An algorithm that chooses landmarks.

    The fields of a selector are hyperparameters, not state.

    Attributes
    ----------
    dense_points : bool
        Whether its landmarks are not rows but dense points, such as means.
    takes_remote : bool
        Whether it passes over remote rows without transferring them.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    dense_points: ClassVar[bool] = False
    takes_remote: ClassVar[bool] = False

    @abstractmethod
    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        """Choose landmarks among the rows of an (n, n) operator, whose meter counts the cost."""

    def check_rows(self, rows: RowSource) -> None:
        """Raise ValueError if rows are too wide for this selector, or on other machines."""
        if not self.takes_remote:
            names = ", ".join(sorted(n for n in selectors if selectors[n].takes_remote))
            refuse_remote(
                rows,
                f"{type(self).__name__} reads all rows many times on one machine, but these rows "
                "are on a cluster; use {landmarks='bless'} or a number (selectors for such rows: "
                f"{names})",
            )
        if self.dense_points and rows.entries is not None:
            raise TextError(
                f"the landmarks of {type(self).__name__} are dense, which takes too much memory "
                f"for sparse rows of {rows.shape[1]:,} features; use {{landmarks='bless'}} or a "
                "number"
            )

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        """Return the bytes needed to choose m of n rows with d features, without blocks of rows.

        The default fits selectors by leverage scores: the matrix of the landmarks, its factor, and
        numbers for each row.
        """
        return 16 * m * m + 48 * n

    def evaluations(self, n: int, m: int) -> int:
        """Return the approximate number of kernel evaluations; n m by default."""
        return n * m

    def operations(self, n: int, d: int, m: int) -> float:
        """Return the approximate number of floating-point operations; n m² by default."""
        return float(n) * m * m


selectors: Registry[Selector] = Registry("selector of landmarks")


@dataclass(frozen=True)
class SizeOrPenalty(Selector):
    """Base of selectors that take a number of landmarks or a penalty, and determine the other.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. If it exceeds the number of rows, a warning is given and all rows are
        chosen.
    penalty : float, optional
        Positive penalty, which determines the number of landmarks.

    Raises
    ------
    ValueError
        If both are given, or neither.
    """

    m: int | None = None
    _: KW_ONLY
    penalty: float | None = None

    def __post_init__(self) -> None:
        if (self.m is None) == (self.penalty is None):
            raise ValueError(
                f"{type(self).__name__} needs exactly one of m, a number of landmarks, and "
                f"penalty, a ridge per sample; got m={self.m!r}, penalty={self.penalty!r}"
            )
        if self.m is not None:
            as_count(self.m, "the number of landmarks")
        if self.penalty is not None:
            as_positive(self.penalty, "the penalty of a selector")


def cap_size(m: int, n: int) -> int:
    """Return m, or n with a warning if there are only n rows."""
    if m > n:
        warnings.warn(
            f"{m} landmarks were asked for but there are {n} rows; all rows are used", stacklevel=3
        )
    return min(m, n)
