"""TorchEngine: the reference engine, on any device of torch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import Kernel
from ._tiles.gradients import TiledGradients
from ._tiles.sizes import DEVICE_TILE_BYTES, TILE_BYTES
from ._tiles.tiled import Tiled
from .base import Engine


@dataclass(frozen=True)
class TorchEngine(Engine):
    """Cache-sized tiles of the kernel matrix, each one matrix product and one profile.

    Squared distances come from one matrix product of augmented rows, written into a reused buffer,
    so that a tile never leaves the cache. The rows are centered by the mean of `z` first. If
    float32 would still lose digits (two sets far from the origin compared with the lengthscale;
    near-duplicates under a kernel with a kink at zero), the product runs in float64 and only the
    profile in float32.

    Parameters
    ----------
    device : str, default="cpu"
    tile_bytes : int, default=4 MiB
        Size of a tile: small enough to stay in the cache, large enough that the five operations
        on it outweigh the cost of calling them.
    threads : int, optional
        Number of workers on the CPU; the number of threads of torch if None.
    """

    device: str = "cpu"
    tile_bytes: int = TILE_BYTES
    threads: int | None = None

    def matvec(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Tensor, "b t"]:
        return self._torch_tiles.matvec(kernel, x, z, v, diagonal=diagonal)

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
        return self._torch_tiles.normal(
            kernel, x, z, v, weights=weights, targets=targets, diagonal=diagonal
        )

    def symmetric(
        self, kernel: Kernel, x: Float[Tensor, "n d"], v: Float[Tensor, "n t"]
    ) -> Float[Tensor, "n t"]:
        return self._torch_tiles.symmetric(kernel, x, v)

    def block(
        self, kernel: Kernel, x: Tensor, z: Tensor, *, diagonal: int | None = None
    ) -> Float[Tensor, "b m"]:
        return self._torch_tiles.block(kernel, x, z, diagonal=diagonal)

    def gradients(
        self, kernel: Kernel, x: Tensor, z: Tensor, v: Float[Tensor, "m t"]
    ) -> Float[Tensor, "b t d"]:
        return TiledGradients(self.device, self.tile_bytes, self.threads)(kernel, x, z, v)

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        return self._torch_tiles.workspace_bytes(m, d, t, itemsize)

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        return self._torch_tiles.row_bytes(d, t, itemsize)

    @property
    def _torch_tiles(self) -> Tiled:
        return Tiled(self.device, self.tile_bytes, self.threads)


def torch_on(device: str) -> TorchEngine:
    """Return the torch engine of a device, with tiles of a suitable size."""
    if torch.device(device).type == "cpu":
        return TorchEngine(device)
    return TorchEngine(device, tile_bytes=DEVICE_TILE_BYTES)
