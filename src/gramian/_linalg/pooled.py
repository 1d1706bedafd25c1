"""Products, factors and solutions of triangles by the pool of workers, block by block, in place.

The functions follow the contracts of their namesakes in `dense`, for host matrices by columns. The
threads of a BLAS wait for each other at barriers after every operation, and waiting takes the time
of other programs; workers take the next block instead. Blocks do not depend on the number of
workers, and so neither does any bit of a result.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from .._arrays import Array, Float
from .._parallel.workers import default_threads, one_blas_thread, run

Result = TypeVar("Result")

BLOCK_ROWS = 256
"""Rows or columns of a block; half as many if a matrix has fewer than four such blocks.

Products of smaller blocks take longer, and larger blocks leave workers without one.
"""

LEAST_OPERATIONS = 2e8
"""Least operations for blocks: about four milliseconds on one thread.

On two threads, factors of 600 rows took as long as on one, of 1,000 rows 0.6 of the time (an EPYC).
"""


def pays(operations: int | float, rows: int) -> bool:
    """Return whether workers end sooner than a call of LAPACK on one thread."""
    return operations >= LEAST_OPERATIONS and rows > BLOCK_ROWS


def _with_one_blas_thread(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that keeps the BLAS on one thread between the blocks, too."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Result:
        # Some blocks are the work of the calling thread, for which the others would wait at the
        # barriers of the BLAS. Setting its number of threads once is also faster.
        with one_blas_thread:
            return function(*arguments)

    return call


@_with_one_blas_thread
def add_outer_(P: Float[Array, "q q"], S: Float[Array, "q s"], times: float) -> None:
    """Add a multiple of S S' to the upper triangle of P; S is copied if it is strided."""
    is_by_rows = S.strides[1] == S.itemsize
    columns = S.T if is_by_rows else np.asfortranarray(S)
    first_op, second_op = ("T", "N") if is_by_rows else ("N", "T")

    def add_column(j: slice) -> None:
        rows = slice(0, j.start)
        own, above = (
            (columns[:, j], columns[:, rows]) if first_op == "T" else (columns[j], columns[rows])
        )
        _multiply_(P[rows, j], above, own, times, first_op, second_op)
        _add_square_(P[j, j], own, times, first_op)

    # The longest columns come first, so that no worker is left with one at the end.
    _share(add_column, reversed(_blocks(len(P))))


@_with_one_blas_thread
def cholesky_(A: Float[Array, "m m"]) -> int:
    """Replace the upper triangle by its factor; return the number of the first bad pivot, or 0."""
    blocks = _blocks(len(A))
    for number, k in enumerate(blocks):
        # Its blocks above are subtracted already, by the worker that was first to finish them.
        if info := _factorise_(A[k, k]):
            return int(k.start) + info
        above = slice(0, k.start)

        def fill(j: slice, k: slice = k, above: slice = above) -> None:
            _multiply_(A[k, j], A[above, k], A[above, j], -1.0, "T", "N")
            _solve_("L", "T", A[k, k], A[k, j])
            if j.start == k.stop:
                _add_square_(A[j, j], A[: k.stop, j], -1.0, "T")

        _share(fill, blocks[number + 1 :])
    return 0


@_with_one_blas_thread
def times_transpose_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangular R by the upper triangle of R R'."""
    blocks = _blocks(len(R))
    for number, j in enumerate(blocks):
        corner, right = np.triu(R[j, j]).copy(order="F"), slice(j.stop, len(R))

        def fill(i: slice, j: slice = j, corner: Array = corner, right: slice = right) -> None:
            if i == j:
                _add_square_(R[j, j], corner, 1.0, "N", onto=0.0)
                _add_square_(R[j, j], R[j, right], 1.0, "N")
                return
            _scale_("R", "T", corner, R[i, j])
            _multiply_(R[i, j], R[i, right], R[j, right], 1.0, "N", "T")

        _share(fill, blocks[: number + 1])


@_with_one_blas_thread
def invert_triangle_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangle of R by its inverse."""
    blocks = _blocks(len(R))
    for number, j in enumerate(blocks):
        # Rows of the product replace rows of its factor, which other workers still read.
        factor = R[: j.start, j].copy(order="F")

        def fill(i: slice, j: slice = j, factor: Array = factor) -> None:
            inside = slice(i.stop, j.start)
            _scale_("L", "N", R[i, i], R[i, j])
            _multiply_(R[i, j], R[i, inside], factor[inside], 1.0, "N", "N")
            _solve_("R", "N", R[j, j], R[i, j], times=-1.0)

        _share(fill, blocks[:number])
        _invert_(R[j, j])


def times_triangle_(K: Float[Array, "b m"], R: Float[Array, "m m"]) -> None:
    """Replace K, by rows, by K R, with R in the upper triangle."""
    _share(lambda i: _scale_("L", "T", R, K[i].T), _blocks(len(K)))


def solve_triangular_(
    R: Float[Array, "m m"], x: Float[Array, "m t"], lower: bool, transpose: bool, unit: bool
) -> None:
    """Replace x, by columns, by the solution of R y = x, or of R' y = x."""
    trans, triangle = "T" if transpose else "N", "L" if lower else "U"
    diagonal = "U" if unit else "N"
    _share(
        lambda j: _solve_("L", trans, R, x[:, j], triangle=triangle, diagonal=diagonal),
        _blocks(x.shape[1]),
    )


