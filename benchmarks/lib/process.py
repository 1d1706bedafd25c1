"""Processes: the memory of this one, and a fresh one for work whose memory is measured."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that say how many threads libraries start."""


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``work(*arguments)``, computed by a process started for it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, *arguments).result()


def in_child(work: Callable[[], Any], kill_after: float | Callable[[], None] | None = None) -> Any:
    """Run `work` in a forked child; return its result, an exception as its text, None if killed.

    The child is killed after a number of seconds, or once a function returns.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            outcome = work()
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        with open(writer, "wb") as pipe:
            pickle.dump(outcome, pipe)
        os._exit(0)
    os.close(writer)
    if kill_after is not None:
        if callable(kill_after):
            kill_after()
        else:
            time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    with open(reader, "rb") as pipe:
        content = pipe.read()
    os.waitpid(pid, 0)
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        return pickle.loads(content)
    return None


def resident_bytes() -> int:
    """Return the resident set of this process."""
    return _status_bytes("RSS")


def anonymous_bytes() -> int:
    """Return the part of the resident set that is not of files."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def peak_bytes() -> int:
    """Return the largest resident set since the process, or `reset_peak`, started."""
    return _status_bytes("HWM")


def reset_peak() -> None:
    """Let the peak start again from the resident set of now."""
    Path("/proc/self/clear_refs").write_text("5")


def bytes_before_work() -> int:
    """Return the resident set after a garbage collection, and reset the peak."""
    gc.collect()
    reset_peak()
    return resident_bytes()


def trim_heap() -> None:
    """Return freed memory to the system, where the C library can; a fit would reuse it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_bytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"Vm{field}:")[1].split()[0]) * 1024
