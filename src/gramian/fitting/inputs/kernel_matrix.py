"""Fit to a given kernel matrix in place of rows and a kernel."""

from __future__ import annotations

import logging
import reprlib
from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.errors import SETTING_FORM, ParameterError
from ..._parameters.types import LandmarksLike, Lengthscale
from ...callbacks import Validate
from ...data import RowSource, as_rows, refuse_remote
from ...kernels import Kernel, Linear
from ...kernels.base import Prepared, Side
from ...landmarks import Selector
from ...model import KernelModel
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings
from .objects import CallCost, Calls, ObjectRows, check_memory_of_calls, cost_of
from .training_data import TrainingData

logger = logging.getLogger("gramian")

PRECOMPUTED_NAME = "precomputed"

LOOKED_AT = 100
"""Rows that are compared with columns, as a matrix of a kernel is symmetric."""

SYMMETRY_TOLERANCE = 1e-4
"""Largest difference of rows and columns, relative to the largest entry of these rows."""


@dataclass(frozen=True, eq=False)
class Given:
    """Entries that are looked up in a given matrix, in memory or in a mapped file."""

    matrix: Float[Array, "n n"]

    @property
    def count(self) -> int:
        """Number of rows of the matrix, n."""
        return len(self.matrix)

    @property
    def dtype(self) -> xp.DType:
        """The type of the entries."""
        return self.matrix.dtype

    def block(self, rows: Int[Array, " b"], columns: Int[Array, " m"]) -> Float[Array, "b m"]:
        """Return the entries of some rows and columns; the caller must not write to the result."""
        down, across = _range_or_numbers(rows), _range_or_numbers(columns)
        # A slice is a view, so it comes first: only the rows or columns in a list are copied.
        if isinstance(across, slice):
            return self.matrix[:, across][down]
        if isinstance(down, slice):
            return self.matrix[down][:, across]
        # Two plain lists would select pairs: the column vector makes the index a grid.
        return self.matrix[down[:, None], across]

    def diagonal(self, at: Int[Array, " b"]) -> Float[Array, " b"]:
        """Return the diagonal entries k(x_i, x_i) of some rows."""
        return self.matrix[at, at]


def _range_or_numbers(numbers: Int[Array, " k"]) -> slice | Int[Array, " k"]:
    """Return consecutive indices as a slice, which selects without a copy; others unchanged."""
    start, count = int(numbers[0]), len(numbers)
    if xp.array_equal(numbers, xp.arange(start, start + count)):
        return slice(start, start + count)
    return numbers


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """Kernel that looks up the entries of a matrix; its rows are row numbers.

    - `entries`: source of the entries: a memory map is read tile by tile.
    """

    entries: Given | Calls

    def __repr__(self) -> str:
        return f"Precomputed({self.entries.count} x {self.entries.count})"

    def unscaled_features(self, d: int) -> frozenset[int]:
        # No map may touch the feature, which is a row number.
        return frozenset(range(d))

    def to_dict(self) -> dict[str, Any]:
        """Return only the name: `linear_model` replaces this kernel before a model is saved."""
        return {"name": PRECOMPUTED_NAME}

    def prepare(self, points: Array, side: Side) -> Prepared:
        return (points,)

    def tile(
        self, left: Prepared, right: Prepared, out: Float[Array, "b m"], *, underflow: bool = True
    ) -> Float[Array, "b m"]:
        return xp.assign_(out, self.entries.block(_of(left[0]), _of(right[0])))

    def diag(self, x: Array) -> Float[Array, " b"]:
        return xp.cast_like(self.entries.diagonal(_of(x)), x)


def _of(points: Array) -> Int[Array, " b"]:
    """Return the row numbers that the only column of the points holds."""
    return xp.to_host(xp.cast(points[:, 0], xp.int64))


def looked_up(settings: FitSettings, data: TrainingData) -> tuple[FitSettings, TrainingData]:
    """Replace the kernel matrix in the data by row numbers, and the kernel by `Precomputed`.

    Raise ValueError if the matrix is not the matrix of a kernel, or settings require rows.
    """
    n = len(data.rows)
    _check_settings(settings, data.rows)
    # Before the first call: too many entries are refused, and the expected time is announced.
    if isinstance(data.rows, ObjectRows):
        landmarks = landmark_settings.with_all_rows(settings, n).landmarks
        check_memory_of_calls(
            data.rows.calls, landmark_settings.landmark_count(landmarks, n), settings.limit
        )
        announce_calls(data.rows, landmarks)
    kernel, numbers = of_matrix(data.rows)
    # The columns of a matrix are rows, so their names are no names of features.
    return settings.with_values(kernel=kernel), replace(data, rows=numbers, feature_names=None)


def plan_matrix(settings: FitSettings, rows: RowSource) -> tuple[FitSettings, RowSource]:
    """Return settings and rows for the plan of a fit to a kernel matrix, which is not read.

    Raise ValueError if the matrix is not square, or settings require rows.
    """
    _check_settings(settings, rows)
    check_square(rows)
    # A placeholder of the right type: a plan reads no entry.
    kernel = Precomputed(Given(xp.ones((1, 1), rows.dtype)))
    return settings.with_values(kernel=kernel), _numbers(len(rows), rows.dtype)


def of_matrix(rows: RowSource) -> tuple[Precomputed, RowSource]:
    """Return the kernel that looks up the entries of a matrix, and row numbers as rows.

    Raise ValueError if the matrix is not the matrix of a kernel.
    """
    entries = rows.calls if isinstance(rows, ObjectRows) else Given(_matrix(rows))
    return Precomputed(entries), _numbers(len(rows), entries.dtype)


