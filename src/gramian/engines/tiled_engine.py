"""TiledEngine: the reference engine, of NumPy on the host and of torch on a device."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from ._tiles.sizes import DEVICE_TILE_BYTES, TILE_BYTES
from ._tiles.tiled import Tiled
from .base import Engine


@dataclass(frozen=True)
class TiledEngine(Tiled, Engine):
    """Cache-sized tiles of the kernel matrix, each one matrix product and one profile.

    Squared distances come from one matrix product of augmented rows, written into a reused buffer,
    so that a tile never leaves the cache. The rows are centered by the mean of `z` first. If
    float32 would still lose digits (two sets far from the origin compared with the lengthscale;
    near-duplicates under a kernel with a kink at zero), the product runs in float64 and only the
    profile in float32.

    Parameters
    ----------
    device : str, default="cpu"
        ``"cpu"``: the host, where NumPy computes; otherwise a device of torch.
    tile_bytes : int, default=4 MiB
        Size of a tile: small enough to stay in the cache, large enough that the five operations
        on it outweigh the cost of calling them.
    threads : int, optional
        Number of workers on the CPU; the number of threads of the BLAS if None.
    """

    device: str = "cpu"
    tile_bytes: int = TILE_BYTES
    threads: int | None = None


def tiled_on(device: str) -> TiledEngine:
    """Return the tiled engine of a device, with tiles of a suitable size."""
    if xp.is_host(device):
        return TiledEngine(device)
    return TiledEngine(device, tile_bytes=DEVICE_TILE_BYTES)
