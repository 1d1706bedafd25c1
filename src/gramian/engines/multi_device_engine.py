"""MultiDeviceEngine: divides the rows of a call among several engines, one for each device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float
from .._sparse import slice_rows
from ..kernels import Kernel
from ._tiles.sizes import bounds_of, sum_of
from .base import Engine


@dataclass(frozen=True)
class MultiDeviceEngine(Engine):
    """Several engines that each compute with an equal part of the rows, at the same time.

    Use it for the GPUs of one machine: ``engine="triton:cuda:0,1"`` means
    ``MultiDeviceEngine((TritonEngine("cuda:0"), TritonEngine("cuda:1")))``. In each call, an engine
    receives its rows, and all of `z` and `v`. Results are concatenated, or added up, in the order
    of the engines, so that runs give the same bits if the engines do.

    Parameters
    ----------
    engines : tuple of Engine
        At least one engine. Rows are divided equally, so devices should be equally fast.

    Raises
    ------
    ValueError
        If there is no engine.

    Notes
    -----
    `symmetric` computes each pair of rows twice, and counts it twice, because the two rows are on
    different devices.
    """

    engines: tuple[Engine, ...]

    def __post_init__(self) -> None:
        if not self.engines:
            raise ValueError("MultiDeviceEngine needs at least one engine; got none")

    def check(self) -> None:
        for engine in self.engines:
            engine.check()

    def covers(self, kernel: Kernel, *, dtype: xp.DType, sparse: bool) -> bool:
        return all(engine.covers(kernel, dtype=dtype, sparse=sparse) for engine in self.engines)

    def require(
        self, kernel: Kernel, *, dtype: xp.DType, sparse: bool, name: str | None = None
    ) -> None:
        for engine in self.engines:
            engine.require(kernel, dtype=dtype, sparse=sparse, name=name)

    @property
    def largest_block(self) -> int:
        return sum(engine.largest_block for engine in self.engines)

    def device_bytes(self) -> int | None:
        limits = [engine.device_bytes() for engine in self.engines]
        known_limits = [limit for limit in limits if limit is not None]
        # The least limit counts for each engine: rows are divided equally, so that the smallest
        # device is full first. The sum, because `workspace_bytes` is a sum over all engines, too.
        return min(known_limits) * len(self.engines) if known_limits else None

    def matvec(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Array, "b t"]:
        def part(engine: Engine, start: int, stop: int) -> Array:
            rows = slice_rows(x, start, stop)
            return engine.matvec(kernel, rows, z, v, diagonal=_shift_range(diagonal, start))

        return xp.concat(self._over_engines(part, x.shape[0]))

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
        def part(engine: Engine, start: int, stop: int) -> Array:
            w, y = (None if u is None else u[start:stop] for u in (weights, targets))
            rows, shifted = slice_rows(x, start, stop), _shift_range(diagonal, start)
            return engine.normal(kernel, rows, z, v, weights=w, targets=y, diagonal=shifted)

        return sum_of(self._over_engines(part, x.shape[0]))

    def symmetric(
        self, kernel: Kernel, x: Float[Array, "n d"], v: Float[Array, "n t"]
    ) -> Float[Array, "n t"]:
        return self.matvec(kernel, x, x, v, diagonal=0)

    def symmetric_evaluations(self, n: int) -> int:
        return n * n

    def block(
        self, kernel: Kernel, x: Array, z: Array, *, diagonal: int | None = None
    ) -> Float[Array, "b m"]:
        def part(engine: Engine, start: int, stop: int) -> Array:
            rows = slice_rows(x, start, stop)
            return engine.block(kernel, rows, z, diagonal=_shift_range(diagonal, start))

        return xp.concat(self._over_engines(part, x.shape[0]))

    def gradients(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        def part(engine: Engine, start: int, stop: int) -> Array:
            return engine.gradients(kernel, slice_rows(x, start, stop), z, v)

        return xp.concat(self._over_engines(part, x.shape[0]))

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        # The sum, as if engines shared one memory: results meet on the device of the rows.
        return sum(engine.workspace_bytes(m, d, t, itemsize) for engine in self.engines)

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        return max(engine.row_bytes(d, t, itemsize) for engine in self.engines)

    def _over_engines(self, part: Callable[[Engine, int, int], Array], n: int) -> list[Array]:
        # With fewer rows than engines, the last engines receive none and are left out.
        bounds = bounds_of(n, 1, len(self.engines))
        engines = self.engines[: len(bounds)]
        # Threads suffice: the engines release the interpreter's lock while they compute.
        with ThreadPoolExecutor(len(engines), "gramian-device") as threads:
            return list(threads.map(part, engines, *zip(*bounds, strict=True)))


def _shift_range(diagonal: int | None, start: int) -> int | None:
    return None if diagonal is None else diagonal + start
