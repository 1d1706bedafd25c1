"""NativeEngine: compiled tiles for the CPU, fused from distance to sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import Text, TextError
from .._parallel.workers import default_threads, run
from .._sparse import is_sparse
from ..kernels import Kernel
from ._compiled.bfloat16 import SPLIT_CHOICES, piece_bytes
from ._compiled.kernels import (
    Compiled,
    TileSettings,
    has_compiled_slopes,
    has_split_products,
    instructions,
    is_built,
    is_compiled,
)
from ._tiles.precision import unscale_kernel
from ._tiles.sizes import PARTS_PER_THREAD, bounds_of, sum_of
from ._tiles.tiled import Tiled, is_given
from ._tiles.tiles import check_gradients, is_empty
from .base import Engine

MIN_PART_ROWS = 48
"""Rows that share one read of the columns: fewer would be slower."""

STRIP_ROWS = 96
"""Rows of a strip of `normal` at most."""

LIGHT_NUMBERS, ENTRY_FEATURES = 1 << 20, 32
"""Work that the calling thread does itself: features of pairs, the profile counted as some of them.

It takes up to 50 microseconds, as does handing it to a worker and waiting for that.
"""

LIGHT_NUMBERS_ALONE = 1 << 26
"""The same for one thread, to which a worker adds only waits; Ctrl-C waits for 2 milliseconds."""

PART_SUM_BYTES = 1 << 22
"""A sum over rows, for all columns, of which there may be several per thread."""

GRADIENT_SUMS = 1024
"""Simultaneous sums of a row of `gradients`: of v, and of v times each feature."""

GRADIENT_BYTES = 6000
"""Bytes that each of them takes of a worker: for a chunk of columns, and for a block of rows."""

MISSING_MODULE = Text(
    "{engine='native'} needs the compiled tiles, which this installation lacks: install a C++ "
    "compiler (GCC or Clang), unset GRAMIAN_NATIVE, and reinstall gramian from source with "
    "`pip install --force-reinstall --no-deps .`; or use {engine='auto'}"
)


EMULATED_ISA = "amx-emulated"
"""Tiles with an emulated matrix unit, for tests: hundreds of times slower than the others."""


@dataclass(frozen=True)
class NativeEngine(Engine):
    """Compiled tiles that compute distance, profile and sum in registers, for this CPU.

    A tile of 8 rows by 48 columns (AVX-512, float32) never leaves the registers in `matvec`; in
    `normal` a strip of rows stays in the cache until its second use. One file of machine code has
    tiles for AVX-512, for AVX2 with FMA, and for the basic instructions of all such processors; the
    best are chosen at run time. Rows are centered by the mean of `z` in float64 and rounded once.

    Squared distances come from norms and a product, or from differences if these cost little or the
    product would lose digits; if float32 cannot keep entries right to 6e-6, tiles are computed in
    float64. Sums run in the dtype of the tiles over some thousand columns or 1,024 rows, and in
    float64 beyond. Runs with the same number of threads give the same bits.

    With AMX, for radial kernels of float32 rows, inner products may be sums of products of bfloat16
    pieces, of rows that are centered: with three pieces the six largest products, as precise as
    float32, or with two pieces the three largest. AMX is used only if an estimate of the error,
    from the features and the distances of columns from their mean in lengthscales (`split_error`),
    is within the documented precision; pairs near each other are computed from differences if the
    kernel has a kink; otherwise tiles of float32 or float64 are used.

    There are tiles for the kernels of gramian, except kernels of angles (cosine, periodic,
    haversine), and for positive multiples of them; Tanimoto's and the chi-squared kernel have
    entries here and gradients by `TiledEngine`. For other kernels, sums and products of kernels,
    and sparse rows `covers` is False, and this engine raises an error.

    With AVX-512 an entry of the Gaussian, l1 Laplacian or chi-squared kernel may exceed 1 by its
    rounding.

    Parameters
    ----------
    threads : int, optional
        Number of workers; the number of threads of the BLAS if None.
    instructions : str, default="best"
        ``"amx"``, ``"avx512"``, ``"avx2"``, ``"portable"``, or the best of these that the machine
        supports; ``"amx"`` is AVX-512 with AMX. ``"amx-emulated"`` emulates AMX for tests of this
        package, hundreds of times slower.
    precision : {"auto", "exact", "fast"}, default="auto"
        Precision of entries k(x, z) / sqrt(k(x, x) k(z, z)) of float32 rows. ``"exact"``: right to
        1e-5, without AMX. ``"auto"``: right to 1e-5, with six products on AMX from 64 features on,
        where they are faster. ``"fast"``: right to 1e-4, with three products on AMX from 9 features
        on. Both limits come from measurements (one core, Gaussian, 5,000 columns):
        compared with float32 tiles, `normal` with six products was 1.2 times as fast at d = 90 and
        0.9 times at d = 18, with three products 1.8 and 1.2 times; neither is faster at d = 4.
        Float64 rows are always computed in float64.

    Raises
    ------
    ValueError
        If the compiled tiles are not installed, or the machine lacks these instructions; or with
        ``precision="fast"``, if they do not include AMX.
    """

    threads: int | None = None
    instructions: str = "best"
    precision: str = "auto"

    def __post_init__(self) -> None:
        if not is_built():
            raise ValueError(MISSING_MODULE)
        if self.instructions not in ("best", EMULATED_ISA, *instructions()):
            raise ValueError(
                f"instructions={self.instructions!r} are not available on this machine; use one of "
                f"{', '.join(instructions())}, or 'best' for the first of them"
            )
        if self.precision not in SPLIT_CHOICES:
            raise ValueError(
                f"precision must be one of {', '.join(SPLIT_CHOICES)}, not {self.precision!r}"
            )
        if self.precision == "fast" and not has_split_products(self.instructions):
            raise TextError(
                "{precision='fast'} needs AMX, which is not available on this machine "
                "(instructions {}) or not among the requested instructions; use "
                "{precision='auto'}",
                ", ".join(instructions()),
            )

    def covers(self, kernel: Kernel, *, dtype: xp.DType, sparse: bool) -> bool:
        return not sparse and is_compiled(unscale_kernel(kernel)[1])

    def matvec(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Array, "b t"]:
        self._check_covered(kernel, x)
        if is_empty(x, z):
            return self._tiles.matvec(kernel, x, z, v)
        factor, tiles = self._compiled_tiles(kernel, x, z, diagonal)
        rows, columns = xp.contiguous(xp.detach(x)), tiles.columns(v)
        out = xp.empty((len(x), v.shape[1]), xp.float64)

        def part(start: int, stop: int) -> None:
            tiles.plan.matvec(rows, start, stop, columns, out[start:stop])

        # The factor of a scaled kernel multiplies the result, instead of each entry.
        self._over_rows(part, x, z, tiles)
        return xp.multiply_(out, factor)

    def against(
        self, kernel: Kernel, z: Array, v: Float[Array, "m t"]
    ) -> Callable[[Array], Float[Array, "b t"]]:
        """Return the function of rows x whose value is `matvec`; see `Engine.against`.

        The first call with few rows packs z and v; the function keeps them, at about
        8 m (d + t) bytes.
        """
        return PackedProduct(self, kernel, z, v)

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
        self._check_covered(kernel, x)
        like = is_given(targets if v is None else v)
        if is_empty(x, z):
            return self._tiles.normal(kernel, x, z, v, targets=targets)
        factor, tiles = self._compiled_tiles(kernel, x, z, diagonal)
        # The factor enters twice: with v, and with the sum at the end. The targets stay as they
        # are.
        columns = None if v is None else tiles.columns(v * factor)
        rows, w, y = xp.contiguous(xp.detach(x)), tiles.rowwise(weights), tiles.rowwise(targets)

        def part(bounds: tuple[int, int]) -> Array:
            out = xp.zeros((like.shape[1], len(z)), xp.float64)
            tiles.plan.normal(rows, *bounds, columns, w, y, out)
            return out

        # Each part has a sum over all columns, so large sums allow one part per thread.
        parts = self._parts_per_thread(like.shape[1] * len(z))
        threads = self._threads()
        bounds = bounds_of(len(x), MIN_PART_ROWS, parts * threads)
        parts_of = run(threads, part, bounds, tiles.plan.stop, light=_is_light(x, z, threads == 1))
        return xp.multiply_(sum_of(parts_of).T, factor)

    def symmetric(
        self, kernel: Kernel, x: Float[Array, "n d"], v: Float[Array, "n t"]
    ) -> Float[Array, "n t"]:
        self._check_covered(kernel, x)
        if is_empty(x, x):
            return self._tiles.symmetric(kernel, x, v)
        factor, tiles = self._compiled_tiles(kernel, x, x, 0)
        rows, columns = xp.contiguous(xp.detach(x)), tiles.columns(v)
        # Each worker takes rows in turn inside the tiles, because rows become shorter along the
        # triangle.
        threads = self._threads()
        workers = min(threads, len(x))

        def part(worker: int) -> Array:
            out = xp.zeros((v.shape[1], len(x)), xp.float64)
            tiles.plan.symmetric(rows, worker, workers, columns, out)
            return out

        light = _is_light(x, x, threads == 1)
        parts = run(threads, part, range(workers), tiles.plan.stop, light=light)
        return xp.multiply_(sum_of(parts).T, factor)

    def block(
        self, kernel: Kernel, x: Array, z: Array, *, diagonal: int | None = None
    ) -> Float[Array, "b m"]:
        self._check_covered(kernel, x)
        if is_empty(x, z):
            return self._tiles.block(kernel, x, z)
        factor, tiles = self._compiled_tiles(kernel, x, z, diagonal)
        rows, out = xp.contiguous(xp.detach(x)), xp.empty((len(x), len(z)), x.dtype)

        def part(start: int, stop: int) -> None:
            if tiles.dtype == out.dtype:
                tiles.plan.block(rows, start, stop, out[start:stop])
                return
            # Float64 tiles of float32 rows are rounded a few rows at a time, not as a second
            # matrix.
            entries = xp.empty((MIN_PART_ROWS, len(z)), tiles.dtype)
            for i in range(start, stop, MIN_PART_ROWS):
                own_entries = entries[: min(stop - i, MIN_PART_ROWS)]
                tiles.plan.block(rows, i, i + len(own_entries), own_entries)
                out[i : i + len(own_entries)] = own_entries

        self._over_rows(part, x, z, tiles)
        return out if factor == 1.0 else xp.multiply_(out, factor)

    def gradients(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        check_gradients(kernel, x)
        self._check_covered(kernel, x)
        factor, plain = unscale_kernel(kernel)
        if is_empty(x, z) or not has_compiled_slopes(plain):
            return self._tiles.gradients(kernel, x, z, v)
        # The tiles for products of bfloat16 pieces have no slopes.
        settings = replace(self._settings, precision="exact")
        tiles = Compiled.build(plain, z, x.dtype, settings, None)
        rows, cols, columns = (
            xp.contiguous(xp.detach(x)),
            xp.contiguous(xp.detach(z)),
            tiles.columns(v),
        )
        out = xp.empty((len(x), v.shape[1], x.shape[1]), xp.float64)

        def part(start: int, stop: int) -> None:
            tiles.plan.gradients(rows, start, stop, cols, columns, out[start:stop])

        self._over_rows(part, x, z, tiles)
        return xp.multiply_(out, factor)

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        threads, width = self._threads(), m + MIN_PART_ROWS
        packed = max(8 * d, piece_bytes(d))
        # 1. The columns: packed coordinates, coordinates in float64, and their part of v.
        columns = width * (packed + (d + t + 2) * 8) + m * d * itemsize
        # 2. A strip of entries for each thread, or the sums of gradients, if these are larger.
        strip = 8 * width * 8 + (1 << 20) + STRIP_ROWS * (packed + (10 * t + 2) * 8)
        sums = max(min(t * (d + 1), GRADIENT_SUMS), d + 1)
        strip = max(strip, (1 << 18) + GRADIENT_BYTES * sums)
        # 3. Sums over all columns: parts that wait to be added up, one for each thread, and the
        # total.
        sums = (threads * self._parts_per_thread(m * t) + threads + 1) * width * t * 8
        compiled = threads * strip + columns + sums
        # A kernel without compiled tiles is computed by tiles of NumPy within the same budget.
        return max(compiled, Tiled(threads=threads).workspace_bytes(m, d, t, itemsize))

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        return self._tiles.row_bytes(d, t, itemsize)

    @property
    def _tiles(self) -> Tiled:
        """Tiles of NumPy, for products without rows or columns.

        The workspace also covers these tiles: if a fit planned with this engine gets rows without
        tiles, `choose_covering` replaces it by `TiledEngine` within the same budget.
        """
        return Tiled(threads=self.threads)

    def _threads(self) -> int:
        return self.threads or default_threads()

    def _parts_per_thread(self, numbers: int) -> int:
        return PARTS_PER_THREAD if numbers * 8 <= PART_SUM_BYTES else 1

    def _check_covered(self, kernel: Kernel, x: Array) -> None:
        self.require(kernel, dtype=x.dtype, sparse=is_sparse(x))

    def _compiled_tiles(
        self, kernel: Kernel, x: Array, z: Array, diagonal: int | None
    ) -> tuple[float, Compiled]:
        factor, plain = unscale_kernel(kernel)
        # Compiled tiles do not check features, and a negative one would yield a wrong entry
        # silently.
        if plain.nonnegative:
            _refuse_negative(plain, x)
            _refuse_negative(plain, z)
        return factor, Compiled.build(plain, z, x.dtype, self._settings, diagonal)

    @property
    def _settings(self) -> TileSettings:
        return TileSettings(self.instructions, self._threads(), self.precision)

    def _over_rows(
        self, part: Callable[[int, int], None], x: Array, z: Array, tiles: Compiled
    ) -> None:
        threads = self._threads()
        bounds = bounds_of(len(x), MIN_PART_ROWS, threads * PARTS_PER_THREAD)
        # NumPy rounds tiles of another dtype, and flushes denormals only in workers.
        light = _is_light(x, z, threads == 1 and tiles.dtype == x.dtype)
        parts_done = run(threads, lambda ends: part(*ends), bounds, tiles.plan.stop, light=light)
        for _ in parts_done:
            pass


class PackedProduct:
    """K v of rows x, with columns and vectors packed once for all calls with few rows."""

    def __init__(self, engine: NativeEngine, kernel: Kernel, z: Array, v: Array) -> None:
        self._engine, self._kernel, self._z, self._v = engine, kernel, z, v
        self._packed: tuple[float, Compiled, Array] | None = None

    def __call__(self, x: Array) -> Float[Array, "b t"]:
        """Return K v, in float64."""
        # More rows are divided among workers, and an interruption then stops the plan of the call.
        # It also spoils it, so that such a plan cannot be kept.
        if not 0 < len(x) <= MIN_PART_ROWS or is_empty(x, self._z):
            return self._engine.matvec(self._kernel, x, self._z, self._v)
        factor, plain = unscale_kernel(self._kernel)
        if plain.nonnegative:
            _refuse_negative(plain, x)
        # Of two threads that pack at once, the later one wins, with equal numbers.
        if self._packed is None:
            _, tiles = self._engine._compiled_tiles(self._kernel, x, self._z, None)
            self._packed = factor, tiles, tiles.columns(self._v)
        factor, tiles, columns = self._packed
        out = xp.empty((len(x), self._v.shape[1]), xp.float64)
        tiles.plan.matvec(xp.contiguous(xp.detach(x)), 0, len(x), columns, out)
        return xp.multiply_(out, factor)


def _refuse_negative(kernel: Kernel, points: Array) -> None:
    """Raise the ValueError of the kernel if a feature is below 0."""
    if bool(points.min() < 0):  # needs less memory than an element-wise comparison
        kernel.prepare(points[xp.flatnonzero((points < 0).any(axis=1))[:1]], "left")


def _is_light(x: Array, z: Array, alone: bool) -> bool:
    """Return whether the calling thread computes the entries; `alone` if no others could help."""
    most_numbers = LIGHT_NUMBERS_ALONE if alone else LIGHT_NUMBERS
    return len(x) * len(z) * (x.shape[1] + ENTRY_FEATURES) <= most_numbers
