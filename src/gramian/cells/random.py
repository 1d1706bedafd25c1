"""Random subsets of the rows as cells, whose models are averaged, for comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count
from .base import Cells, Partition, Share, kinds, partitions


@kinds.register("mean")
@dataclass(frozen=True, eq=False)
class MeanCells(Cells):
    """Cells that all predict each row, with the mean of the predictions as the result.

    Attributes
    ----------
    number : Array of shape ()
        Number of cells.
    """

    number: Array

    @property
    def count(self) -> int:
        return int(self.number)

    @property
    def features(self) -> int | None:
        return None

    def route(self, X: Float[Array, "n d"], *, slopes: bool = False) -> Iterator[Share]:
        n, index = len(X), xp.arange(len(X))
        weight = xp.full((n,), 1.0 / self.count, dtype=xp.float64)
        slope = xp.zeros(X.shape, xp.float64, like=X) if slopes else None
        # Shares without rows are left out, as in the other kinds of cells.
        for cell in range(self.count if n else 0):
            yield Share(cell, index, weight, slope)

    def members(self, X: Float[Array, "n d"], *, rng: RandomStream) -> list[Array]:
        """Return random parts of the rows, whose sizes differ by at most one row."""
        parts = xp.array_split(rng.permutation(len(X)), self.count)
        return [xp.sort(part) for part in parts]

    @staticmethod
    def check_tensors(tensors: Mapping[str, Array]) -> None:
        number = tensors["number"]
        if number.ndim or xp.is_floating(number) or int(number) < 1:
            raise ValueError("the number of cells must be a positive whole number")


@partitions.register("random")
@dataclass(frozen=True)
class RandomCells(Partition):
    """Random subsets, as in divide-and-conquer kernel ridge regression [1]_.

    Use it as a control, to measure the gain of regions.

    Parameters
    ----------
    rows : int, default=10_000
        Largest number of rows of a cell.

    Notes
    -----
    Each model is fitted to few rows from all regions, and a prediction costs as much as the
    predictions of all cells.

    References
    ----------
    .. [1] Zhang, Duchi, Wainwright, *Divide and conquer kernel ridge regression*, JMLR 16, 2015.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.cells import RandomCells
    >>> houses = pd.read_parquet(sample_path("california_housing")).drop(columns="split")
    >>> houses = houses.sample(1200, random_state=0)
    >>> train, test = houses[:1000], houses[1000:]
    >>> kernel = dict(kernel="laplacian", lengthscale="2 median", penalty=1e-4, random_state=0)
    >>> est = KernelRidge(**kernel, cells=RandomCells(300)).fit(train, "target")
    >>> print(f"{len(est.history_)} cells, R2 {est.score(test):.2f}")
    4 cells, R2 0.80
    """

    rows: int = 10_000

    def __post_init__(self) -> None:
        as_count(self.rows, "rows")

    def grow(self, sample: Float[Array, "s d"], n: int, *, rng: RandomStream) -> MeanCells:
        return MeanCells(xp.array(-(-n // self.rows), xp.int64))
