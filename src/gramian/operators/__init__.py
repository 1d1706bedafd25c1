"""Kernel operators: matrices that are never stored.

`KernelOperator` joins a kernel, two row sources and an engine, and behaves like the matrix
K = k(rows, cols). Everything above this package (samplers, preconditioners, solvers) is written
with ``K @ v``, ``K.T @ u``, ``K.normal(v)``, ``K[i]`` and ``K[i, j]`` and mentions no device,
block, tile or file.

An `Engine` computes with points that are in memory and is the only code that knows the hardware.
The operator cuts the rows into blocks that fit its byte budget and hands them over; the engine
cuts a block into tiles that fit the cache. Three verbs are enough: `Engine.matvec` (K v),
`Engine.normal` (K' W (K v - y), each entry of K evaluated once) and `Engine.block` (K itself).

`TritonEngine` has fused tiles for NVIDIA GPUs; `NativeEngine` has compiled tiles for this CPU,
where a C++ compiler was there to build them; `TorchEngine` is the reference, runs everywhere and
knows GPUs. `SplitEngine` divides rows among several of them, as on a machine with several GPUs.

Entries are computed in the dtype of the rows. Sums run in float64, and where float32 distances
would lose digits the engine computes those in float64 too. Every product adds n m to the meter of
its operator: the number of kernel evaluations, which is a cost that no hardware changes.
"""

from __future__ import annotations

from ._compiled import instructions as compiled_tiles
from .budget import COPIES, STRIP_BYTES, strip_rows
from .device_rows import copied
from .diagonal import diagonal, largest_diagonal
from .engine import Engine, choose_engine
from .kept import KeptBlock, kept
from .kernel_operator import KernelOperator
from .native_engine import NativeEngine
from .split_engine import SplitEngine
from .streaming import CostMeter
from .torch_engine import TorchEngine
from .triton_engine import TritonEngine

__all__ = [
    "COPIES",
    "STRIP_BYTES",
    "CostMeter",
    "Engine",
    "KeptBlock",
    "KernelOperator",
    "NativeEngine",
    "SplitEngine",
    "TorchEngine",
    "TritonEngine",
    "choose_engine",
    "compiled_tiles",
    "copied",
    "diagonal",
    "kept",
    "largest_diagonal",
    "strip_rows",
]
