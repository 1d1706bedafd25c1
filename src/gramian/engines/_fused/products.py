"""Products with a kernel matrix whose tiles are never stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
from torch import Tensor

from ...kernels import Radial
from ...kernels._lengthscale import LengthscaleKernel
from .._tiles.precision import parameters
from . import tiles
from .distances import SCRATCH_BYTES, SPLIT_ROWS, choose
from .points import (
    INTERPRETED_TILE,
    PADDED_ROWS,
    SYMMETRIC_TILES,
    TILE_SHAPES,
    TUNING_LOCK,
    Points,
    Tile,
    autotune_program,
    in_lengthscales,
    norm,
    options,
)
from .profiles import PROFILE_OF_KERNEL

TARGET_COLUMNS = 64
"""Columns of v that are multiplied at once; for more, entries are computed again."""

SYMMETRIC_TARGETS = TARGET_COLUMNS // 2
"""The same in a symmetric product, which needs registers for K v and K' v."""

SPAN_COLUMNS = 4096
"""Columns that one program adds up at least."""

TUNED_PAIRS = 1 << 34
"""Least entries of a product for tuning, which compiles five programs of about 0.7 s on an H200;
these entries take 0.03 s there."""

WANTED_PROGRAMS = SPLIT_ROWS // PADDED_ROWS
"""Programs wanted: where rows make fewer, columns are split too. Some for each of 132 cores."""


