"""Dense factorisations in float64 on a device, in place: the functions of `dense` for a GPU.

torch offers factorisations that copy, and none of products of triangles. These go block by block
through matrix products, at which a device is fast, and need only a few panels of 1,024 rows in
addition to the matrix. They follow the contracts of their namesakes in `dense`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

BLOCK_ROWS = 1024
"""Rows of a block: enough for a fast product, and few compared with the matrix."""


def cholesky_(A: Float[Tensor, "m m"]) -> int:
    """Replace the upper triangle by its factor; return the number of the first bad pivot, or 0."""
    for k in _blocks(len(A)):
        corner = A[k, k].triu()
        R, info = torch.linalg.cholesky_ex(corner + corner.triu(1).t(), upper=True)
        if int(info) != 0:
            return int(k.start) + int(info)
        _set_upper(A[k, k], R)
        right = A[k, k.stop :]
        right.copy_(torch.linalg.solve_triangular(R.t(), right, upper=False))
        for i in _blocks(len(A), k.stop):
            upper = torch.mm(A[k, i].t(), A[k, i.start :])
            size = i.stop - i.start
            A[i, i.stop :] -= upper[:, size:]
            _set_upper(A[i, i], A[i, i] - upper[:, :size])
    return 0


def times_transpose_(R: Float[Tensor, "m m"]) -> None:
    """Replace the upper triangular R by the upper triangle of R R'."""
    for i in _blocks(len(R)):
        corner = R[i, i].triu()
        square = corner @ corner.t() + R[i, i.stop :] @ R[i, i.stop :].t()
        for j in _blocks(len(R), i.stop):
            # Blocks further to the right still belong to R.
            R[i, j] = R[i, j] @ R[j, j].triu().t() + R[i, j.stop :] @ R[j, j.stop :].t()
        _set_upper(R[i, i], square)


def invert_triangle_(R: Float[Tensor, "m m"]) -> None:
    """Replace the upper triangular R in the upper triangle by its inverse."""
    for j in _blocks(len(R)):
        units = torch.eye(j.stop - j.start, dtype=R.dtype, device=R.device)
        corner = torch.linalg.solve_triangular(R[j, j], units, upper=True)
        # Blocks above and to the left are inverted already.
        for i in _blocks(j.start):
            inside = slice(i.stop, j.start)
            R[i, j] = R[i, i].triu() @ R[i, j] + R[i, inside] @ R[inside, j]
        R[: j.start, j] = -(R[: j.start, j] @ corner)
        _set_upper(R[j, j], corner)


def inverse_diagonal(R: Float[Tensor, "m m"]) -> Float[Tensor, " m"]:
    """Return the diagonal of (R'R)⁻¹: sums of squares over the rows of R⁻¹. m³ operations."""
    diagonal = R.new_zeros(len(R))
    for j in _blocks(len(R)):
        units = R.new_zeros(len(R), j.stop - j.start)
        units[j].fill_diagonal_(1.0)
        # All of R, because torch would copy a part of it.
        diagonal += torch.linalg.solve_triangular(R, units, upper=True).square_().sum(dim=1)
    return diagonal


def solve_triangular(
    R: Float[Tensor, "m m"], b: Float[Tensor, "m t"], lower: bool, transpose: bool, unit: bool
) -> Float[Tensor, "m t"]:
    """Return the solution of R x = b, or of R' x = b, with one triangle of R."""
    T, upper = (R.t(), lower) if transpose else (R, not lower)
    x: Tensor = torch.linalg.solve_triangular(T, b, upper=upper, unitriangular=unit)
    return x


def times_triangular(
    R: Float[Tensor, "m m"], b: Float[Tensor, "m t"], lower: bool, transpose: bool, unit: bool
) -> Float[Tensor, "m t"]:
    """Return R b, or R' b, with one triangle of R."""
    T, upper = (R.t(), lower) if transpose else (R, not lower)
    out = torch.empty_like(b)
    for i in _blocks(len(T)):
        corner = T[i, i].triu() if upper else T[i, i].tril()
        if unit:
            corner.fill_diagonal_(1.0)
        columns = slice(i.stop, None) if upper else slice(0, i.start)
        out[i] = corner @ b[i] + T[i, columns] @ b[columns]
    return out


def top_eigenpairs(A: Float[Tensor, "m m"], k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues and their vectors, the largest first."""
    values, vectors = torch.linalg.eigh(A, UPLO="U")
    return values[-k:].flip(0), vectors[:, -k:].flip(1)


def _blocks(m: int, start: int = 0) -> Iterator[slice]:
    return (slice(i, min(i + BLOCK_ROWS, m)) for i in range(start, m, BLOCK_ROWS))


def _set_upper(corner: Tensor, values: Tensor) -> None:
    """Write the upper triangle of a block; entries below its diagonal stay."""
    corner.copy_(values.triu() + corner.tril(-1))
