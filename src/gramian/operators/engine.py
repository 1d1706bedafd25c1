"""Engines compute with points that are in memory; they alone know the hardware."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import Cast, RowSource
from ..kernels import Kernel
from .device_rows import DeviceRows

LARGEST_BLOCK = 1 << 16
"""Rows per call of an engine: more would need memory and save nothing."""

DEVICE_BLOCK = 1 << 18
"""The same on a device, where starting a call costs as much as a hundred million entries."""

DEVICE_SHARE = 0.8
"""Part of a device's memory that is used: the rest is for what others keep there."""

DEVICES = r"cpu|cuda(:\d{1,2}(,\d{1,2})*)?"
"""What an engine may be called after: the CPU, or CUDA devices, with numbers or without."""


class Engine(ABC):
    """Products with one block of a kernel matrix, k(x, z), that is never stored.

    In each verb `x` holds b rows, dense or sparse; `z` m rows, dense; both of one dtype, in which
    kernel entries are computed. Sums run in float64. `diagonal` says that the two share rows:
    row i of `x` is row ``i + diagonal`` of `z`, where the entry is then exactly k(z, z).

    Arguments may be on any device. A result is on that of `x` if it has its rows, else of `z`.

    Attributes
    ----------
    device : str
        Where it computes. Those who call it more than once with the same arguments save transfers
        by `place` and `feed`.
    """

    device: str = "cpu"

    def place(self, values: Tensor) -> Tensor:
        """Return a tensor where this engine computes."""
        return values if self.on_host else values.to(self.device)

    def feed(self, rows: RowSource) -> RowSource:
        """Return rows whose blocks come to where this engine computes, the next one meanwhile."""
        if self.on_host:
            return rows
        if isinstance(rows, Cast):  # there: what is sent is narrower mostly
            return Cast(self.feed(rows.rows), rows.dtype)
        return DeviceRows(rows, self.device)

    @property
    def on_host(self) -> bool:
        """Whether it computes in the memory of the process."""
        return torch.device(self.device).type == "cpu"

    def device_bytes(self) -> int | None:
        """Return the bytes of its device that calls may take, None on the host."""
        if self.on_host:
            return None
        return int(DEVICE_SHARE * torch.cuda.get_device_properties(self.device).total_memory)

    def free_bytes(self) -> int | None:
        """Return how many of them nobody has taken, None on the host."""
        most = self.device_bytes()
        if most is None or self.on_host:
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return min(most, int(DEVICE_SHARE * (free + cached)))

    @property
    def largest_block(self) -> int:
        """The rows that a call should be given at most."""
        return LARGEST_BLOCK if self.on_host else DEVICE_BLOCK

    def check(self) -> None:
        """Raise ValueError if this engine cannot run here, as one from another machine may not."""
        if not self.on_host:
            check_device(self.device, repr(self))

    def covers(self, kernel: Kernel, *, sparse: bool) -> bool:
        """Return whether this engine has tiles of its own for a kernel and dense or sparse rows."""
        return True

    @abstractmethod
    def matvec(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Tensor, "b t"]:
        """Return K v in float64."""

    @abstractmethod
    def normal(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"] | None,
        *,
        weights: Float[Tensor, " b"] | None = None,
        targets: Float[Tensor, "b t"] | None = None,
        diagonal: int | None = None,
    ) -> Float[Tensor, "m t"]:
        """Return K' W (K v - y) in float64, each entry of K evaluated once.

        Without `v` the first term is left out, without `targets` the second.
        """

    @abstractmethod
    def symmetric(
        self, kernel: Kernel, x: Float[Tensor, "n d"], v: Float[Tensor, "n t"]
    ) -> Float[Tensor, "n t"]:
        """Return k(x, x) v in float64, each pair of rows evaluated once; the diagonal is exact."""

    def symmetric_evaluations(self, n: int) -> int:
        """Return how many entries `symmetric` computes for n rows."""
        return n * (n + 1) // 2

    @abstractmethod
    def block(
        self, kernel: Kernel, x: Tensor, z: Tensor, *, diagonal: int | None = None
    ) -> Float[Tensor, "b m"]:
        """Return K itself, in the dtype of `x`."""

    @abstractmethod
    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        """Return the bytes that a call needs beside what grows with the rows of `x`."""

    @abstractmethod
    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        """Return the bytes that a call needs for each row of `x`, `x` included."""


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
        divided among these devices, see `SplitEngine`. ``"auto"``: triton if it is installed and
        there is an NVIDIA GPU that has tensor cores for float32; otherwise native if it is
        installed and this machine has AVX2 or AVX-512; otherwise torch on the CPU: the portable
        tiles are slower than torch. It takes one GPU, torch's current one, however many there are:
        the others may be somebody else's, and rows divided among them have to be sent to each.
        Engines without tiles for the kernel and rows are passed over, on a GPU for torch there.
        An engine is returned as it is.
    dtype : torch.dtype
        The dtype of the rows, float32 or float64.
    kernel : Kernel, optional
        What is to be computed; if None, whether the engine has tiles for it is not asked.
    sparse : bool, default=False
        Whether rows are sparse.

    Raises
    ------
    ValueError
        If there is no such engine, it cannot run on this machine, or has no tiles for this kernel,
        for sparse rows or for this dtype. An engine asked for is never replaced by another one.
    """
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"engines compute in float32 or float64, not in {dtype}")
    if spec == "auto":
        return _best(kernel, sparse)
    engine = spec if isinstance(spec, Engine) else _called(str(spec))
    engine.check()
    if kernel is not None and not engine.covers(kernel, sparse=sparse):
        what = "sparse rows" if sparse else repr(kernel)
        name = repr(spec) if isinstance(spec, str) else type(engine).__name__
        raise ValueError(
            f"engine={name} has no tiles for {what}; use engine='auto', which takes the fastest "
            "engine that has, or engine='torch'"
        )
    return engine


def _best(kernel: Kernel | None, sparse: bool) -> Engine:
    from ._compiled import instructions  # engines import this module for their base class
    from .native_engine import NativeEngine
    from .torch_engine import TorchEngine, torch_on
    from .triton_engine import TritonEngine, is_usable

    def covers(engine: Engine) -> bool:
        return kernel is None or engine.covers(kernel, sparse=sparse)

    if is_usable():
        fused = TritonEngine()
        return fused if covers(fused) else torch_on(fused.device)
    if {"avx512", "avx2"}.isdisjoint(instructions()) or not covers(NativeEngine()):
        return TorchEngine()
    return NativeEngine()


def _called(spec: str) -> Engine:
    from .native_engine import NativeEngine
    from .split_engine import SplitEngine
    from .torch_engine import torch_on
    from .triton_engine import TritonEngine

    if spec == "native":
        return NativeEngine()
    if spec == "native:fast":
        return NativeEngine(precision="fast")
    name, colon, device = spec.partition(":")
    device = device if colon else {"torch": "cpu", "triton": "cuda"}.get(name, "")
    if name not in ("torch", "triton") or not re.fullmatch(DEVICES, device):
        raise ValueError(
            f"unknown engine {spec!r}; known: auto, torch, native, native:fast, torch:cpu, "
            "torch:cuda[:i[,j,...]], triton[:cuda[:i[,j,...]]]"
        )
    devices = _devices(device)
    if name == "torch" and device != "cpu":
        for each in devices:
            check_device(each, f"engine={spec!r}")
    engines = [TritonEngine(each) if name == "triton" else torch_on(each) for each in devices]
    return engines[0] if len(engines) == 1 else SplitEngine(tuple(engines))


def _devices(names: str) -> list[str]:
    """Return the devices that ``"cuda:0,1"`` names; ValueError if it names one twice."""
    kind, _, numbers = names.partition(":")
    devices = [f"{kind}:{int(each)}" for each in numbers.split(",")] if numbers else [kind]
    if len(set(devices)) < len(devices):
        raise ValueError(f"{names!r} names a device twice; rows are divided among different ones")
    return devices


def check_device(device: str, what: str) -> None:
    """Raise ValueError, about `what`, if `device` is no CUDA device that torch sees."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise ValueError(
            f"{what} needs a CUDA device and a CUDA build of torch; this torch sees no "
            "device. Use engine='auto' to compute on the CPU; for an estimator fitted elsewhere, "
            "set its engine_ to 'auto'"
        )
    if not torch_keeps_float32():
        raise ValueError(
            f"{what} needs torch to multiply float32 numbers as such, but it is set to do so in "
            'TF32, with three digits; undo that by torch.set_float32_matmul_precision("highest")'
        )
    index = torch.device(device).index or 0
    if index >= count:
        raise ValueError(
            f"{what} needs CUDA device {index}, but this torch sees {count}, numbered from 0"
        )


def torch_keeps_float32() -> bool:
    """Return whether torch multiplies float32 matrices in float32 on a GPU, not in TF32."""
    cuda = torch.backends.cuda.matmul
    how = getattr(cuda, "fp32_precision", None)  # torch 2.9 on, where asking the other may raise
    return not cuda.allow_tf32 if how is None else how != "tf32"