@dataclass(frozen=True)
class Fused:
    """The kernel matrix k(left, right), whose tiles are computed and used without storing them."""

    left: Points
    right: Points
    constants: Mapping[str, Any]
    precision: str
    diagonal: int | None
    tuned: bool

    @classmethod
    def build(
        cls,
        kernel: LengthscaleKernel,
        x: Tensor,
        z: Tensor,
        diagonal: int | None,
        precision: str,
        tuned: bool,
    ) -> Fused | None:
        """Center, scale and arrange the rows; return None if no layout keeps the digits in float32.

        Raise ValueError if the lengthscale is not a number yet, or is for another number
        of features.
        """
        # These kernels depend on x - z alone: around their mean the rows have the smallest norms,
        # and cancellation costs the fewest digits.
        origin = z.mean(dim=0, dtype=torch.float64)
        columns = in_lengthscales(kernel, z, origin)
        reach = norm(columns, 2).square_() if isinstance(kernel, Radial) else norm(columns, 1)
        fourth = norm(columns, 4).square_()
        reach_limit, fourth = torch.stack(
            [reach.max(), fourth.max()]
        ).tolist()  # one wait for the device
        distance = choose(kernel, reach_limit, fourth, z.shape[1], precision)
        if distance is None:
            return None
        scale = kernel.scale if isinstance(kernel, Radial) else 1.0
        right = Points.prepare(columns, scale, distance)
        left_points = right
        if x is not z:
            # The largest array so far, and not needed any more: rows of x may be as large.
            del columns
            left_points = Points.prepare(in_lengthscales(kernel, x, origin), scale, distance)
        constants = {
            "scale": scale,
            "shape": next(iter(parameters(kernel)), 0.0),
            "PROFILE": PROFILE_OF_KERNEL[type(kernel)],
            "DISTANCE": distance,
        }
        return cls(left_points, right, constants, precision, diagonal, tuned)

    @property
    def features(self) -> int:
        """Number of features of a row, including padding."""
        return self.left.rows.shape[1]

    @property
    def T(self) -> Fused:
        """The transposed kernel matrix, k(right, left)."""
        diagonal = None if self.diagonal is None else -self.diagonal
        return replace(self, left=self.right, right=self.left, diagonal=diagonal)

    def __matmul__(self, v: Tensor) -> Tensor:
        """Return the product with v, (m, t), in float64."""
        return self._by_targets(self._product, v, TARGET_COLUMNS)

    def symmetric(self, v: Tensor) -> Tensor:
        """Return the product of k(x, x) with v; each pair of rows is evaluated once.

        More than `SYMMETRIC_TARGETS` columns of v are processed in groups, each with its
        evaluations.

        Several programs contribute to a row, and many to a column: their partial sums are stored
        separately, and then added up in order. Partial sums for columns take `SCRATCH_BYTES`, or
        more if the sums of one tile of rows exceed it. Atomic additions would move as many numbers,
        in an order that changes from run to run.
        """
        return self._by_targets(self._symmetric, v, SYMMETRIC_TARGETS)

    def part(self, start: int, size: int) -> Fused:
        """Return at most `size` of the rows from `start` on, both multiples of `ROWS`."""
        diagonal = None if self.diagonal is None else self.diagonal + start
        return replace(self, left=self.left.part(start, size), diagonal=diagonal)

    def _by_targets(self, product: Callable[[Tensor], Tensor], v: Tensor, most: int) -> Tensor:
        if v.shape[0] != self.right.n:
            raise ValueError(
                f"v must have one row for each of the {self.right.n} columns, not {v.shape[0]}"
            )
        out = v.new_empty(self.left.n, v.shape[1], dtype=torch.float64)
        for start in range(0, v.shape[1], most):
            target_columns = slice(start, start + most)
            out[:, target_columns] = product(v[:, target_columns])
        return out

    def _product(self, v: Tensor) -> Tensor:
        rows, packed = len(self.left.rows), self._pack_columns(v)
        width, columns = packed.shape
        span = _span(rows, columns)
        # One sum per span and a fixed order of addition make each run give the same bits.
        parts = packed.new_empty(-(-columns // span), rows, width, dtype=torch.float64)
        self._start(
            tiles.matvec,
            lambda meta: (rows // meta["BM"], len(parts)),
            v=packed,
            out=parts,
            v_target=columns,
            out_split=rows * width,
            columns=columns,
            span=span,
            PRECISION=self.precision,
            T=width,
        )
        return parts.sum(dim=0)[: self.left.n, : v.shape[1]]

    def _symmetric(self, v: Tensor) -> Tensor:
        packed = self._pack_columns(v)
        width, n = packed.shape
        total = packed.new_zeros(n, width, dtype=torch.float64)
        # A strip of rows bounds the sums of columns, which grow with the rows times the columns.
        strip = max(SCRATCH_BYTES // (8 * n * width), 1) * PADDED_ROWS
        for start in range(0, n, strip):
            by_row, by_column = self._strip(packed, start, min(strip, n - start))
            total[start : start + strip] += by_row
            total[start:] += by_column
        return total[: self.left.n, : v.shape[1]]

    def _strip(self, packed: Tensor, start: int, rows: int) -> tuple[Tensor, Tensor]:
        """Return the sums for `rows` rows, and for the columns from the first of these rows on."""
        width, columns = packed.shape[0], packed.shape[1] - start
        span = _span(rows, columns)
        by_row = packed.new_empty(-(-columns // span), rows, width, dtype=torch.float64)
        by_column = packed.new_empty(rows // PADDED_ROWS, columns, width, dtype=torch.float64)
        self._start(
            tiles.symmetric,
            lambda meta: (rows // meta["BM"], len(by_row)),
            SYMMETRIC_TILES,
            v=packed,
            out=by_row,
            across=by_column,
            v_target=start + columns,
            out_split=rows * width,
            across_split=columns * width,
            first=start,
            columns=start + columns,
            span=span,
            PRECISION=self.precision,
            T=width,
        )
        return by_row.sum(dim=0), by_column.sum(dim=0)

    def _pack_columns(self, v: Tensor) -> Tensor:
        """Return v as (T, columns) in float32, padded with zeros."""
        t = v.shape[1]
        # Tensor cores multiply at least 16 columns, and a size in Triton is a power of two.
        width = 1 if t == 1 else max(triton.next_power_of_2(t), 16)
        packed = self.right.rows.new_zeros(width, len(self.right.rows))
        packed[:t, : len(v)] = v.t()
        return packed

    def dense(self) -> Tensor:
        """Return the kernel matrix in float32, stored."""
        out = self.left.rows.new_empty(self.left.n, self.right.n)
        rows, columns = len(self.left.rows), len(self.right.rows)
        self._start(
            tiles.block,
            lambda meta: (rows // meta["BM"] * (columns // meta["BN"]),),
            out=out,
            out_row=self.right.n,
            row_count=self.left.n,
            col_count=self.right.n,
            columns=columns,
        )
        return out

    def _start(
        self,
        program: Any,
        grid: Callable[[Mapping[str, int]], tuple[int, ...]],
        shapes: tuple[Tile, ...] = TILE_SHAPES,
        **arguments: Any,
    ) -> None:
        x, z = self.left, self.right
        arguments |= self.constants
        arguments |= {"x": x.rows, "z": z.rows, "x_norms": x.norms, "z_norms": z.norms}
        arguments |= dict(zip(("x_row", "x_feature"), x.rows.stride(), strict=True))
        arguments |= dict(zip(("z_row", "z_feature"), z.rows.stride(), strict=True))
        # The number is no compile-time constant, because each block has another one.
        arguments |= {"DIAGONAL": self.diagonal is not None, "diagonal": self.diagonal or 0}
        arguments |= {"D": self.features, "BD": 32 if self.features % 32 == 0 else 16}
        # Triton launches on the current device, which need not be the device of the rows.
        with torch.cuda.device_of(x.rows):
            if self.tuned and len(x.rows) * len(z.rows) >= TUNED_PAIRS:
                tuner = autotune_program(program, shapes, x.rows.device)
                with TUNING_LOCK:
                    tuner[grid](**arguments, enable_fp_fusion=True)
            else:
                tile = shapes[0] if x.rows.is_cuda else INTERPRETED_TILE
                program[grid](**arguments, **options(tile), enable_fp_fusion=True)


def _span(rows: int, columns: int) -> int:
    """Return the number of columns per program, so that there are enough programs."""
    splits = max(WANTED_PROGRAMS * PADDED_ROWS // rows, 1)
    return max(-(-columns // (splits * PADDED_ROWS)) * PADDED_ROWS, SPAN_COLUMNS)
