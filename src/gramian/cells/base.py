"""Base classes of cells, which are regions of the features, and of algorithms that grow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, TypeVar

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .._parallel.workers import one_blas_thread
from .._registries.registry import Registry


@dataclass(frozen=True, eq=False)
class Share:
    """The rows of a cell in a block of rows, with the weights of the cell in these rows.

    Attributes
    ----------
    cell : int
    index : Array of shape (k,)
        Row numbers, increasing.
    weight : Array of shape (k,)
        Positive, in float64; the weights of a row in all of its cells have the sum 1.
    slope : Array of shape (k, d), or None
        Gradients of the weights, if requested.
    """

    cell: int
    index: Int[Array, " k"]
    weight: Float[Array, " k"]
    slope: Float[Array, "k d"] | None = None


CellsType = TypeVar("CellsType", bound="Cells")


class Cells(ABC):
    """Regions of the space of mapped rows, on which the kernel is evaluated; immutable.

    Attributes
    ----------
    count : int
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of cells."""

    @property
    @abstractmethod
    def features(self) -> int | None:
        """Number of features that rows must have; None if cells do not depend on features."""

    @abstractmethod
    def route(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        """Yield the share of each nonempty cell, in the order of the cells.

        Parameters
        ----------
        X : Array of shape (n, d)
        slopes : bool, default=False
            Whether to compute gradients of the weights.
        """

    def route_in_parts(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        """Yield shares as `route` does, for parts of the rows if memory requires it.

        Used for cells from a file, in which a row may belong to any number of cells.
        """
        yield from self.route(X, slopes=slopes)

    def members(self, X: Float[Array, "n d"], *, rng: RandomStream) -> list[Array]:
        """Return, for each cell, the increasing indices of its rows, to which the cell is fitted.

        Parameters
        ----------
        X : Array of shape (n, d)
        rng : RandomStream
            Generator for random cells.
        """
        index_of_cell = [xp.empty(0, xp.int64)] * self.count
        for share in self.route(X):
            index_of_cell[share.cell] = share.index
        return index_of_cell

    def tensors(self) -> dict[str, Array]:
        """Return the tensors to save in a file: all fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_tensors(cls: type[CellsType], tensors: Mapping[str, Array]) -> CellsType:
        """Return the cells of saved tensors; raise ValueError if they are damaged."""
        names = [f.name for f in fields(cls)]
        if set(tensors) != set(names):
            raise ValueError(
                f"cells must have the tensors {', '.join(names)}, not {', '.join(tensors)}"
            )
        for name, tensor in tensors.items():
            if xp.is_floating(tensor) and not bool(xp.isfinite(tensor).all()):
                raise ValueError(f"{name} of the cells has numbers that are not finite")
        cls.check_tensors(tensors)
        return cls(**tensors)

    @staticmethod
    @abstractmethod
    def check_tensors(tensors: Mapping[str, Array]) -> None:
        """Raise ValueError if finite tensors of the right names are no cells."""


class Partition(ABC):
    """An algorithm that divides rows into cells.

    The fields of a partition are parameters, not state.

    Attributes
    ----------
    rows : int
        Approximate largest number of rows of a cell.
    """

    rows: int

    @property
    def largest_cell_rows(self) -> float:
        """Number of rows above which a cell consists of equal rows, which cannot be divided."""
        return 1.5 * self.rows

    def total_cell_rows(self, n: int) -> float:
        """Return the approximate rows of all cells together; rows in bands count several times."""
        return float(n)

    @abstractmethod
    def grow(self, sample: Float[Array, "s d"], n: int, *, rng: RandomStream) -> Cells:
        """Return cells for n rows, grown from a random sample of these rows.

        Parameters
        ----------
        sample : Array of shape (s, d)
            Random rows of the n mapped rows. Cells are not divided along a feature that is constant
            in the sample, even if other rows differ in it.
        n : int
        rng : RandomStream
        """


def divide_rows(
    partition: Partition,
    X: Float[Array, "n d"],
    *,
    most: int = 100_000,
    rng: RandomStream,
) -> tuple[Cells, list[Array]]:
    """Divide rows into cells by a sample of the rows; return the cells, and the rows of each.

    Parameters
    ----------
    partition : Partition
    X : Array of shape (n, d)
    most : int, default=100_000
        Largest number of rows of the sample.
    rng : RandomStream

    Notes
    -----
    A cell of equal rows cannot be divided: it keeps as many random rows as other cells have. A cell
    without rows, which rounding may cause, gets the rows of its neighbour.
    """
    n = len(X)
    # All rows need no random numbers.
    sampled = rng.sample(n, most) if n > most else xp.arange(n)
    # Growing cells consists of many small operations, which more threads would slow down.
    with one_blas_thread:
        cells = partition.grow(X[sampled], n, rng=rng)
    members: list[Array] = []
    for index in cells.members(X, rng=rng):
        if len(index) > partition.largest_cell_rows:
            # A cell this large could not be divided, as its rows are equal: a random part of them
            # represents the others.
            index = index[rng.sample(len(index), partition.rows)]
        members.append(xp.sort(index))
    for number, index in enumerate(members):
        if not len(index):
            # The nearest cell with rows before it, or the first one after it. Earlier cells have
            # been filled, so the previous one suffices.
            neighbours = (
                members[at] for at in (number - 1, *range(number + 1, len(members))) if at >= 0
            )
            members[number] = next(neighbour for neighbour in neighbours if len(neighbour))
    return cells, members


partitions: Registry[Partition] = Registry("partition")

kinds: Registry[Cells] = Registry("kind of cells")
"""Classes of cells, by their names in files."""


def cells_from_parts(kind: object, tensors: Mapping[str, Array]) -> Cells:
    """Return the cells of a kind from their saved tensors.

    Raises
    ------
    ValueError
        If the kind is unknown, or the tensors are damaged.
    """
    return kinds[str(kind)].from_tensors(tensors)
