"""Choice of an engine by its name, or by the kernels that it supports."""

from __future__ import annotations

import re

import torch

from .._messages.checks import did_you_mean
from .._messages.errors import UNKNOWN_FORM, ParameterError, Text
from ..kernels import Kernel
from ._compiled.kernels import instructions
from ._devices import check_device
from .base import Engine
from .multi_device_engine import MultiDeviceEngine
from .native_engine import NativeEngine
from .torch_engine import TorchEngine, torch_on
from .triton_engine import TritonEngine, is_usable

DEVICE_PATTERN = r"cpu|cuda(:\d{1,2}(,\d{1,2})*)?"
"""Device suffixes accepted in names of engines: cpu, cuda, cuda:0, cuda:0,1."""

ENGINE_NAMES = ("auto", "native", "native:fast", "torch", "torch:cpu", "torch:cuda", "triton")
"""Names of engines, to suggest the one nearest to an unknown name."""

FOREIGN_ENGINES = {
    "cpu": "native or torch:cpu",
    "cuda": "torch:cuda or triton",
    "gpu": "torch:cuda or triton",
    "pytorch": "torch",
    "numpy": "torch",
}
"""Names that others have for some of them."""


def choose_engine(
    spec: str | Engine = "auto",
    *,
    dtype: torch.dtype,
    kernel: Kernel | None = None,
    sparse: bool = False,
) -> Engine:
    """Return the engine called `spec`.

    Parameters
    ----------
    spec : str or Engine, default="auto"
        ``"native"``: compiled tiles on the CPU. ``"native:fast"``: the same with entries right to
        1e-4 instead of 1e-5, on a CPU with AMX, see `NativeEngine`. ``"torch"``: torch on the CPU.
        ``"torch:cuda"``, ``"torch:cuda:1"``: torch on that device. ``"triton"``,
        ``"triton:cuda:1"``: fused tiles on a GPU. ``"torch:cuda:0,1"``, ``"triton:cuda:0,1"``: rows
        divided among these devices, see `MultiDeviceEngine`. ``"auto"``: triton if it is installed
        and there is an NVIDIA GPU with tensor cores for float32; otherwise native if it is
        installed and this machine has AVX2 or AVX-512; otherwise torch on the CPU: the portable
        tiles are slower than torch. It uses a single GPU, torch's current one: other GPUs may be in
        use by others, and rows would have to be sent to each. Engines without tiles for the kernel
        and rows are skipped; on a GPU, torch on this GPU replaces them. On the CPU, torch computes
        bilinear kernels, by two factors. An engine is returned unchanged.
    dtype : torch.dtype
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
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"engines compute in float32 or float64, not in {dtype}")
    if spec == "auto":
        return _best(kernel, dtype, sparse)
    engine = spec if isinstance(spec, Engine) else _engine_called(str(spec))
    engine.check()
    if kernel is not None:
        name = repr(spec) if isinstance(spec, str) else None
        engine.require(kernel, dtype=dtype, sparse=sparse, name=name)
    return engine


def choose_covering(engine: Engine, kernel: Kernel, *, dtype: torch.dtype, sparse: bool) -> Engine:
    """Return an engine if it supports the kernel, else the torch engine on the same devices.

    It is for operators that are derived from another one, such as the same operator in float64.
    """
    if engine.covers(kernel, dtype=dtype, sparse=sparse):
        return engine
    if isinstance(engine, MultiDeviceEngine):
        covered = (
            choose_covering(member, kernel, dtype=dtype, sparse=sparse) for member in engine.engines
        )
        return MultiDeviceEngine(tuple(covered))
    if isinstance(engine, NativeEngine):
        return TorchEngine(threads=engine.threads)
    return torch_on(engine.device)


def choose_within_memory(
    engine: Engine, kernel: Kernel, memory_bytes: int, *, dtype: torch.dtype, sparse: bool
) -> tuple[Engine, int]:
    """Return the engine of `choose_covering`, and the bytes that it may use.

    The limit of an engine also applies to its replacement: a torch engine on the device does not
    know ``memory_bytes`` of the `TritonEngine`.
    """
    # The new engine knows the device's memory but not the limit set on the old one.
    covered_engine = choose_covering(engine, kernel, dtype=dtype, sparse=sparse)
    if covered_engine is engine:
        return engine, memory_bytes
    return covered_engine, min(memory_bytes, engine.device_bytes() or memory_bytes)


def _best(kernel: Kernel | None, dtype: torch.dtype, sparse: bool) -> Engine:
    def covers(engine: Engine) -> bool:
        return kernel is None or engine.covers(kernel, dtype=dtype, sparse=sparse)

    if is_usable():
        fused = TritonEngine()
        return fused if covers(fused) else torch_on(fused.device)
    if (
        kernel is not None and kernel.bilinear
    ):  # by factors no entry is computed, see `_tiles.factored`
        return TorchEngine()
    # Without compiled tiles there are no instructions, and to build the engine would raise an
    # error.
    if {"avx512", "avx2"}.isdisjoint(instructions()) or not covers(NativeEngine()):
        return TorchEngine()
    return NativeEngine()


def _engine_called(spec: str) -> Engine:
    if spec == "native":
        return NativeEngine()
    if spec == "native:fast":
        return NativeEngine(precision="fast")
    name, colon, device = spec.partition(":")
    device = device if colon else {"torch": "cpu", "triton": "cuda"}.get(name, "")
    if name not in ("torch", "triton") or not re.fullmatch(DEVICE_PATTERN, device):
        known_names = (
            "auto, torch, native, native:fast, torch:cpu, torch:cuda[:i[,j,...]], "
            "triton[:cuda[:i[,j,...]]]"
        )
        raise ParameterError(
            "engine", spec, known_names, _hint(spec).removeprefix("; "), UNKNOWN_FORM
        )
    devices = _devices(device)
    if name == "torch" and device != "cpu":
        for one_device in devices:
            check_device(one_device, Text("{engine=}", spec))
    engines = [
        TritonEngine(one_device) if name == "triton" else torch_on(one_device)
        for one_device in devices
    ]
    return engines[0] if len(engines) == 1 else MultiDeviceEngine(tuple(engines))


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
