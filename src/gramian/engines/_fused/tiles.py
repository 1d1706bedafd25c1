"""Programs that compute a tile of a kernel matrix and use it at once: a product, or the matrix.

There is one function for the entries of a tile, whatever the kernel (`PROFILE`, inlined), and
however distances are computed (`DISTANCE`):

- ``"ieee"``, ``"3xtf32"``, ``"3xbf16"``: from norms and a matrix product of rows. The last two
  split each number in two numbers of fewer digits, which the tensor cores multiply, and omit the
  product of the two small parts.
- ``"difference"``, ``"absolute"``: sums of squared or absolute differences, one feature after the
  other.

Rows, columns and features are padded to whole tiles, so that only writes to the matrix itself
are masked. Numbers of rows and all offsets are 64-bit. A product is summed in
float32 within a tile and in float64 beyond it; there are no atomic operations, and each run gives
the same bits.
"""

from __future__ import annotations

from typing import no_type_check

import triton
import triton.language as tl

# Whether Triton's interpreter runs these programs; a global name has to be a constexpr for them.
IS_INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)

# A sum across the threads of a tile takes as long as the tile's entries. With one target, each
# thread therefore adds up its own entries of several tiles first.
TILES_PER_SUM = tl.constexpr(8)

# Rows of at most this many features stay in registers, where the loop over them is unrolled.
UNROLLED_FEATURES = tl.constexpr(4)


@triton.jit
@no_type_check
def round_off(a, BITS: tl.constexpr):
    """Round a float32 number to nearest, so that its last `BITS` bits are zero."""
    half: tl.constexpr = 1 << (BITS - 1)
    # Half of the last kept bit is added to the bits themselves, so the mask rounds to nearest.
    return ((a.to(tl.int32, bitcast=True) + half) & -(2 * half)).to(tl.float32, bitcast=True)


@triton.jit
@no_type_check
def narrow_dot(a, b, total, NARROW: tl.constexpr):
    """Return a @ b + total on the tensor cores, for numbers rounded to their input format."""
    if NARROW == "bf16" and not IS_INTERPRETED:  # which would multiply the bits as whole numbers
        a, b = a.to(tl.bfloat16), b.to(tl.bfloat16)
    return tl.dot(a, b, total, input_precision="tf32")


@triton.jit
@no_type_check
def dot(a, b, total, PRECISION: tl.constexpr):
    """Return a @ b + total in the chosen precision; the small terms are added first."""
    if PRECISION == "ieee":
        return tl.dot(a, b, total, input_precision="ieee")
    narrow: tl.constexpr = "bf16" if PRECISION == "3xbf16" else "tf32"
    bits: tl.constexpr = 16 if PRECISION == "3xbf16" else 13
    a_high, b_high = round_off(a, bits), round_off(b, bits)
    # Small terms come first: the large product would absorb their digits one by one.
    total = narrow_dot(round_off(a - a_high, bits), b_high, total, narrow)
    total = narrow_dot(a_high, round_off(b - b_high, bits), total, narrow)
    return narrow_dot(a_high, b_high, total, narrow)


