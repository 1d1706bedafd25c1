"""Row sources made of row sources: standardised, in another type, or a part of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._sparse import cast, scale_columns
from .base import RowSource, check_index, check_size, slices


class Blockwise(RowSource):
    """Another source, with each block changed on its way.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    """

    def __init__(self, rows: RowSource) -> None:
        self.rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.feature_names = rows.feature_names
        self.random_access = rows.random_access
        self.sparse = rows.sparse

    @abstractmethod
    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """Give the changed block as a new tensor, or the block itself."""

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        for part, block in self.rows.blocks(size):
            yield part, self.change(block)

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        return self.change(self.rows.take(index))


class Cast(Blockwise):
    """The same rows in another floating-point type.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    dtype : torch.dtype
        ``torch.float32`` or ``torch.float64``.
    """

    def __init__(self, rows: RowSource, dtype: torch.dtype) -> None:
        super().__init__(rows)
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"Rows are torch.float32 or torch.float64, not {dtype}.")
        self.dtype = dtype

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Convert; see `Blockwise.change`."""
        return cast(block, self.dtype)


class Select(Blockwise):
    """Some columns of a dense source, in the order given.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    columns : sequence of int or str, of length k
        Numbers in ``0 .. d-1`` or feature names. Where there are no names, ``"3"`` means 3.
    """

    def __init__(self, rows: RowSource, columns: Sequence[int | str]) -> None:
        super().__init__(rows)
        if rows.sparse:
            raise ValueError("Columns of sparse rows are chosen in SciPy: matrix[:, columns].")
        numbers = column_numbers(columns, rows.feature_names, rows.shape[1])
        self.shape = (rows.shape[0], len(numbers))
        if rows.feature_names is not None:
            self.feature_names = tuple(rows.feature_names[j] for j in numbers)
        self._numbers = torch.tensor(numbers)

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """Pick columns; see `Blockwise.change`."""
        return block.index_select(1, self._numbers.to(block.device))


def column_numbers(
    columns: Sequence[int | str], names: tuple[str, ...] | None, d: int
) -> tuple[int, ...]:
    """Translate column names and numbers into distinct numbers in ``0 .. d-1``.

    Parameters
    ----------
    columns : sequence of int or str
    names : tuple of str of length d, or None
    d : int

    Returns
    -------
    tuple of int
    """
    number = {name: j for j, name in enumerate(names or map(str, range(d)))}
    number_or_same = [number.get(c, c) if isinstance(c, str) else c for c in columns]
    missing = [str(c) for c in number_or_same if isinstance(c, str) or not 0 <= c < d]
    if missing:
        known = ", ".join(names) if names else f"columns 0 .. {d - 1}, without names"
        raise ValueError(f"There is no column {', '.join(missing)}; there are {known}.")
    numbers = tuple(c for c in number_or_same if not isinstance(c, str))
    if not numbers:
        raise ValueError("Found 0 columns (columns=[]), but at least one feature is needed.")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"A column is named twice in columns={list(columns)}.")
    return numbers


class Standardized(Blockwise):
    """``(x - mean) / scale``, computed as the rows go by.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    mean, scale : Tensor of shape (d,)
        In float64. For sparse rows the mean must be zero: subtracting anything else would fill
        the zeros.

    Notes
    -----
    Blocks stay in the type of ``rows``. In float32 the mean is subtracted in two parts, its
    float32 value (exactly, where it is close to x) and the rest, so that a column far from
    zero keeps its digits.
    """

    def __init__(
        self, rows: RowSource, mean: Float[Tensor, " d"], scale: Float[Tensor, " d"]
    ) -> None:
        super().__init__(rows)
        _check_standards(rows, mean, scale)
        self._mean = mean.to(self.dtype)
        self._rest = (mean.double() - self._mean.double()).to(self.dtype)
        self._scale = scale.to(self.dtype)
        self._inverse = scale.double().reciprocal().to(self.dtype)

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Standardise; see `Blockwise.change`."""
        if self.sparse:
            return scale_columns(block, self._inverse)
        mean, rest, scale = (t.to(block.device) for t in (self._mean, self._rest, self._scale))
        return torch.sub(block, mean).sub_(rest).div_(scale)


def _check_standards(rows: RowSource, mean: Tensor, scale: Tensor) -> None:
    d = rows.shape[1]
    if mean.shape != (d,) or scale.shape != (d,):
        raise ValueError(
            f"The rows have {d} features, but the standardisation was made for "
            f"{mean.numel()} (mean) and {scale.numel()} (scale)."
        )
    if not bool((scale > 0).all()):
        raise ValueError("Each feature needs a scale above zero.")
    if rows.sparse and bool(mean.any()):
        raise ValueError(
            "Sparse rows cannot be centred without filling their zeros, but the standardisation "
            "has a mean other than zero, as if made from dense rows. "
            "Pass dense rows (x.toarray()), or fit with sparse ones."
        )


class Subset(RowSource):
    """Some rows of another source, in the order given.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    index : Tensor of shape (k,)
        Row numbers in ``0 .. n-1``. Any order, repeats allowed; but a pass over a sequential source
        filters it while it goes by, and asks for strictly increasing numbers (`take` does not).

    Notes
    -----
    Cost of a pass: a copy of the k rows; for a sequential source a full pass over ``rows``, with
    blocks as small as the share of rows that stays.
    """

    def __init__(self, rows: RowSource, index: Int[Tensor, " k"]) -> None:
        if len(index) == 0:
            raise ValueError("A subset needs at least one row, got an empty list of row numbers.")
        check_index(index, rows.shape[0])
        self.rows = rows
        self.index = index.to("cpu", torch.int64)
        self.shape = (len(index), rows.shape[1])
        self.dtype = rows.dtype
        self.feature_names = rows.feature_names
        self.random_access = rows.random_access
        self.sparse = rows.sparse

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        if not self.random_access:
            yield from self._filtered(size)
            return
        for part in slices(self.shape[0], size):
            yield part, self.rows.take(self.index[part])

    def _filtered(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        check_size(size)
        _check_increasing(self.rows, self.index)
        for part, block in self.rows.blocks(size):
            ends = torch.searchsorted(self.index, torch.tensor([part.start, part.stop]))
            start, stop = ends.tolist()
            if stop > start:
                yield slice(start, stop), block[self.index[start:stop] - part.start]

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        check_index(index, self.shape[0])
        return self.rows.take(self.index[index.to("cpu", torch.int64)])


def _check_increasing(rows: RowSource, index: Tensor) -> None:
    if bool((index.diff() <= 0).any()):
        raise ValueError(
            f"{rows!r} is read from front to back, so row numbers of a subset must be strictly "
            "increasing. Sort them (and the targets with them), or convert the data once with "
            "`gramian convert data.parquet data.npy`."
        )
