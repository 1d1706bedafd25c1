"""TritonEngine: fused tiles on a GPU, from distance to sum in registers."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from typing import TYPE_CHECKING

import torch

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import Text
from .._sparse import is_sparse
from ..kernels import Kernel
from ..kernels._lengthscale import LengthscaleKernel
from ._fused.distances import PRODUCT_PRECISIONS, SCRATCH_BYTES, SPLIT_ROWS
from ._tiles.precision import unscale_kernel
from ._tiles.tiled import Tiled, is_given
from ._tiles.tiles import check_gradients, is_empty
from .base import DEVICE_BLOCK, Engine

if TYPE_CHECKING:
    from ._fused.products import Fused

logger = logging.getLogger("gramian")

LEAST_VERSION = (3, 4)
"""The first triton version with all functions in use; torch 2.8 installs it."""

MISSING_TRITON = Text(
    "TritonEngine needs the package triton, 3.4 or later, which is not installed: `pip install "
    "gramian[gpu]`; or use {engine='torch:cuda'}, which computes on the same device without "
    "fused tiles"
)

NOT_INTERPRETED = Text(
    "TritonEngine(device='cpu') runs only in Triton's interpreter, for tests: set the environment "
    "variable TRITON_INTERPRET=1 before Python starts, or use {engine='native'} or "
    "{engine='numpy'} on the CPU"
)


@dataclass(frozen=True)
class TritonEngine(Engine):
    """Engine for NVIDIA GPUs: fused Triton tiles that never write the kernel matrix to memory.

    A tile computes distances, the profile (the function of the distance that defines the kernel),
    and sums. Kernels with the same distance share one program. It is compiled, in one or two
    seconds, for each combination of profile, number of features and padded number of targets. Rows
    are centered by the mean of `z` in float64 and rounded once. Sums run in float32 within a tile
    and in float64 beyond it. Their order is fixed, because there are no atomic additions.

    Squared distances come from norms and a product, or from differences if features are few or the
    product would lose digits; if float32 cannot keep entries right to 6e-6, `TiledEngine` computes
    tiles in float64 on the same device. There are no tiles for float64 or sparse rows, nor for
    kernels without a fused profile (linear and polynomial ones, sums and products, kernels
    registered elsewhere): `covers` is False, and this engine raises an error.

    `gradients` is fused for smooth kernels of the Euclidean distance; ``"3xbf16"`` is then replaced
    by ``"3xtf32"``. Gradients of the Laplacian kernels are computed by `TiledEngine` on the same
    device.

    `normal` evaluates kernel entries twice, or, with many features, stores the entries of some
    rows if that costs less arithmetic. `symmetric` evaluates each pair once.

    Parameters
    ----------
    device : str, default="cuda"
        ``"cuda"``, ``"cuda:1"``; ``"cpu"`` if Triton interprets its programs.
    precision : {"3xtf32", "ieee", "3xbf16"}, default="3xtf32"
        How float32 matrices are multiplied. ``"ieee"``: without tensor cores. ``"3xtf32"``: three
        products on the tensor cores, of numbers split into two of 11 bits; nearly as accurate.
        ``"3xbf16"``: three products of numbers split into two of 8 bits, with an error of about
        1e-5 of an entry, at most 6e-5. If the chosen product might lose more, ``"ieee"`` or
        differences are used instead.
    tuned : bool, default=True
        On a GPU, time a few tile shapes in the first large product of each kind (2^34 entries) and
        keep the fastest for other large products, which takes some seconds each. False: one shape
        for all. Products are deterministic either way as long as a process lives; without tuning,
        each run of a program gives the same bits.
    memory_bytes : int, optional
        Memory of the device for blocks and workspace; 80 % of the device's memory if None. The
        limit of an operator also applies.

    Raises
    ------
    ValueError
        If triton is not installed, there is no such device, or no such precision.

    Notes
    -----
    Cost of a product: n m (d + t) multiply-adds; for a split product three times as many, on tensor
    cores that are 8 (tf32) or 16 (bf16) times as fast. Memory: centered copies of `x` and `z`,
    their features padded to a multiple of 16, the sums, and up to 128 MB for entries or parts of
    sums.

    An operator returns a product on the device of its vector. Estimators keep vectors, landmarks,
    factors and rows on the device if they fit, see their `plan`.
    """

    device: str = "cuda"
    precision: str = "3xtf32"
    tuned: bool = True
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRODUCT_PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRODUCT_PRECISIONS)}, not {self.precision!r}"
            )
        self.check()

    def check(self) -> None:
        if not is_installed():
            raise ValueError(MISSING_TRITON)
        # Without the interpreter Triton needs a GPU driver, and its own message would not help.
        if self.on_host and not is_interpreted():
            raise ValueError(NOT_INTERPRETED)
        super().check()

    def device_bytes(self) -> int | None:
        return super().device_bytes() if self.memory_bytes is None else self.memory_bytes

    def covers(self, kernel: Kernel, *, dtype: xp.DType, sparse: bool) -> bool:
        if sparse or dtype not in (xp.float32, torch.float32):
            return False
        # Importing the profiles imports triton, which need not be installed until this call.
        profiles = import_module(f"{__package__}._fused.profiles").PROFILE_OF_KERNEL
        return type(unscale_kernel(kernel)[1]) in profiles

    def matvec(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Array, "b t"]:
        factor, K = self._fused_tiles(kernel, x, z, diagonal)
        if K is None:
            return self._tiles.matvec(kernel, x, z, v, diagonal=diagonal)
        return xp.to_device((K @ self._send(v)).mul_(factor), xp.device_of(x))

    def normal(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"] | None,
        *,
        weights: Float[Array, " b"] | None = None,
        targets: Float[Array, "b t"] | None = None,
        diagonal: int | None = None,
    ) -> Float[Array, "m t"]:
        factor, K = self._fused_tiles(kernel, x, z, diagonal)
        like = is_given(targets if v is None else v)
        if K is None:
            return self._tiles.normal(
                kernel, x, z, v, weights=weights, targets=targets, diagonal=diagonal
            )
        v, w, y = (None if u is None else self._send(u) for u in (v, weights, targets))
        Normal = import_module(f"{__package__}._fused.normal").Normal
        out: Array = Normal(K, factor, w, y)(v, like.shape[1])
        return xp.to_device(out, xp.device_of(z))

    def symmetric(
        self, kernel: Kernel, x: Float[Array, "n d"], v: Float[Array, "n t"]
    ) -> Float[Array, "n t"]:
        factor, K = self._fused_tiles(kernel, x, x, 0)
        if K is None:
            return self._tiles.symmetric(kernel, x, v)
        return xp.to_device(K.symmetric(self._send(v)).mul_(factor), xp.device_of(x))

    def block(
        self, kernel: Kernel, x: Array, z: Array, *, diagonal: int | None = None
    ) -> Float[Array, "b m"]:
        factor, K = self._fused_tiles(kernel, x, z, diagonal)
        if K is None:
            return self._tiles.block(kernel, x, z, diagonal=diagonal)
        return xp.to_device(K.dense().mul_(factor), xp.device_of(x))

    def gradients(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        check_gradients(kernel, x)
        self.require(kernel, dtype=x.dtype, sparse=is_sparse(x))
        smooth = import_module(f"{__package__}._fused.profiles").SLOPE_OF_KERNEL
        factor, plain = unscale_kernel(kernel)
        K = None
        if type(plain) in smooth and v.shape[1] > 0:
            # The error of two bfloat16 pieces is bounded for entries, and slopes would magnify it.
            precise = replace(self, precision="3xtf32") if self.precision == "3xbf16" else self
            _, K = precise._fused_tiles(plain, x, z, None)
        if K is None:  # a kink, the l1 distance, or digits that float32 lacks
            return self._tiles.gradients(kernel, x, z, v)
        compute = import_module(f"{__package__}._fused.normal").gradients
        out: Array = compute(plain, *(self._send(u) for u in (x, z, v)), K)
        return xp.to_device(out.mul_(factor), xp.device_of(x))

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        width = max(t, 16)
        scratch = min(SCRATCH_BYTES, 4 * m * DEVICE_BLOCK)
        fused = m * (4 * (4 * d + 32) + 32 * width) + SPLIT_ROWS * 8 * width + scratch
        return max(fused, self._tiles.workspace_bytes(m, d, t, itemsize))

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        fused = 4 * (6 * d + 32) + 24 * max(t, 16)
        return max(fused, self._tiles.row_bytes(d, t, itemsize))

    @property
    def _tiles(self) -> Tiled:
        """Tiles of torch on the same device, for products that the fused tiles cannot compute.

        They handle empty operands, and use float64 where float32 would lose digits.
        `choose_covering` selects the same tiles for rows that this engine does not cover, so the
        workspace includes their memory.
        """
        return Tiled(self.device)

    def _fused_tiles(
        self, kernel: Kernel, x: Array, z: Array, diagonal: int | None
    ) -> tuple[float, Fused | None]:
        """Return the factor of a kernel and its fused tiles; None if `Tiled` must compute."""
        self.require(kernel, dtype=x.dtype, sparse=is_sparse(x))
        factor, plain = unscale_kernel(kernel)
        if is_empty(x, z):
            return factor, None
        if not isinstance(plain, LengthscaleKernel):
            raise TypeError(f"there are no fused tiles for {kernel!r}")
        left_points = self._send(x)
        # The identity tells the tiles that one prepared copy serves both sides.
        right = left_points if z is x else self._send(z)
        build = import_module(f"{__package__}._fused.products").Fused.build
        tunes = self.tuned and not self.on_host
        K: Fused | None = build(plain, left_points, right, diagonal, self.precision, tunes)
        if K is None:
            logger.debug("torch tiles in float64: float32 would lose digits of %r", kernel)
        return factor, K

    def _send(self, x: Array) -> Array:
        """Return a tensor on the device of this engine; of an array of the host, too."""
        return xp.as_tensor(x, self.device)


@functools.cache  # an operator makes engines, and reading the metadata takes 0.4 ms
def is_installed() -> bool:
    """Return whether triton is installed, in a version that this engine can use."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return False
    return tuple(int(part) for part in version.split(".")[:2]) >= LEAST_VERSION


def is_interpreted() -> bool:
    """Return whether Triton interprets its programs instead of compiling them."""
    return bool(import_module("triton").knobs.runtime.interpret)


def is_usable() -> bool:
    """Return whether fused tiles can run: triton and an NVIDIA GPU, Ampere or later."""
    # ROCm builds of torch report a CUDA device as available, but have no version of CUDA.
    has_cuda = torch.version.cuda is not None and torch.cuda.is_available()
    return has_cuda and torch.cuda.get_device_capability() >= (8, 0) and is_installed()
