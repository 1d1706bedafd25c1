"""Kernels for the compiled tiles: their names, distances and precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from ... import _arrays as xp
from ..._arrays import Array
from ..._arrays.elementwise import NATIVE_MODULE
from ..._parallel.workers import run
from ...kernels import ChiSquared, Kernel, L1Laplacian, Radial, Tanimoto
from ...kernels._lengthscale import LengthscaleKernel
from ...kernels.base import kernels
from ...kernels.radial.base import product_error, remaining_error
from .._tiles.precision import FEW_FEATURES, ROUNDING_LIMIT, parameters
from .._tiles.sizes import PARTS_PER_THREAD, bounds_of
from .bfloat16 import Bfloat16Split, split_for

if TYPE_CHECKING:
    from .. import _native

Result = TypeVar("Result")

PACKED_COLUMNS = 48
"""Columns of a packed block, for all instruction sets."""

PART_NUMBERS = 1 << 16
"""Coordinates that a worker packs at least: fewer are not worth waking it."""

FEW_LIMIT = 1e-6
"""Largest error of a float32 entry that a product of rows may cause where features are few."""


def is_built() -> bool:
    """Return whether the compiled tiles came with this installation."""
    return find_spec(NATIVE_MODULE) is not None


def tiles() -> type[_native.Plan]:
    """Return the class of the compiled tiles."""
    plan: type[_native.Plan] = import_module(NATIVE_MODULE).Plan
    return plan


def instructions() -> list[str]:
    """Return the instruction sets of this machine that the compiled tiles support, best first.

    The list is empty if the tiles are not installed.
    """
    names: list[str] = import_module(NATIVE_MODULE).instructions() if is_built() else []
    return names


def has_split_products(isa: str) -> bool:
    """Return whether these instructions have products of bfloat16 pieces."""
    has_products: bool = import_module(NATIVE_MODULE).splits(isa)
    return has_products


def is_compiled(kernel: Kernel) -> bool:
    """Return whether compiled tiles exist for `kernel`, a kernel of `gramian.kernels`."""
    # A user's subclass may share the name of a kernel of this package but not its formula.
    if not type(kernel).__module__.startswith(Kernel.__module__.removesuffix("base")):
        return False
    return tile_name(kernel) in import_module(NATIVE_MODULE).kernels()


def has_compiled_slopes(kernel: Kernel) -> bool:
    """Return whether compiled tiles also compute the gradients of `kernel`; else NumPy does."""
    return tile_name(kernel) in import_module(NATIVE_MODULE).slopes()


def tile_name(kernel: Kernel) -> str:
    """Return the name of the tiles of a kernel, which may depend on the kernel's parameters."""
    if isinstance(kernel, Tanimoto):
        return f"tanimoto_{kernel.counts}"
    return "chi2" if isinstance(kernel, ChiSquared) else kernels.name_of(kernel)