def _share(work: Callable[[slice], None], blocks: Iterable[slice]) -> None:
    """Call a function for each block, by all workers; an error of one is raised."""
    threads = default_threads()
    for _ in run(threads, work, blocks, light=threads == 1):
        pass


def _blocks(m: int) -> list[slice]:
    size = BLOCK_ROWS if m >= 4 * BLOCK_ROWS else -(-BLOCK_ROWS // 2)
    return [slice(i, min(i + size, m)) for i in range(0, m, size)]


def _multiply_(C: Array, A: Array, B: Array, times: float, left: str, right: str) -> None:
    """Add a multiple of A B to C, each transposed ("T") or not ("N")."""
    inner = A.shape[0] if left == "T" else A.shape[1]
    if C.size and inner:
        m, n = C.shape
        _call("gemm", left, right, m, n, inner, times, A, _ld(A), B, _ld(B), 1.0, C, _ld(C))


def _add_square_(C: Array, A: Array, times: float, left: str, onto: float = 1.0) -> None:
    """Replace the upper triangle of C by `onto` C plus a multiple of A A', or of A' A ("T")."""
    inner = A.shape[0] if left == "T" else A.shape[1]
    if inner:
        _call("syrk", "U", left, len(C), inner, times, A, _ld(A), onto, C, _ld(C))


def _solve_(
    side: str,
    trans: str,
    R: Array,
    B: Array,
    times: float = 1.0,
    triangle: str = "U",
    diagonal: str = "N",
) -> None:
    """Replace B by a multiple of R⁻¹ B, or of B R⁻¹ (side "R")."""
    m, n = B.shape
    _call("trsm", side, triangle, trans, diagonal, m, n, times, R, _ld(R), B, _ld(B))


def _scale_(side: str, trans: str, R: Array, B: Array) -> None:
    """Replace B by R B, or by B R (side "R")."""
    m, n = B.shape
    _call("trmm", side, "U", trans, "N", m, n, 1.0, R, _ld(R), B, _ld(B))


def _factorise_(A: Array) -> int:
    info = ctypes.c_int()
    _call("potrf", "U", len(A), A, _ld(A), info)
    return info.value


def _invert_(R: Array) -> None:
    _call("trtri", "U", "N", len(R), R, _ld(R), ctypes.c_int())


def _ld(A: Array) -> int:
    """Return the distance of two columns in memory, in numbers; raise TypeError for rows."""
    if len(A) > 1 and A.strides[0] != A.itemsize:
        raise TypeError(f"a matrix must be by columns, not with strides {A.strides}")
    return max(A.strides[1] // A.itemsize, A.shape[0], 1)


@functools.cache
def _routine(name: str) -> Any:
    """Return a routine of SciPy's BLAS or LAPACK, called without the interpreter lock."""
    # SciPy's own functions keep the lock, so that workers would take turns. Its interface for
    # Cython has the same routines as capsules with their addresses.
    module = "cython_lapack" if name[1:] in ("potrf", "trtri") else "cython_blas"
    capsule = ctypes.py_object(import_module(f"scipy.linalg.{module}").__pyx_capi__[name])
    signature, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    signature.restype, pointer.restype = ctypes.c_char_p, ctypes.c_void_p
    address = pointer(capsule, ctypes.c_char_p(signature(capsule)))
    return ctypes.CFUNCTYPE(None)(address)


def _call(name: str, *arguments: str | int | float | Array | ctypes.c_int) -> None:
    """Call a routine for the type of its matrices; it takes the addresses of all arguments."""
    dtypes = {x.dtype for x in arguments if isinstance(x, np.ndarray)}
    is_narrow = dtypes == {np.dtype(np.float32)}
    if not is_narrow and dtypes != {np.dtype(np.float64)}:
        raise TypeError(f"matrices must all be float64 or all float32, not {dtypes}")
    real = ctypes.c_float if is_narrow else ctypes.c_double
    _routine(("s" if is_narrow else "d") + name)(*(_address(x, real) for x in arguments))


def _address(argument: Any, real: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, str):
        return ctypes.c_char_p(argument.encode())
    if isinstance(argument, float):
        return ctypes.byref(real(argument))
    return ctypes.byref(argument if isinstance(argument, ctypes.c_int) else ctypes.c_int(argument))
