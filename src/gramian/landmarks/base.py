"""Landmarks and Selector: which m of n rows stand for all of them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import as_count, as_positive
from .._errors import TextError
from .._registry import Registry
from ..data import RowSource
from ..operators import KernelOperator


@dataclass(frozen=True)
class Landmarks:
    """The result of a selection.

    Attributes
    ----------
    points : Tensor of shape (m, d)
    weight : Tensor of shape (m,)
        1 / (n · probability) of being drawn, probabilities summing to one: ones if uniform.
    index : Tensor of shape (m,), or None
        Their row numbers; None if they are not rows of the data.
    penalty : float, or None
        Ridge per sample that this many landmarks correspond to; each selector says how.
    coverage : float, or None
        Share of the rows that equal a landmark; None if that was not counted.
    effective_dimension : float, or None
        At `penalty`, if the selector estimates it.
    info : mapping
        What else the selector has learned; its docstring says what.
    """

    points: Float[Tensor, "m d"]
    weight: Float[Tensor, " m"]
    index: Int[Tensor, " m"] | None = None
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
    """An algorithm that chooses landmarks. Fields are its hyperparameters; it holds no state.

    Attributes
    ----------
    dense_points : bool
        Whether its landmarks are no rows but dense points, such as means.
    takes_remote : bool
        Whether it passes over rows where they are, so that remote ones stay there.
    """

    dense_points: ClassVar[bool] = False
    takes_remote: ClassVar[bool] = False

    @abstractmethod
    def select(self, K: KernelOperator, *, rng: torch.Generator) -> Landmarks:
        """Choose among the rows of an (n, n) operator, whose meter counts the cost."""

    def check_rows(self, rows: RowSource) -> None:
        """Raise ValueError if rows are too wide for this selector, or on other machines."""
        if rows.remote and not self.takes_remote:
            known = ", ".join(sorted(n for n in selectors if selectors[n].takes_remote))
            raise TextError(
                f"{type(self).__name__} reads all rows here again and again, which rows on a "
                "cluster are not for: use {landmarks='bless'} or a number (these selectors take "
                f"such rows: {known})"
            )
        if self.dense_points and rows.entries is not None:
            raise TextError(
                f"the landmarks of {type(self).__name__} are dense, and sparse rows of "
                f"{rows.shape[1]:,} features have no room for that; use {{landmarks='bless'}} or a "
                "number"
            )

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        """Return the memory for choosing m of n rows of d features, blocks of rows aside.

        As selectors by leverage scores take it, unless overridden: the matrix of the landmarks,
        its factor, and numbers for each row.
        """
        return 16 * m * m + 48 * n

    def evaluations(self, n: int, m: int) -> int:
        """Return about how many kernel evaluations that takes; n m unless overridden."""
        return n * m

    def operations(self, n: int, d: int, m: int) -> float:
        """Return about how many floating-point operations it takes; n m² unless overridden."""
        return float(n) * m * m


selectors: Registry[Selector] = Registry("selector of landmarks")


@dataclass(frozen=True)
class SizeOrPenalty(Selector):
    """A selector that is given a number of landmarks or a penalty, and gives the other back.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. More than there are rows: a warning, then all of them.
    penalty : float, optional
        Ridge per sample; positive. As many landmarks as it asks for.

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
                f"{type(self).__name__} needs m, a number of landmarks, or penalty, a ridge per "
                f"sample, and not both; got m={self.m!r}, penalty={self.penalty!r}"
            )
        if self.m is not None:
            as_count(self.m, "the number of landmarks")
        if self.penalty is not None:
            as_positive(self.penalty, "the penalty of a selector")


def capped(m: int, n: int) -> int:
    """Return m, or n with a warning if there are only n rows."""
    if m > n:
        warnings.warn(
            f"{m} landmarks were asked for but there are {n} rows; all rows are used", stacklevel=3
        )
    return min(m, n)
