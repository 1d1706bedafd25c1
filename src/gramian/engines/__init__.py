"""Engines compute with points in memory; they are the only code that depends on the hardware.

Three methods are enough: `Engine.matvec` (K v), `Engine.normal` (K' W (K v - y), each entry of K
evaluated once) and `Engine.block` (K itself). An engine divides a block of rows into tiles that fit
the cache.

`NativeEngine` has compiled tiles for this CPU, if a C++ compiler was available to build them;
`TiledEngine` is the reference, and runs everywhere: on the host by NumPy, on a device by torch;
`TritonEngine` has fused tiles for NVIDIA GPUs, and imports torch. `MultiDeviceEngine` divides rows
among several of them, as on a machine with several GPUs.
Engines do not import each other: shared code is below them, and `choose_engine`, which imports all,
above.

Entries are computed in the dtype of the rows. Sums run in float64, and so do distances that would
lose digits in float32.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ._compiled.kernels import instructions as compiled_tiles
from .base import LARGEST_BLOCK, Engine
from .choose import choose_covering, choose_engine, choose_within_memory
from .multi_device_engine import MultiDeviceEngine
from .native_engine import NativeEngine
from .tiled_engine import TiledEngine, tiled_on

__all__ = [
    "LARGEST_BLOCK",
    "Engine",
    "MultiDeviceEngine",
    "NativeEngine",
    "TiledEngine",
    "choose_covering",
    "choose_engine",
    "choose_within_memory",
    "compiled_tiles",
    "tiled_on",
]

if find_spec("torch"):
    __all__ += ["TritonEngine"]


def __getattr__(name: str) -> Any:
    """Import `TritonEngine` at its first use, because it needs torch."""
    if name == "TritonEngine":
        from .triton_engine import TritonEngine

        return TritonEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
