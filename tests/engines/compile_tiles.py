"""Compile fused tiles for GPUs that need not be there, and report each as a line of JSON.

A process of its own, because one that interprets Triton's programs cannot compile them.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gramian.engines._fused import profiles, tiles
from gramian.engines._fused.points import SYMMETRIC_TILES, options
from gramian.engines._fused.products import SYMMETRIC_TARGETS

PRODUCTS = ("ieee", "3xtf32", "3xbf16")

CASES: list[tuple[Any, dict[str, Any]]] = [
    (tiles.matvec, {"DISTANCE": "ieee", "PROFILE": profiles.matern32, "T": 1}),
    (tiles.matvec, {"DISTANCE": "3xtf32", "PROFILE": profiles.gaussian, "T": 16}),
    (tiles.matvec, {"DISTANCE": "3xbf16", "PROFILE": profiles.rational_quadratic, "T": 32}),
    (tiles.matvec, {"DISTANCE": "absolute", "PROFILE": profiles.l1_laplacian, "T": 1}),
    (tiles.matvec, {"DISTANCE": "difference", "PROFILE": profiles.laplacian, "T": 16}),
    (tiles.symmetric, {"DISTANCE": "3xbf16", "PROFILE": profiles.matern32, "T": 1}),
    (
        tiles.symmetric,  # in its first shape, with as many columns of v as there may be
        {"DISTANCE": "3xtf32", "PROFILE": profiles.gaussian, "T": SYMMETRIC_TARGETS}
        | options(SYMMETRIC_TILES[0]),
    ),
    (tiles.block, {"DISTANCE": "3xtf32", "PROFILE": profiles.matern52}),
]

TYPES = {"scale": "fp32", "shape": "fp32"} | dict.fromkeys(
    ("x", "z", "x_norms", "z_norms", "v"), "*fp32"
)
"""Types of arguments that are not 64-bit whole numbers."""

UNALIGNED = ("scale", "shape", "diagonal", "row_count", "col_count", "out_row")
"""Arguments that need not be multiples of 16."""


def compile_case(program: Any, constants: dict[str, Any], capability: int) -> dict[str, Any]:
    """Return what a test looks at: sizes, instructions, and offsets narrower than 64 bits."""
    product = constants["DISTANCE"] in PRODUCTS
    constants = {"DIAGONAL": True, "D": 16, "BD": 16, "BM": 64, "BN": 32} | constants
    launch = {"num_warps": 4, "num_stages": 2, "enable_fp_fusion": True}
    launch |= {key: constants.pop(key) for key in launch if key in constants}
    constants |= dict.fromkeys(("x_feature", "z_feature") if product else ("x_row", "z_row"), 1)
    if program is not tiles.block:
        constants["PRECISION"] = constants["DISTANCE"] if product else "3xtf32"
    types = TYPES | {"across": "*fp64", "out": "*fp32" if program is tiles.block else "*fp64"}
    names = program.arg_names
    source = ASTSource(
        program,
        {name: "constexpr" if name in constants else types.get(name, "i64") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {
            (i,): [["tt.divisibility", 16]]
            for i, name in enumerate(names)
            if name not in constants and name not in UNALIGNED
        },
    )
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=launch)
    return {
        "case": f"{program.fn.__name__} {constants['DISTANCE']} {constants['PROFILE'].fn.__name__}",
        "capability": capability,
        "cubin": len(made.asm["cubin"]),
        "shared": made.metadata.shared,
        "tensor": sorted(set(re.findall(r"mma\S*\.(tf32|bf16)\.", made.asm["ptx"]))),
        "narrow": re.findall(r"tt\.addptr .*xi32>.*", made.asm["ttir"]),
    }


if __name__ == "__main__":
    for program, constants in CASES:
        print(json.dumps(compile_case(program, constants, int(sys.argv[1]))))