def _in_parts(function: Callable[[int, int], Result], z: Array, threads: int) -> list[Result]:
    """Call ``function(start, stop)`` for ranges of rows of `z` in parallel; return the results.

    The results are in the order of the ranges, which start at multiples of `PACKED_COLUMNS`.
    """
    blocks, least_rows = (
        -(-len(z) // PACKED_COLUMNS),
        max(PART_NUMBERS // (PACKED_COLUMNS * z.shape[1]), 1),
    )
    parts = [
        (i * PACKED_COLUMNS, min(j * PACKED_COLUMNS, len(z)))
        for i, j in bounds_of(blocks, least_rows, threads * PARTS_PER_THREAD)
    ]
    if len(parts) == 1:
        return [function(*parts[0])]
    return list(run(threads, lambda part: function(*part), parts))


@dataclass(frozen=True)
class TileSettings:
    """Settings of compiled tiles: instruction set, threads and precision."""

    isa: str
    threads: int
    precision: str


@dataclass(frozen=True)
class _Columns:
    """Columns of a kernel matrix, with the offset and the scale that tiles apply to the columns."""

    z: Array
    origin: Array
    factor: Array
    settings: TileSettings

    def reach(self, power: int) -> float:
        """Return the largest sum over a column of a power of the absolute coordinates."""
        reach = import_module(NATIVE_MODULE).reach

        def part(i: int, j: int) -> float:
            value: float = reach(self.settings.isa, self.z[i:j], self.origin, self.factor, power)
            return value

        return max(_in_parts(part, self.z, self.settings.threads))


@dataclass(frozen=True)
class Compiled:
    """One kernel and the columns of a matrix, ready for the compiled tiles."""

    plan: _native.Plan
    dtype: xp.DType
    m: int

    @classmethod
    def build(
        cls, kernel: Kernel, z: Array, dtype: xp.DType, settings: TileSettings, diagonal: int | None
    ) -> Compiled:
        """Center, scale and pack the points z, in float64 if float32 would lose digits.

        Each point gives a column of the kernel matrix. Points are stored in pieces of bfloat16 if
        products of pieces are precise enough.

        Raise ValueError if the lengthscale is not a number yet, or is for another number
        of features.
        """
        if not isinstance(kernel, LengthscaleKernel):
            raise TypeError(f"there are no compiled tiles for {kernel!r}")
        z = xp.contiguous(xp.detach(z))
        factor = kernel.scaled(xp.ones((1, z.shape[1]), xp.float64))[0]
        # A kernel that is not stationary depends on the origin, so its rows are not shifted.
        origin = xp.to_float64(z.mean(axis=0)) if kernel.stationary else factor * 0
        columns = _Columns(z, origin, factor, settings)
        reach = 0.0
        if kernel.stationary:
            reach = columns.reach(2 if isinstance(kernel, Radial) else 1)
        split = _split(kernel, reach, columns, dtype)
        difference, tile = distances(kernel, reach, z.shape[1], dtype)
        # The pieces replace float32 products. Near pairs are recomputed inside the tile instead.
        if split is not None:
            difference, tile = False, xp.float32
        plan = tiles()(
            settings.isa,
            tile_name(kernel),
            # The definition of the Tanimoto kernel is a part of the name of its tiles.
            *_two([] if isinstance(kernel, Tanimoto) else parameters(kernel)),
            abs(kernel.scale) if isinstance(kernel, Radial) else 1.0,
            difference,
            tile == xp.float32,
            z,
            origin,
            factor,
            # The diagonal as numbers: a distance of 0 would come out as rounding.
            None if diagonal is None else xp.cast(kernel.diag(z), tile),
            diagonal or 0,
            0 if split is None else split.pieces,
            0.0 if split is None else split.near,
        )
        _in_parts(lambda i, j: plan.pack(z, i, j), z, settings.threads)
        return cls(plan, tile, len(z))

    def columns(self, v: Array) -> Array:
        """Return numbers (m, t) in the layout of the tiles: (t, width), padded with zeros."""
        if v.shape[0] != self.m:
            raise ValueError(
                f"v must have one row for each of the {self.m} columns, not {v.shape[0]}"
            )
        packed = xp.zeros((v.shape[1], self.plan.width), self.dtype)
        packed[:, : self.m] = xp.detach(v).T
        return packed

    def rowwise(self, values: Array | None) -> Array | None:
        """Return row-aligned numbers as a C-contiguous array in the dtype of the tiles."""
        return None if values is None else xp.contiguous(xp.cast(xp.detach(values), self.dtype))


def _split(
    kernel: Kernel, reach: float, columns: _Columns, dtype: xp.DType
) -> Bfloat16Split | None:
    if not isinstance(kernel, Radial) or dtype != xp.float32:
        return None
    if not has_split_products(columns.settings.isa):
        return None
    d, precision = columns.z.shape[1], columns.settings.precision
    return split_for(kernel, reach, lambda: columns.reach(4), d, precision)


def distances(kernel: Kernel, reach: float, d: int, dtype: xp.DType) -> tuple[bool, xp.DType]:
    """Return whether distances are computed from differences, and the dtype of the tiles.

    `reach` is the largest squared norm of a centered column, in lengthscales, or its l1 norm for
    the l1 Laplacian. It also bounds the rows that matter: only pairs of near points have large
    entries.

    Distances from norms and a product (a sum of maxima, for the l1 distance) are fastest and lose
    digits by cancellation, see `Radial.rounding`. Differences lose only the rounding of the
    coordinates: no kernel changes by more than r does, so that the error of an entry is at most eps
    times the norm.
    """
    if not isinstance(kernel, Radial | L1Laplacian):
        return False, dtype
    norm = reach**0.5 if isinstance(kernel, Radial) else reach
    # The order is the order of cost: a product, differences, then both in float64.
    for tile in (dtype, xp.float64):
        eps = xp.finfo(tile).eps
        if _product_will_do(kernel, reach, d, eps, xp.finfo(dtype).eps):
            return False, tile
        if eps * norm <= ROUNDING_LIMIT:
            return True, tile
    return True, xp.float64


def _product_will_do(
    kernel: Radial | L1Laplacian, reach: float, d: int, eps: float, entry_eps: float
) -> bool:
    """Return whether a product of precision `eps` suffices for entries of precision `entry_eps`."""
    has_few_features = d <= FEW_FEATURES
    if isinstance(kernel, L1Laplacian):
        error = product_error(eps, 2 * reach, d)
    else:
        error = product_error(eps, abs(kernel.scale) * reach, d)
        if kernel.sharp:
            # With few features, differences cost little and keep the digits that a kink would
            # magnify.
            return not has_few_features and remaining_error(error) <= ROUNDING_LIMIT
        error *= kernel.slope
    # Differences cost little with few features, so a product must be more precise to be worth it.
    limit = FEW_LIMIT if has_few_features else ROUNDING_LIMIT
    return error <= limit * entry_eps / xp.finfo(xp.float32).eps


def _two(values: list[float]) -> tuple[float, float]:
    """Pad at most two numbers with zeros to exactly two numbers."""
    first, second = values + [0.0] * (2 - len(values))
    return first, second
