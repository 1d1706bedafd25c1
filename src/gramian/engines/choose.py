"""Choice of an engine by its name, or by the kernels that it supports."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from .. import _arrays as xp
from .._messages.checks import did_you_mean
from .._messages.errors import UNKNOWN_FORM, ParameterError, Text
from ..kernels import Kernel
from ._compiled.kernels import instructions
from ._devices import check_device, has_driver, import_torch
from .base import Engine
from .multi_device_engine import MultiDeviceEngine
from .native_engine import NativeEngine
from .tiled_engine import TiledEngine, tiled_on

DEVICE_PATTERN = r"cpu|cuda(:\d{1,2}(,\d{1,2})*)?"
"""Device suffixes accepted in names of engines: cpu, cuda, cuda:0, cuda:0,1."""

ENGINE_NAMES = ("auto", "native", "native:fast", "numpy", "torch:cuda", "triton")
"""Names of engines, to suggest the one nearest to an unknown name."""

FOREIGN_ENGINES = {
    "cpu": "native or numpy",
    "cuda": "torch:cuda or triton",
    "gpu": "torch:cuda or triton",
    "pytorch": "torch:cuda",
}
"""Names that others have for some of them."""


def choose_engine(
    spec: str | Engine = "auto",
    *,
    dtype: xp.DType,
    kernel: Kernel | None = None,
    sparse: bool = False,
) -> Engine:
    """Return the engine called `spec`.

    Parameters
    ----------
    spec : str or Engine, default="auto"
        ``"native"``: compiled tiles on the CPU. ``"native:fast"``: the same with entries right to
        1e-4 instead of 1e-5, on a CPU with AMX, see `NativeEngine`. ``"numpy"``: tiles of NumPy on
        the CPU; ``"torch"`` and ``"torch:cpu"`` are earlier names of it. ``"torch:cuda"``,
        ``"torch:cuda:1"``: torch on that device, extra gramian[gpu]. ``"triton"``,
        ``"triton:cuda:1"``: fused tiles on a GPU. ``"torch:cuda:0,1"``, ``"triton:cuda:0,1"``: rows
        divided among these devices, see `MultiDeviceEngine`. ``"auto"``: triton if it is installed
        and there is an NVIDIA GPU with tensor cores for float32; otherwise native if it is
        installed and this machine has AVX2 or AVX-512; otherwise numpy: the portable tiles are
        slower. It uses a single GPU, torch's current one: other GPUs may be in
        use by others, and rows would have to be sent to each. Engines without tiles for the kernel
        and rows are skipped; on a GPU, torch on this GPU replaces them. On the CPU, numpy computes
        bilinear kernels, by two factors. An engine is returned unchanged.
    dtype : dtype
        The dtype of the rows, float32 or float64.
    kernel : Kernel, optional
        Kernel to compute. If None, tiles are not checked.
    sparse : bool, default=False
        Whether rows are sparse.

    Raises
    ------
    ValueError
        If there is no such engine, it cannot run on this machine, or has no tiles for this kernel,
        for sparse rows or for this dtype. A requested engine is never replaced by another one.
    """
    if dtype not in (xp.float32, xp.float64):
        raise ValueError(f"engines compute in float32 or float64, not in {dtype}")
    if spec == "auto":
        return _best(kernel, dtype, sparse)
    engine = spec if isinstance(spec, Engine) else _engine_called(str(spec))
    engine.check()
    if kernel is not None:
        name = repr(spec) if isinstance(spec, str) else None
        engine.require(kernel, dtype=dtype, sparse=sparse, name=name)
    return engine


def choose_covering(engine: Engine, kernel: Kernel, *, dtype: xp.DType, sparse: bool) -> Engine:
    """Return an engine if it supports the kernel, else the tiled engine on the same devices.

    Used for operators that are derived from another operator, such as the same operator in float64.
    """
    if engine.covers(kernel, dtype=dtype, sparse=sparse):
        return engine
    if isinstance(engine, MultiDeviceEngine):
        covered = (
            choose_covering(member, kernel, dtype=dtype, sparse=sparse) for member in engine.engines
        )
        return MultiDeviceEngine(tuple(covered))
    if isinstance(engine, NativeEngine):
        return TiledEngine(threads=engine.threads)
    return tiled_on(engine.device)


def choose_within_memory(
    engine: Engine, kernel: Kernel, memory_bytes: int, *, dtype: xp.DType, sparse: bool
) -> tuple[Engine, int]:
    """Return the engine of `choose_covering`, and the bytes that it may use.

    The limit of an engine also applies to its replacement: a tiled engine on the device does not
    know ``memory_bytes`` of the `TritonEngine`.
    """
    # The new engine knows the device's memory but not the limit set on the old one.
    covered_engine = choose_covering(engine, kernel, dtype=dtype, sparse=sparse)
    if covered_engine is engine:
        return engine, memory_bytes
    return covered_engine, min(memory_bytes, engine.device_bytes() or memory_bytes)


def has_fused_tiles() -> bool:
    """Return whether fused tiles can run on a GPU of this machine."""
    # torch takes seconds to import, so the driver is looked for first.
    if not has_driver() or find_spec("torch") is None:
        return False
    return bool(_triton_engine().is_usable())


def _best(kernel: Kernel | None, dtype: xp.DType, sparse: bool) -> Engine:
    def covers(engine: Engine) -> bool:
        return kernel is None or engine.covers(kernel, dtype=dtype, sparse=sparse)

    if has_fused_tiles():
        # A kernel without fused tiles stays on the GPU: tiles of torch are far faster there than
        # compiled ones on the host.
        fused: Engine = _triton_engine().TritonEngine()
        return fused if covers(fused) else tiled_on(fused.device)
    # By factors no entry is computed, see `_tiles.tiles`.
    if kernel is not None and kernel.bilinear:
        return TiledEngine()
    # Without compiled tiles there are no instructions, and to build the engine would raise an
    # error.
    if {"avx512", "avx2"}.isdisjoint(instructions()):
        return TiledEngine()
    native = NativeEngine()
    return native if covers(native) else TiledEngine()


def _engine_called(spec: str) -> Engine:
    if spec == "native":
        return NativeEngine()
    if spec == "native:fast":
        return NativeEngine(precision="fast")
    name, colon, device = spec.partition(":")
    device = device if colon else {"torch": "cpu", "numpy": "cpu", "triton": "cuda"}.get(name, "")
    is_known = name in ("torch", "triton") or spec == "numpy"
    if not is_known or not re.fullmatch(DEVICE_PATTERN, device):
        known_names = (
            "auto, native, native:fast, numpy, torch:cuda[:i[,j,...]], triton[:cuda[:i[,j,...]]]"
        )
        raise ParameterError(
            "engine", spec, known_names, _hint(spec).removeprefix("; "), UNKNOWN_FORM
        )
    devices = _devices(device)
    # Checked before an engine is made, so that the error names the setting and the remedy, and not
    # a missing module.
    if name == "triton":
        import_torch(Text("{engine=}", spec))
    if name == "torch" and device != "cpu":
        for one_device in devices:
            check_device(one_device, Text("{engine=}", spec))
    engines = [
        _triton_engine().TritonEngine(one_device) if name == "triton" else tiled_on(one_device)
        for one_device in devices
    ]
    return engines[0] if len(engines) == 1 else MultiDeviceEngine(tuple(engines))


def _triton_engine() -> ModuleType:
    """Return the module of fused tiles, which imports torch."""
    return import_module("gramian.engines.triton_engine")


def _hint(spec: str) -> str:
    """Return the end of an error about an unknown engine, with a similar name."""
    if spec in FOREIGN_ENGINES:
        return f"; did you mean {FOREIGN_ENGINES[spec]}?"
    return did_you_mean(spec, ENGINE_NAMES)


def _devices(names: str) -> list[str]:
    """Return the devices in a name such as ``"cuda:0,1"``; raise ValueError for a repeated one."""
    kind, _, numbers = names.partition(":")
    devices = [f"{kind}:{int(number)}" for number in numbers.split(",")] if numbers else [kind]
    if len(set(devices)) < len(devices):
        raise ValueError(
            f"{names!r} names a device twice; rows are divided among different devices"
        )
    return devices
