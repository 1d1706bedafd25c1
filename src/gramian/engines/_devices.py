"""Number, memory and precision of the devices of torch, which is imported on demand."""

from __future__ import annotations

import functools
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .._messages.errors import Text, TextError

DRIVER_PATHS = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")
"""Files of which one exists where a driver of NVIDIA is loaded, on Linux or below Windows."""

DEVICE_SHARE = 0.8
"""Part of a device's memory that is used: the rest is for what others keep there."""


def import_torch(what: str | Text) -> Any:
    """Return the module torch; raise ValueError, about `what`, if it is not installed."""
    if find_spec("torch") is None:
        raise TextError(
            "{} needs the package torch, which is not installed: `pip install 'gramian[gpu]'`; or "
            "use {engine='auto'}, which computes on the CPU",
            what,
        )
    return import_module("torch")


@functools.cache
def has_driver() -> bool:
    """Return whether this machine has a driver for GPUs of NVIDIA, without importing torch."""
    return any(os.path.exists(path) for path in DRIVER_PATHS)


def count_devices() -> int:
    """Return the number of CUDA devices that torch finds; 0 without torch or a driver."""
    if not has_driver() or find_spec("torch") is None:
        return 0
    cuda = import_module("torch").cuda
    return int(cuda.device_count()) if cuda.is_available() else 0


def check_device(device: str, what: str | Text) -> None:
    """Raise ValueError, about `what`, if `device` is not a CUDA device of torch."""
    torch = import_torch(what)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise TextError(
            "{} needs a CUDA device and a CUDA build of torch, but torch finds no device. Use "
            "{engine='auto'} to compute on the CPU; for an estimator fitted elsewhere, set "
            "{engine_='auto'}",
            what,
        )
    if not torch_keeps_float32():
        raise TextError(
            "{} needs full float32 products, but torch is set to compute them in TF32, with three "
            'digits; call torch.set_float32_matmul_precision("highest")',
            what,
        )
    index = torch.device(device).index or 0
    if index >= count:
        raise TextError(
            "{} needs CUDA device {}, but torch finds {}, numbered from 0",
            what,
            index,
            count,
        )


def torch_keeps_float32() -> bool:
    """Return whether torch multiplies float32 matrices in float32 on a GPU, not in TF32."""
    cuda = import_module("torch").backends.cuda.matmul
    how = getattr(cuda, "fp32_precision", None)  # torch 2.9 on, where asking the other may raise
    return not cuda.allow_tf32 if how is None else how != "tf32"


def device_bytes(device: str) -> int:
    """Return the memory of a device, in bytes, that calls may use."""
    cuda = import_module("torch").cuda
    return int(DEVICE_SHARE * cuda.get_device_properties(device).total_memory)


def free_device_bytes(device: str) -> int:
    """Return the bytes of a device that are free, or that torch holds without need."""
    cuda = import_module("torch").cuda
    # The allocator of torch holds freed memory that the driver counts as used.
    free_bytes, _ = cuda.mem_get_info(device)
    cached = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return int(DEVICE_SHARE * (free_bytes + cached))


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error means that a device has not enough memory."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def release_cached() -> None:
    """Release unused memory that torch holds to the driver."""
    sys.modules["torch"].cuda.empty_cache()
