"""blas_threads: a number of threads of the BLAS, and so of workers, inside a context."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Return a context in which the BLAS has `count` threads."""
    limit: AbstractContextManager[object] = ThreadpoolController().limit(
        limits=count, user_api="blas"
    )
    return limit
