"""Dense factorisations in float64 on a device, in place: the functions of `dense` for a GPU.

torch offers factorisations that copy, and none of products of triangles. The functions go block by
block through matrix products, at which a device is fast, and need only a few panels of 1,024 rows
in addition to the matrix. They follow the contracts of their namesakes in `dense`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import _arrays as xp
from .._arrays import Array, Float

BLOCK_ROWS = 1024
"""Rows of a block: enough for a fast product, and few compared with the matrix."""


def cholesky_(A: Float[Array, "m m"]) -> int:
    """Replace the upper triangle by its factor; return the number of the first bad pivot, or 0."""
    for k in _blocks(len(A)):
        corner = xp.triu(A[k, k])
        R, info = xp.cholesky_ex(corner + xp.triu(corner, 1).T)
        if info != 0:
            return int(k.start) + info
        _set_upper(A[k, k], R)
        right = A[k, k.stop :]
        right[...] = xp.solve_triangular(R.T, right, upper=False)
        for i in _blocks(len(A), k.stop):
            upper = A[k, i].T @ A[k, i.start :]
            size = i.stop - i.start
            A[i, i.stop :] -= upper[:, size:]
            _set_upper(A[i, i], A[i, i] - upper[:, :size])
    return 0


def times_transpose_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangular R by the upper triangle of R R'."""
    for i in _blocks(len(R)):
        corner = xp.triu(R[i, i])
        square = corner @ corner.T + R[i, i.stop :] @ R[i, i.stop :].T
        for j in _blocks(len(R), i.stop):
            # Blocks further to the right still belong to R.
            R[i, j] = R[i, j] @ xp.triu(R[j, j]).T + R[i, j.stop :] @ R[j, j.stop :].T
        _set_upper(R[i, i], square)


def invert_triangle_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangular R in the upper triangle by its inverse."""
    for j in _blocks(len(R)):
        units = xp.eye(j.stop - j.start, like=R)
        corner = xp.solve_triangular(R[j, j], units, upper=True)
        # Blocks above and to the left are inverted already.
        for i in _blocks(j.start):
            inside = slice(i.stop, j.start)
            R[i, j] = xp.triu(R[i, i]) @ R[i, j] + R[i, inside] @ R[inside, j]
        R[: j.start, j] = -(R[: j.start, j] @ corner)
        _set_upper(R[j, j], corner)


def inverse_diagonal(R: Float[Array, "m m"]) -> Float[Array, " m"]:
    """Return the diagonal of (R'R)⁻¹: sums of squares over the rows of R⁻¹. m³ operations."""
    diagonal = xp.zeros(len(R), like=R)
    for j in _blocks(len(R)):
        units = xp.zeros((len(R), j.stop - j.start), like=R)
        xp.diagonal(units[j])[...] = 1.0
        # All of R, because torch would copy a part of it.
        diagonal += (xp.solve_triangular(R, units, upper=True) ** 2).sum(axis=1)
    return diagonal


def solve_triangular(
    R: Float[Array, "m m"], b: Float[Array, "m t"], lower: bool, transpose: bool, unit: bool
) -> Float[Array, "m t"]:
    """Return the solution of R x = b, or of R' x = b, with one triangle of R."""
    T, upper = (R.T, lower) if transpose else (R, not lower)
    x: Array = xp.solve_triangular(T, b, upper=upper, unitriangular=unit)
    return x


def times_triangular(
    R: Float[Array, "m m"], b: Float[Array, "m t"], lower: bool, transpose: bool, unit: bool
) -> Float[Array, "m t"]:
    """Return R b, or R' b, with one triangle of R."""
    T, upper = (R.T, lower) if transpose else (R, not lower)
    out = xp.empty_like(b)
    for i in _blocks(len(T)):
        corner = xp.triu(T[i, i]) if upper else xp.tril(T[i, i])
        if unit:
            xp.diagonal(corner)[...] = 1.0
        columns = slice(i.stop, None) if upper else slice(0, i.start)
        out[i] = corner @ b[i] + T[i, columns] @ b[columns]
    return out


def top_eigenpairs(A: Float[Array, "m m"], k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues and their vectors, the largest first."""
    values, vectors = xp.eigh(A, UPLO="U")
    return xp.flip(values[-k:], 0), xp.flip(vectors[:, -k:], 1)


def _blocks(m: int, start: int = 0) -> Iterator[slice]:
    return (slice(i, min(i + BLOCK_ROWS, m)) for i in range(start, m, BLOCK_ROWS))


def _set_upper(corner: Array, values: Array) -> None:
    """Write the upper triangle of a block; entries below its diagonal stay."""
    corner[...] = xp.triu(values) + xp.tril(corner, -1)
