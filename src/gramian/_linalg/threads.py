"""Number of threads of LAPACK: one for small matrices, all for large matrices."""

from __future__ import annotations

import contextlib

from .._parallel.blas import one_blas_thread

SINGLE_THREAD_OPERATIONS = 2e10
"""Operations up to which LAPACK runs on one thread: about a third of a second.

LAPACK's threads meet at barriers, even for a 20 x 3 solve. On a busy machine each barrier waits for
the scheduler, and waiting uses CPU time: with two threads on two cores and a load of six,
factorising 300 x 300 took 0.9 s, with one thread 15 ms; FALKON's factors of 2,000 landmarks took
between 0.7 and 11 seconds of CPU time, with one thread 0.3.
"""


def one_thread_if_small(operations: int | float) -> contextlib.AbstractContextManager[None]:
    """Return a context in which LAPACK uses one thread if there are few operations."""
    if operations > SINGLE_THREAD_OPERATIONS:
        return contextlib.nullcontext()
    return one_blas_thread
