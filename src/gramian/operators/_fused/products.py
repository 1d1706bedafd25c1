"""Rows made ready for the fused tiles, and the products that start them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from ...kernels import Radial
from ...kernels._scaled import ScaledKernel
from ..triton_engine import SPLIT_ROWS
from . import tiles
from .distances import Distance, choose
from .profiles import PROFILES

ROWS = 128
"""Rows are padded to whole multiples: the longest side of a tile."""

TARGETS = 64
"""Columns of v that are multiplied at once; for more, entries are computed again."""

SPAN = 4096
"""Columns that one program adds up at least."""

PROGRAMS = SPLIT_ROWS // ROWS
"""Programs wanted: where rows make fewer, columns are split too. Some for each of 132 cores."""

PREPARED_NUMBERS = 1 << 22
"""Coordinates centred at once, in float64."""


class Tile(NamedTuple):
    """Rows and columns of a tile, warps that compute it, tiles of rows loaded ahead."""

    rows: int
    columns: int
    warps: int
    stages: int


TILES = (
    Tile(128, 64, 8, 2),
    Tile(128, 64, 4, 3),
    Tile(64, 64, 4, 3),
    Tile(64, 128, 4, 2),
    Tile(128, 128, 8, 3),
)
"""The shapes among which tuning chooses; the first is used without."""

INTERPRETED = Tile(128, 128, 8, 2)
"""The shape that the interpreter walks through in the fewest steps."""


@dataclass(frozen=True)
class Points:
    """Rows in lengthscales from the common origin, rounded once, padded with zeros.

    Attributes
    ----------
    rows : Tensor of shape (n', d')
        Row by row for products, feature by feature for differences.
    norms : Tensor of shape (n',)
        Squared norms times the scale of the kernel.
    n : int
        Rows before padding.
    """

    rows: Tensor
    norms: Tensor
    n: int

    @classmethod
    def ready(cls, points: Tensor, scale: float, distance: Distance) -> Points:
        """Lay out centred and scaled points, (n, d), for a way to compute distances."""
        n, d = points.shape
        if distance in ("difference", "absolute"):
            rows = points.new_zeros(d, -(-n // ROWS) * ROWS).t()
        else:
            rows = points.new_zeros(-(-n // ROWS) * ROWS, padded_features(d))
        rows[:n, :d] = points
        norms = points.new_zeros(len(rows))
        norms[:n] = scale * _norm(points, 2).square_()
        return cls(rows, norms, n)


def padded_features(d: int) -> int:
    """Return d rounded up to a multiple of 16, or of 32 where that adds little."""
    wide = -(-d // 32) * 32
    return wide if wide * 7 <= d * 8 else -(-d // 16) * 16


@dataclass(frozen=True)
class Fused:
    """A kernel matrix whose tiles are computed and used at once: k(left, right)."""

    left: Points
    right: Points
    constants: Mapping[str, Any]
    precision: str
    diagonal: int | None
    tuned: bool

    @classmethod
    def build(
        cls,
        kernel: ScaledKernel,
        x: Tensor,
        z: Tensor,
        diagonal: int | None,
        precision: str,
        tuned: bool,
    ) -> Fused | None:
        """Centre, scale and lay out the rows; None if float32 would lose digits however it is done.

        Raises
        ------
        ValueError
            If the kernel has no lengthscale yet, or one for another number of features.
        """
        origin = z.mean(dim=0, dtype=torch.float64)
        columns = _in_lengthscales(kernel, z, origin)
        reach = _norm(columns, 2).square_() if isinstance(kernel, Radial) else _norm(columns, 1)
        fourth = _norm(columns, 4).square_()
        far, fourth = torch.stack([reach.max(), fourth.max()]).tolist()  # one wait for the device
        distance = choose(kernel, far, fourth, z.shape[1], precision)
        if distance is None:
            return None
        scale = kernel.scale if isinstance(kernel, Radial) else 1.0
        right = Points.ready(columns, scale, distance)
        left = right
        if x is not z:
            del columns
            left = Points.ready(_in_lengthscales(kernel, x, origin), scale, distance)
        constants = {
            "scale": scale,
            "shape": _shape(kernel),
            "PROFILE": PROFILES[type(kernel)],
            "DISTANCE": distance,
        }
        return cls(left, right, constants, precision, diagonal, tuned)

    @property
    def T(self) -> Fused:
        """The transpose."""
        diagonal = None if self.diagonal is None else -self.diagonal
        return replace(self, left=self.right, right=self.left, diagonal=diagonal)

    def __matmul__(self, v: Tensor) -> Tensor:
        """Return the product with v, (m, t), in float64."""
        if v.shape[0] != self.right.n:
            raise ValueError(f"v has {v.shape[0]} rows, but there are {self.right.n} columns")
        out = v.new_empty(self.left.n, v.shape[1], dtype=torch.float64)
        for start in range(0, v.shape[1], TARGETS):
            some = slice(start, start + TARGETS)
            out[:, some] = self._product(v[:, some])
        return out

    def _product(self, v: Tensor) -> Tensor:
        t, rows, columns = v.shape[1], len(self.left.rows), len(self.right.rows)
        width = 1 if t == 1 else max(triton.next_power_of_2(t), 16)
        packed = self.right.rows.new_zeros(width, columns)
        packed[:t, : len(v)] = v.t()
        span = _span(rows, columns)
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
        return parts.sum(dim=0)[: self.left.n, :t]

    def dense(self) -> Tensor:
        """Return the matrix in float32."""
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
        self, program: Any, grid: Callable[[Mapping[str, int]], tuple[int, ...]], **arguments: Any
    ) -> None:
        x, z = self.left, self.right
        features = x.rows.shape[1]
        arguments |= self.constants
        arguments |= {"x": x.rows, "z": z.rows, "x_norms": x.norms, "z_norms": z.norms}
        arguments |= dict(zip(("x_row", "x_feature"), x.rows.stride(), strict=True))
        arguments |= dict(zip(("z_row", "z_feature"), z.rows.stride(), strict=True))
        arguments |= {"DIAGONAL": self.diagonal is not None, "diagonal": self.diagonal or 0}
        arguments |= {"D": features, "BD": 32 if features % 32 == 0 else 16}
        with torch.cuda.device_of(x.rows):
            if self.tuned:
                _tuned(program)[grid](**arguments, enable_fp_fusion=True)
            else:
                tile = TILES[0] if x.rows.is_cuda else INTERPRETED
                program[grid](**arguments, **_options(tile), enable_fp_fusion=True)


def _options(tile: Tile) -> dict[str, int]:
    return {
        "BM": tile.rows,
        "BN": tile.columns,
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }


@functools.cache
def _tuned(program: Any) -> Any:
    """Return a program that tries the tiles in its first call with such shapes, and keeps one."""
    configs = [
        triton.Config({"BM": tile.rows, "BN": tile.columns}, tile.warps, tile.stages)
        for tile in TILES
    ]
    return triton.autotune(configs, key=["D", "T", "PROFILE", "DISTANCE"])(program)


def _span(rows: int, columns: int) -> int:
    """Return how many columns one program adds up, so that there are enough programs."""
    splits = max(PROGRAMS * ROWS // rows, 1)
    return max(-(-columns // (splits * ROWS)) * ROWS, SPAN)


def _in_lengthscales(kernel: ScaledKernel, points: Tensor, origin: Tensor) -> Tensor:
    out = torch.empty_like(points, dtype=torch.float32)
    step = max(PREPARED_NUMBERS // points.shape[1], 1)
    for i in range(0, len(points), step):
        out[i : i + step] = kernel.scaled(points[i : i + step].double() - origin)
    return out


def _norm(points: Tensor, p: int) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(points, p, dim=1, dtype=torch.float64)
    return norms


def _shape(kernel: ScaledKernel) -> float:
    """Return what a kernel has beside the lengthscale, 0 if none."""
    values = [float(getattr(kernel, f.name)) for f in fields(kernel) if f.name != "lengthscale"]
    return values[0] if values else 0.0