@triton.jit
@no_type_check
def from_differences(
    x, z, x_row, x_feature, z_row, z_feature, rows, cols,
    DISTANCE: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Return squared distances, or l1 distances, of some rows of x and z."""
    s = tl.zeros((BM, BN), tl.float32)
    x += rows * x_row
    z += cols * z_row
    if D <= UNROLLED_FEATURES:
        for k in tl.static_range(D):
            delta = tl.load(x + k * x_feature)[:, None] - tl.load(z + k * z_feature)[None, :]
            s += tl.abs(delta) if DISTANCE == "absolute" else delta * delta
    else:
        for _ in range(D):
            delta = tl.load(x)[:, None] - tl.load(z)[None, :]
            s += tl.abs(delta) if DISTANCE == "absolute" else delta * delta
            x += x_feature
            z += z_feature
    return s


@triton.jit
@no_type_check
def from_products(
    x, z, x_row, x_feature, z_row, z_feature, rows, cols,
    DISTANCE: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Return inner products of some rows of x and z."""
    s = tl.zeros((BM, BN), tl.float32)
    features = tl.arange(0, BD).to(tl.int64)
    x += rows[:, None] * x_row + features[None, :] * x_feature
    z += cols[None, :] * z_row + features[:, None] * z_feature
    # Rows are padded with zeros to whole blocks of features, so that no load needs a mask.
    for _ in range(0, D, BD):
        s = dot(tl.load(x), tl.load(z), s, DISTANCE)
        x += BD * x_feature
        z += BD * z_feature
    return s


@triton.jit
@no_type_check
def entries(
    x, z, x_norms, z_norms, x_row, x_feature, z_row, z_feature, rows, cols, scale, shape, diagonal,
    PROFILE: tl.constexpr, DISTANCE: tl.constexpr, DIAGONAL: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Return a tile of kernel entries; the entry of a row with itself is exactly 1."""
    if DISTANCE == "difference" or DISTANCE == "absolute":
        s = scale * from_differences(
            x, z, x_row, x_feature, z_row, z_feature, rows, cols, DISTANCE, D, BM, BN
        )
    else:
        s = from_products(
            x, z, x_row, x_feature, z_row, z_feature, rows, cols, DISTANCE, D, BM, BN, BD
        )
        norms = tl.load(x_norms + rows)[:, None] + tl.load(z_norms + cols)[None, :]
        # The stored norms have the scale of the kernel in them already, and the product has not.
        s = norms - 2.0 * scale * s
    K = PROFILE(s, shape)
    if DIAGONAL:
        # Rounding leaves a distance of a point to itself, which a kernel with a kink magnifies.
        K = tl.where(cols[None, :] == rows[:, None] + diagonal, 1.0, K)
    return K


@triton.jit
@no_type_check
def times(
    K, v, v_target, cols, PRECISION: tl.constexpr, T: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    """Return the product of a tile of BM rows with the rows of v for its columns."""
    if T == 1:
        # Tensor cores multiply at least 16 columns: for one, a sum over the tile is cheaper.
        return tl.sum(K * tl.load(v + cols)[None, :], axis=1)[:, None]
    targets = tl.arange(0, T).to(tl.int64)
    v_tile = tl.load(v + targets[None, :] * v_target + cols[:, None])
    return dot(K, v_tile, tl.zeros((BM, T), tl.float32), PRECISION)


@triton.jit(do_not_specialize=["diagonal"])
@no_type_check
def matvec(
    x, z, x_norms, z_norms, v, out, x_row, x_feature, z_row, z_feature, v_target, out_split,
    columns, span, scale, shape, diagonal,
    PROFILE: tl.constexpr, DISTANCE: tl.constexpr, PRECISION: tl.constexpr, DIAGONAL: tl.constexpr,
    D: tl.constexpr, T: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Write K v for BM rows and a span of the columns; v is (T, columns), out (splits, rows, T)."""
    # Offsets are 64-bit because rows times features exceed 2^31 in large blocks.
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    start = tl.program_id(1).to(tl.int64) * span
    targets = tl.arange(0, T).to(tl.int64)
    total = tl.zeros((BM, T), tl.float64)
    end = tl.minimum(start + span, columns)
    if T == 1:
        for first in range(start, end, BN * TILES_PER_SUM):
            products = tl.zeros((BM, BN), tl.float32)
            for j in range(first, tl.minimum(first + BN * TILES_PER_SUM, end), BN):
                cols = j + tl.arange(0, BN)
                K = entries(
                    x, z, x_norms, z_norms, x_row, x_feature, z_row, z_feature, rows, cols,
                    scale, shape, diagonal, PROFILE, DISTANCE, DIAGONAL, D, BM, BN, BD,
                )  # fmt: skip
                products += K * tl.load(v + cols)[None, :]
            total += tl.sum(products, axis=1)[:, None].to(tl.float64)
    else:
        for j in range(start, end, BN):
            cols = j + tl.arange(0, BN)
            K = entries(
                x, z, x_norms, z_norms, x_row, x_feature, z_row, z_feature, rows, cols,
                scale, shape, diagonal, PROFILE, DISTANCE, DIAGONAL, D, BM, BN, BD,
            )  # fmt: skip
            total += times(K, v, v_target, cols, PRECISION, T, BM).to(tl.float64)
    at = tl.program_id(1).to(tl.int64) * out_split + rows[:, None] * T + targets[None, :]
    tl.store(out + at, total)


@triton.jit(do_not_specialize=["diagonal", "first"])
@no_type_check
def symmetric(
    x, z, x_norms, z_norms, v, out, across, x_row, x_feature, z_row, z_feature, v_target, out_split,
    across_split, first, columns, span, scale, shape, diagonal,
    PROFILE: tl.constexpr, DISTANCE: tl.constexpr, PRECISION: tl.constexpr, DIAGONAL: tl.constexpr,
    D: tl.constexpr, T: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Write the contribution to K v of BM rows, from `first` on, and a span of later columns.

    Tiles left of the diagonal are skipped. For tiles right of it, K v_j is added to the sums of the
    rows, `out`, (splits, rows, T), and K' v_i to the sums of the columns, `across`, (tiles of rows,
    columns, T). Tiles on the diagonal, which are whole squares, are added to the rows only.
    """
    top = first + tl.program_id(0).to(tl.int64) * BM
    rows = top + tl.arange(0, BM)
    start = first + tl.program_id(1).to(tl.int64) * span
    end = tl.minimum(start + span, columns)
    targets = tl.arange(0, T).to(tl.int64)
    across += tl.program_id(0).to(tl.int64) * across_split + targets[None, :]
    # Programs skip the tiles left of their diagonal, but `across` is uninitialised and summed
    # whole.
    for j in range(start, tl.minimum(end, top + BM), BN):
        cols = j - first + tl.arange(0, BN)
        tl.store(across + cols[:, None] * T, tl.zeros((BN, T), tl.float64))
    total = tl.zeros((BM, T), tl.float64)
    for j in range(tl.maximum(start, top), end, BN):
        cols = j + tl.arange(0, BN)
        K = entries(
            x, z, x_norms, z_norms, x_row, x_feature, z_row, z_feature, rows, cols,
            scale, shape, diagonal, PROFILE, DISTANCE, DIAGONAL, D, BM, BN, BD,
        )  # fmt: skip
        total += times(K, v, v_target, cols, PRECISION, T, BM).to(tl.float64)
        # Each tile serves both sides, so an entry off the diagonal is evaluated once.
        part = times(tl.trans(K), v, v_target, rows, PRECISION, T, BN).to(tl.float64)
        # A square on the diagonal has both of its triangles in the rows' sums. The loop above wrote
        # zeros.
        beyond = (cols >= top + BM)[:, None]
        tl.store(across + (cols - first)[:, None] * T, part, mask=beyond)
    at = tl.program_id(1).to(tl.int64) * out_split + (rows - first)[:, None] * T + targets[None, :]
    tl.store(out + at, total)


@triton.jit(do_not_specialize=["row_count", "col_count", "out_row", "diagonal"])
@no_type_check
def block(
    x, z, x_norms, z_norms, out, x_row, x_feature, z_row, z_feature, out_row,
    row_count, col_count, columns, scale, shape, diagonal,
    PROFILE: tl.constexpr, DISTANCE: tl.constexpr, DIAGONAL: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Write one tile of K, row after row of tiles."""
    tile, across = tl.program_id(0).to(tl.int64), columns // BN
    rows = tile // across * BM + tl.arange(0, BM)
    cols = tile % across * BN + tl.arange(0, BN)
    K = entries(
        x, z, x_norms, z_norms, x_row, x_feature, z_row, z_feature, rows, cols,
        scale, shape, diagonal, PROFILE, DISTANCE, DIAGONAL, D, BM, BN, BD,
    )  # fmt: skip
    inside = (rows < row_count)[:, None] & (cols < col_count)[None, :]
    tl.store(out + rows[:, None] * out_row + cols[None, :], K, mask=inside)
