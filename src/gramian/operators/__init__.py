"""Kernel operators: matrices that are never stored.

`KernelOperator` joins a kernel, two row sources and an engine, and behaves like the matrix
K = k(rows, cols). Everything above this package (samplers, preconditioners, solvers) is written
with ``K @ v``, ``K.T @ u``, ``K.normal(v)``, ``K[i]`` and ``K[i, j]`` and mentions no device,
block, tile or file.

The operator cuts the rows into blocks that fit its memory limit and passes them to an `Engine` of
`gramian.engines`, the only code that depends on the hardware. The attribute `KernelOperator.engine`
is chosen once for an operator, from its kernel, rows and dtype. Every product adds n m kernel
evaluations to the meter of its operator, a cost that does not depend on the hardware.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..engines import (
    Engine,
    MultiDeviceEngine,
    NativeEngine,
    TiledEngine,
    choose_engine,
    compiled_tiles,
)
from .budget import STRIP_BYTES, STRIP_COPIES, strip_rows
from .dense import DenseBlock, diagonal, largest_diagonal, materialize
from .factors import factor_bytes
from .kept import triangle_entries
from .kernel_operator import KernelOperator
from .streaming import CostMeter

__all__ = [
    "STRIP_BYTES",
    "STRIP_COPIES",
    "CostMeter",
    "DenseBlock",
    "Engine",
    "KernelOperator",
    "MultiDeviceEngine",
    "NativeEngine",
    "TiledEngine",
    "choose_engine",
    "compiled_tiles",
    "diagonal",
    "factor_bytes",
    "largest_diagonal",
    "materialize",
    "strip_rows",
    "triangle_entries",
]

if find_spec("torch"):
    __all__ += ["TritonEngine"]


def __getattr__(name: str) -> Any:
    """Import `TritonEngine` at its first use, because it needs torch."""
    if name == "TritonEngine":
        from ..engines import TritonEngine

        return TritonEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