def announce_calls(rows: RowSource, landmarks: LandmarksLike, named: int | None = None) -> None:
    """Log a warning with the cost of kernel calls, if the rows are objects.

    - `named`: number of landmarks if `landmarks` is the name of a selector.
    """
    if isinstance(rows, ObjectRows):
        logger.warning("%s", cost_of_objects(rows, landmarks, named))


def cost_of_objects(
    rows: ObjectRows, landmarks: LandmarksLike, named: int | None = None
) -> CallCost:
    """Return the expected cost of the kernel calls of a fit; parameters as in `announce_calls`."""
    n = len(rows)
    m = landmark_settings.landmark_count(landmarks, n, named)
    selector = landmark_settings.selector(landmarks, n)
    chosen_by = selector.evaluations(n, m or n) if isinstance(selector, Selector) else 0
    return cost_of(rows.calls, m, chosen_by)


def _numbers(n: int, dtype: xp.DType) -> RowSource:
    # Neighbouring integers beyond that are the same floating-point number.
    if n > 1 / xp.finfo(dtype).eps:
        most_rows = int(1 / xp.finfo(dtype).eps)
        raise ValueError(
            f"kernel='precomputed' supports at most {most_rows:,} rows in {dtype}, not {n:,}; give "
            "the matrix in float64"
        )
    return as_rows(xp.cast(xp.arange(n, dtype=xp.float64)[:, None], dtype))


def check_square(rows: RowSource) -> None:
    """Raise ValueError if rows are not a dense square matrix."""
    n, d = rows.shape
    refuse_remote(
        rows, "{kernel='precomputed'} needs the matrix on this machine, but its rows are on others"
    )
    if n != d or rows.sparse:
        kind = "sparse " if rows.sparse else ""
        raise ValueError(
            "kernel='precomputed' needs the dense square matrix of the kernel between all training "
            f"rows, not a {kind}matrix of shape ({n}, {d})"
        )


def _matrix(rows: RowSource) -> Float[Array, "n n"]:
    """Check a kernel matrix and return it, without a copy if its entries are floating-point."""
    check_square(rows)
    n = len(rows)
    parts = [block for _, block in rows.blocks(n)]
    # An array comes in one block, without a copy; files come in several.
    entries = parts[0] if len(parts) == 1 else xp.concat(parts)
    # All rows would mean to read a mapped file twice, the second time column by column.
    index = xp.cast(xp.linspace(0, n - 1, min(n, LOOKED_AT)).round(), xp.int64)
    across, down = entries[index], entries[:, index].T
    if float(xp.abs(across - down).max()) > SYMMETRY_TOLERANCE * float(xp.abs(across).max()):
        raise ValueError(
            "kernel='precomputed' needs a symmetric matrix, but X differs from its transpose by "
            "more than rounding; pass the kernel between the training rows"
        )
    if bool((xp.diagonal(entries) < 0).any()):
        raise ValueError(
            "kernel='precomputed' needs a matrix with no negative number on its diagonal, but X "
            "has some; a distance is not a kernel"
        )
    return entries


def _check_settings(settings: FitSettings, rows: RowSource) -> None:
    what = _what(rows)
    refused = {
        "metric": settings.metric is not None,
        "cells": settings.cells is not None,
        "centers_file": settings.centers_file is not None,
        "warm_start": bool(settings.warm_start),
        "Validate": any(isinstance(callback, Validate) for callback in settings.callbacks),
    }
    for name, refused_value in refused.items():
        if refused_value:
            raise ValueError(
                f"{name} cannot be combined with {what}, which has no rows; leave {name} out"
            )
    check_matrix_settings(settings.lengthscale, settings.landmarks, rows)


def _what(rows: RowSource) -> str:
    return "a kernel of objects" if isinstance(rows, ObjectRows) else "kernel='precomputed'"


def check_matrix_settings(
    lengthscale: Lengthscale, landmarks: LandmarksLike, rows: RowSource
) -> None:
    """Raise ValueError for a given lengthscale, or landmarks that are not rows of the matrix."""
    what = _what(rows)
    if not (isinstance(lengthscale, str) and lengthscale in ("auto", "median")):
        problem = f"has no effect on {what}, whose values are fixed"
        raise ParameterError("lengthscale", lengthscale, problem, "leave it out", SETTING_FORM)
    selector = landmark_settings.selector(landmarks, len(rows))
    if isinstance(selector, RowSource) or (
        isinstance(selector, Selector) and selector.dense_points
    ):
        raise ValueError(
            f"landmarks of {what} are rows of its matrix: they must be a number or a selector of "
            f"rows, not {reprlib.repr(landmarks)}"
        )


def only_columns(model: KernelModel, columns: Int[Array, " m"]) -> KernelModel:
    """Return a model of `linear_model` that reads the given columns alone.

    The coefficients of the other columns are zero.
    """
    rows = model.centers.take(xp.arange(len(model.centers)))
    return replace(model, centers=xp.contiguous(rows[:, columns]))


def linear_model(model: KernelModel, n: int) -> KernelModel:
    """Convert a model whose rows are row numbers to a linear model of rows of the kernel matrix.

    A new row has its kernel values with the n training rows. The prediction is linear in them, and
    the centers of the linear model are the coefficients.
    """
    # f(x) = sum_j K(x, x_j) c_j is linear in the row K(x, .). In a linear kernel, the coefficients
    # c of a target are a center, and each target has the value of its own center.
    numbers = xp.cast(model.centers.take(xp.arange(len(model.centers)))[:, 0], xp.int64)
    coef = model.coef
    all_coefs = xp.zeros((n, coef.shape[1]), like=coef)
    all_coefs[numbers] = coef
    same = xp.eye(coef.shape[1], coef.dtype)
    return replace(model, kernel=Linear(), centers=xp.contiguous(all_coefs.T), coef=same)
