"""Plan: what a fit will need, before anything is computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .. import _linalg as la
from .._checks import readable_bytes
from ..data import as_rows
from ..kernels import Kernel
from ..operators import Engine, KernelOperator
from ..solvers import Solver
from .memory import Size

ASSUMED_ITERATIONS = 20
"""Iterations of an iterative solver that a plan reckons with, as in the FALKON paper."""

LEVELS = 10.0
"""Fits to a whole path of penalties, in units of one at its last level.

3.4 if each penalty is half the last one and the effective dimension, and with it the number of
landmarks, grows with the inverse of its square root; and about six beyond, with all landmarks.
"""

PRODUCTS = 4
"""Small products, in time, of which a step of a block method consists beside its work."""

READ_BYTES = 1 << 24
"""Bytes of a matrix with which the speed of reading is measured."""

CALIBRATION = 1 << 22
"""Numbers in the rows with which the speed of this machine is measured."""

DEVICE_SCALE = 64
"""How many times as many a device needs to have something to do."""


@dataclass(frozen=True)
class Plan:
    """What a fit will need.

    Attributes
    ----------
    solver : str
    landmarks : int or None
        None if all rows are centers.
    memory_bytes : int
        Peak of what the fit allocates, beside the data it is given and the libraries.
    kernel_evaluations : int
        Of `iterations` iterations, setup included.
    seconds : float
        For these on this machine, after a calibration of half a second.
    iterations : int
        What is assumed of an iterative solver; 1 for a closed form.
    device : str
        Where vectors and factors are: that of the engine if they fit there, else "cpu".
    device_bytes : int
        Peak of what the fit allocates on the device of the engine, which `memory_bytes` does not
        count; 0 if it computes on the host, or on several devices.
    """

    solver: str
    landmarks: int | None
    memory_bytes: int
    kernel_evaluations: int
    seconds: float
    iterations: int
    device: str = "cpu"
    device_bytes: int = 0

    def __str__(self) -> str:
        centers = "all rows" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        there = readable_bytes(self.device_bytes)
        memory = readable_bytes(self.memory_bytes)
        memory += f" and {there} of the device" if self.device_bytes else ""
        return (
            f"{self.solver} with {centers}: {memory}, "
            f"{self.kernel_evaluations:.3g} kernel evaluations, about {self.seconds:.3g} s "
            f"for {self.iterations} iterations"
        )


def evaluations(solver: Solver[Any, Any], size: Size, iterations: int) -> int:
    """Return the kernel evaluations of some iterations, setup and path included."""
    return int(solver.evaluations(size, iterations) * (1 + LEVELS * size.fits))


def calibrated_seconds(
    solver: Solver[Any, Any],
    size: Size,
    iterations: int,
    kernel: Kernel,
    engine: Engine,
    dtype: torch.dtype,
    device: str = "cpu",
) -> float:
    """Return the predicted seconds, from the speed of a small product and factorisation.

    The first is measured where the engine computes, the second on the device of the factors.
    """
    rng = torch.Generator().manual_seed(0)
    scale = 1 if engine.on_host else DEVICE_SCALE
    rows = max(min(2048 * scale, CALIBRATION * min(scale, 8) // size.d), 64)
    x = engine.place(torch.randn(rows, size.d, dtype=dtype, generator=rng))
    z = x[: min(size.m, 2000)]
    v = engine.place(torch.randn(len(z), size.t, dtype=dtype, generator=rng))
    # a number that is read waits for the device
    pairs = len(x) * len(z) / _seconds(lambda: float(engine.normal(kernel, x, z, v)[0, 0]))
    k = 600 if device == "cpu" else 4096
    A = torch.eye(k, dtype=torch.float64, device=device) + 1 / k
    flops = k**3 / 3 / _seconds(lambda: la.cholesky_(la.by_columns(A.clone())))
    wide = torch.ones(READ_BYTES // 8000, 1000, dtype=torch.float64, device=device)
    column = wide[0, :, None].clone()
    rate = 8 * wide.numel() / _seconds(lambda: float((wide @ column)[0, 0]))
    few = KernelOperator(kernel, as_rows(x[:64]), as_rows(z[:64]), engine=engine)
    start = _seconds(lambda: float((few @ v[:64])[0, 0]))
    step = solver.bytes_read(size) / rate + PRODUCTS * start
    return (
        (evaluations(solver, size, iterations) + size.selection_evaluations) / pairs
        + (solver.operations(size, iterations) + size.selection_operations) / flops
        + solver.steps(size, iterations) * step
    )


def _seconds(work: Callable[[], object], budget: float = 0.2) -> float:
    work()  # the first call starts threads and loads libraries
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < budget:
        work()
        count += 1
    return (time.perf_counter() - start) / count
