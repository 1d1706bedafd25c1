"""Row sources that change each block of another row source as it is read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._parallel.workers import default_threads, run
from ..._sparse import cast, scale_columns
from .base import RowSource, check_local, slices

PART_NUMBERS = 1 << 18
"""Least numbers for a worker, which standardises them in a quarter of a millisecond."""


class Blockwise(RowSource):
    """Base of row sources that change each block of another source when the block is read.

    - `rows`, RowSource of shape (n, d): local rows: remote rows are changed on their machines, by
      `RowSource.map_rows` with the same class.
    """

    def __init__(self, rows: RowSource) -> None:
        check_local(rows, type(self).__name__)
        self.rows = rows
        self._resemble(rows)

    @abstractmethod
    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b k"]:
        """Return the changed block as a new array, or the block itself."""

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        for part, block in self.rows.blocks(size):
            yield part, self.change(block)

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        return self.change(self.rows.take(index))


class Cast(Blockwise):
    """Row source that converts the rows of another source to another floating-point type.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    dtype : dtype
        float32 or float64.
    """

    def __init__(self, rows: RowSource, dtype: xp.DType) -> None:
        super().__init__(rows)
        self.dtype = xp.numpy_dtype(dtype)
        if self.dtype not in (xp.float32, xp.float64):
            raise ValueError(f"dtype must be float32 or float64, got {dtype}")

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b d"]:
        return cast(block, self.dtype)


def cast_rows(rows: RowSource, dtype: xp.DType) -> RowSource:
    """Return local or remote rows in another floating-point type."""
    return rows.map_rows(partial(Cast, dtype=dtype))


class Standardized(Blockwise):
    """``(x - mean) / scale``, computed as rows are read.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    mean, scale : ndarray of shape (d,)
        Float64. For sparse rows the mean must be zero: subtracting another number would fill the
        zeros.
    prepared : dict of dtype to tuple of Array, optional
        Mean and scale in the types of rows, kept for the next rows of the same type.

    Notes
    -----
    Blocks stay in the type of ``rows``. In float32 the mean is subtracted in two parts, its
    float32 value (exactly, where it is close to x) and the rest, so that a column far from
    zero keeps its digits.
    """

    def __init__(
        self,
        rows: RowSource,
        mean: Float[Array, " d"],
        scale: Float[Array, " d"],
        prepared: dict[Any, tuple[Array, ...]] | None = None,
    ) -> None:
        super().__init__(rows)
        _check_standards(rows, mean, scale)
        prepared = {} if prepared is None else prepared
        if self.dtype not in prepared:
            prepared[self.dtype] = _prepare_standards(mean, scale, self.dtype)
        self._mean, self._rest, self._scale, self._inverse = prepared[self.dtype]

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b d"]:
        if self.sparse:
            # The mean is zero, and the product keeps the pattern of the entries.
            return scale_columns(block, self._inverse)
        # One new array, because the block itself may be a view of the user's array.
        out = xp.empty_like(block)
        if xp.size(block) < 2 * PART_NUMBERS or not xp.is_host(xp.device_of(block)):
            self._standardize(block, out)
            return out
        threads = default_threads()
        rows = max(-(-len(block) // (2 * threads)), PART_NUMBERS // block.shape[1])
        parts, light = slices(len(block), rows), threads == 1
        work = run(threads, lambda i: self._standardize(block[i], out[i]), parts, light=light)
        for _ in work:
            pass
        return out

    def _standardize(self, x: Float[Array, "b d"], out: Float[Array, "b d"]) -> None:
        mean, rest_of_mean, scale = (
            xp.to_device(t, xp.device_of(x)) for t in (self._mean, self._rest, self._scale)
        )
        xp.divide_(xp.subtract_(xp.subtract(x, mean, out=out), rest_of_mean), scale)


def _prepare_standards(
    mean: Float[Array, " d"], scale: Float[Array, " d"], dtype: xp.DType
) -> tuple[Array, ...]:
    """Return mean, rest of the mean, scale and its inverse, in the type of the rows."""
    # `not (scale > 0)` is also true for NaN.
    if not bool((scale > 0).all()):
        smallest = float(scale.min())
        raise ValueError(f"the scale of each feature must be above zero, got {smallest:g}")
    # 1. The part of the mean that the type of the rows holds.
    held_mean = xp.cast(mean, dtype)
    # 2. The rest, which the first part rounded away: in float32 up to 6e-8 of the mean, which
    # is many digits of a column with a mean far above its scale.
    rest_of_mean = xp.cast(xp.to_float64(mean) - xp.to_float64(held_mean), dtype)
    inverse = xp.cast(xp.reciprocal(xp.to_float64(scale)), dtype)
    return held_mean, rest_of_mean, xp.cast(scale, dtype), inverse


def _check_standards(rows: RowSource, mean: Array, scale: Array) -> None:
    d = rows.shape[1]
    if mean.shape != (d,) or scale.shape != (d,):
        raise ValueError(
            f"the rows have {d} features, but the standardisation has a mean for {xp.size(mean)} "
            f"and a scale for {xp.size(scale)}"
        )
    if rows.sparse and bool(mean.any()):
        raise ValueError(
            "sparse rows cannot be centered without filling their zeros, but the standardisation "
            "has a mean other than zero, as after a fit to dense rows; "
            "pass dense rows (x.toarray()), or fit with sparse ones"
        )
