"""Engines compute with points that are in memory; they alone know the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import Kernel


class Engine(ABC):
    """Products with one block of a kernel matrix, k(x, z), that is never stored.

    In each verb `x` holds b rows, dense or sparse; `z` m rows, dense; both of one dtype, in which
    kernel entries are computed. Sums run in float64. `diagonal` says that the two share rows:
    row i of `x` is row ``i + diagonal`` of `z`, where the entry is then exactly k(z, z).
    """

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


def choose_engine(spec: str | Engine = "auto", *, dtype: torch.dtype) -> Engine:
    """Return the engine called `spec`.

    Parameters
    ----------
    spec : str or Engine, default="auto"
        ``"native"``: compiled tiles on the CPU. ``"native:fast"``: the same with entries right to
        1e-4 instead of 1e-5, on a CPU with AMX, see `NativeEngine`. ``"torch"``: torch on the CPU.
        ``"torch:cuda"``, ``"torch:cuda:1"``: torch on that device. ``"auto"``: native if it is
        installed and this machine has AVX2 or AVX-512, torch on the CPU if not: the portable tiles
        are slower than torch. An engine is returned as it is.
    dtype : torch.dtype
        The dtype of the rows, float32 or float64.

    Raises
    ------
    ValueError
        If there is no such engine, it cannot run on this machine, or not with this dtype. An
        engine asked for by name is never replaced by another one.
    """
    from ._compiled import instructions  # engines import this module for their base class
    from .native_engine import NativeEngine
    from .torch_engine import TorchEngine

    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"engines compute in float32 or float64, not in {dtype}")
    if isinstance(spec, Engine):
        return spec
    if spec == "native" or (spec == "auto" and not {"avx512", "avx2"}.isdisjoint(instructions())):
        return NativeEngine()
    if spec == "native:fast":
        return NativeEngine(precision="fast")
    if spec in ("auto", "torch"):
        return TorchEngine()
    name, _, device = str(spec).partition(":")
    if name != "torch" or device.split(":")[0] not in ("cpu", "cuda"):
        raise ValueError(
            f"unknown engine {spec!r}; known: auto, torch, native, native:fast, torch:cpu, "
            "torch:cuda[:i]"
        )
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f"engine={spec!r} needs a CUDA device and a CUDA build of torch; this torch sees no "
            "device. Use engine='auto' to compute on the CPU"
        )
    return TorchEngine(device=device)
