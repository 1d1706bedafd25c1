"""Cells, and the partitions that grow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._parallel.workers import one_thread_each
from .._registries.registry import Registry


@dataclass(frozen=True, eq=False)
class Share:
    """The rows that belong to a cell, and how much.

    Attributes
    ----------
    cell : int
    index : Tensor of shape (k,)
        Numbers of the rows, increasing.
    weight : Tensor of shape (k,)
        Above 0, in float64; the weights of a row over all its cells sum to 1.
    slope : Tensor of shape (k, d), or None
        The gradient of the weights, if it was asked for.
    """

    cell: int
    index: Int[Tensor, " k"]
    weight: Float[Tensor, " k"]
    slope: Float[Tensor, "k d"] | None = None


class Cells(ABC):
    """Regions of rows as the kernel sees them; a frozen value.

    Attributes
    ----------
    count : int
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of cells."""

    @property
    @abstractmethod
    def features(self) -> int | None:
        """The number of features that rows must have; None if cells do not depend on features."""

    @abstractmethod
    def route(self, X: Float[Tensor, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        """Yield the rows of each cell that has any, by increasing cell.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        slopes : bool, default=False
            Whether gradients of the weights are wanted.
        """

    def route_in_parts(self, X: Float[Tensor, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        """Yield shares as `route` does, of some rows after the others where memory needs it.

        For cells from a file, whose rows may belong to any number of them.
        """
        yield from self.route(X, slopes=slopes)

    def members(self, X: Float[Tensor, "n d"], *, rng: torch.Generator) -> list[Tensor]:
        """Return the numbers of the rows that each cell is fitted to, increasing: all of its own.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        rng : torch.Generator
            For cells that are random.
        """
        index_of_cell = [torch.empty(0, dtype=torch.int64)] * self.count
        for share in self.route(X):
            index_of_cell[share.cell] = share.index
        return index_of_cell

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that a file keeps."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Cells:
        """Rebuild from what `tensors` gave; ValueError if that is damaged."""


class Partition(ABC):
    """An algorithm that divides rows. Fields are its parameters; it holds no state.

    Attributes
    ----------
    rows : int
        Of a cell, at most, about.
    """

    rows: int

    @property
    def largest_cell_rows(self) -> float:
        """The rows of a cell beyond which it could not be divided: its rows are all the same."""
        return 1.5 * self.rows

    def total_cell_rows(self, n: int) -> float:
        """Return the approximate rows of all cells together: rows in bands are in several cells."""
        return float(n)

    @abstractmethod
    def grow(self, sample: Float[Tensor, "s d"], n: int, *, rng: torch.Generator) -> Cells:
        """Return cells of n rows, grown from a random sample of them.

        Parameters
        ----------
        sample : Tensor of shape (s, d)
            Rows as the kernel sees them, of which there are n. A feature that is the same in all of
            them is one that no cell is cut along, whatever other rows have there.
        n : int
        rng : torch.Generator
        """


def divide_rows(
    partition: Partition,
    X: Float[Tensor, "n d"],
    *,
    most: int = 100_000,
    rng: torch.Generator,
) -> tuple[Cells, list[Tensor]]:
    """Return cells, grown from a sample of the rows, and the numbers of the rows of each.

    Parameters
    ----------
    partition : Partition
    X : Tensor of shape (n, d)
    most : int, default=100_000
        Rows of the sample.
    rng : torch.Generator

    Notes
    -----
    A cell whose rows are all equal cannot be divided: it keeps as many random rows as other cells
    have. A cell without rows, which rounding may leave, gets the rows of its neighbour.
    """
    n = len(X)
    # All rows need no random numbers.
    sampled = torch.randperm(n, generator=rng)[:most] if n > most else torch.arange(n)
    # Growing cells consists of many small operations, which more threads would slow down.
    with one_thread_each():
        cells = partition.grow(X[sampled], n, rng=rng)
    members: list[Tensor] = []
    for index in cells.members(X, rng=rng):
        if len(index) > partition.largest_cell_rows:
            # A cell this large could not be divided, as its rows are equal: a random part of them
            # represents the others.
            index = index[torch.randperm(len(index), generator=rng)[: partition.rows]]
        members.append(index.sort().values)
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
"""By the names that files have for them."""


def cells_from_parts(kind: object, tensors: Mapping[str, Tensor]) -> Cells:
    """Rebuild cells from the name of their kind and what `Cells.tensors` gave.

    Raises
    ------
    ValueError
        If there is no such kind, or the tensors are damaged.
    """
    return kinds[str(kind)].from_tensors(tensors)


def check_names(tensors: Mapping[str, Tensor], names: tuple[str, ...]) -> None:
    """Raise ValueError unless the tensors have these names and finite numbers."""
    if set(tensors) != set(names):
        raise ValueError(
            f"cells must have the tensors {', '.join(names)}, not {', '.join(tensors)}"
        )
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} of the cells has numbers that are not finite")
