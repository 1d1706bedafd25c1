"""Rows prepared for the fused tiles: centered, in lengthscales, padded to whole tiles."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels._lengthscale import LengthscaleKernel
from .distances import Distance

PADDED_ROWS = 128
"""Rows are padded to whole multiples: the longest side of a tile."""

PREPARED_NUMBERS = 1 << 22
"""Coordinates centered at once, in float64."""


@dataclass(frozen=True)
class Points:
    """Rows in lengthscales from the common origin, rounded once, padded with zeros.

    - `rows`, (n', d'): stored row by row for products, feature by feature for differences.
    - `norms`, (n',): squared norms times the scale of the kernel.
    - `n`: number of rows before padding.
    """

    rows: Tensor
    norms: Tensor
    n: int

    @classmethod
    def prepare(cls, points: Tensor, scale: float, distance: Distance) -> Points:
        """Arrange centered and scaled points, (n, d), for a way to compute distances."""
        n, d = points.shape
        if distance in ("difference", "absolute"):
            # Differences read one feature of many rows at a time, so each feature is contiguous.
            rows = points.new_zeros(d, -(-n // PADDED_ROWS) * PADDED_ROWS).t()
        else:
            rows = points.new_zeros(-(-n // PADDED_ROWS) * PADDED_ROWS, padded_features(d))
        rows[:n, :d] = points
        # The norms are of the rounded rows: s of a row with itself is then near zero, as it should
        # be.
        norms = points.new_zeros(len(rows))
        # They are computed in float64 and rounded once, because s is a small difference of large
        # norms.
        norms[:n] = scale * norm(points, 2).square_()
        return cls(rows, norms, n)

    def part(self, start: int, size: int) -> Points:
        """Return up to `size` rows from `start` on; both are multiples of `PADDED_ROWS`."""
        part_rows = slice(start, start + size)
        return Points(self.rows[part_rows], self.norms[part_rows], min(self.n - start, size))


def padded_features(d: int) -> int:
    """Return d rounded up to a multiple of 16, or of 32 where that adds little."""
    wide = -(-d // 32) * 32
    return wide if wide * 7 <= d * 8 else -(-d // 16) * 16


def in_lengthscales(kernel: LengthscaleKernel, points: Tensor, origin: Tensor) -> Tensor:
    """Return (points - origin) / lengthscale, computed in float64, rounded to float32."""
    out = torch.empty_like(points, dtype=torch.float32)
    step = max(PREPARED_NUMBERS // points.shape[1], 1)
    for i in range(0, len(points), step):
        out[i : i + step] = kernel.scaled(points[i : i + step].double() - origin)
    return out


def norm(points: Tensor, p: int) -> Tensor:
    """Return the p-norm of each row, in float64."""
    norms: Tensor = torch.linalg.vector_norm(points, p, dim=1, dtype=torch.float64)
    return norms
