"""Gradients of a predictor: pairs per second beside `normal` and torch tiles, and their error."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.kernels import Kernel
from gramian.operators import KernelOperator, NativeEngine, TiledEngine, compiled_tiles

from ..lib.results import markdown, shown, write
from ..lib.timing import interleaved

M = 1_000
ROWS = {8: 16_000, 32: 8_000, 128: 4_000}
LENGTHSCALES: dict[str, Callable[[int], float]] = {
    "gaussian": lambda d: d**0.5,
    "laplacian": lambda d: 2 * d**0.5,
    "l1_laplacian": float,
}
SIDE = 1536
CHECKED = 200
SLOPE = {"gaussian": 12, "laplacian": 19, "l1_laplacian": 12}
NOTES = f"""\
Pairs per second, in 10^9, of the gradients of t predictors with {M:,} columns at n rows, x and z
normal, float32, one thread, CPU seconds. Contenders take turns in one process; least of the rounds.

- native, torch: `KernelOperator.gradients` with `NativeEngine` and with `TiledEngine`, whose tiles
  of the Laplacian are in float64.
- normal: K' (K v) with one v of the same kernel and rows by `NativeEngine`, and how much of its
  rate the gradients reach.
- limit: what as many multiply-adds a second allow as the product of two float32 matrices of
  {SIDE:,} rows by torch has, in turns with the others. For the Euclidean distance d + t (d + 1) of
  them and {SLOPE["gaussian"]} for the slope, {SLOPE["laplacian"]} with a root; for the l1 distance
  d + 2 t d and {SLOPE["l1_laplacian"]}: a maximum, and two comparisons, on the units that multiply,
  with the sums beside them on others. The fraction of it that native reaches.
- error: the largest difference from autograd in float64 on {CHECKED} rows, over the largest
  gradient."""


def operator(
    name: str, d: int, z: np.ndarray, engine: NativeEngine | TiledEngine
) -> KernelOperator:
    kernel = kernels.make(name, lengthscale=LENGTHSCALES[name](d))
    return KernelOperator(kernel, z[:1], z, engine)


def operations(name: str, d: int, t: int) -> int:
    """Return how many multiply-adds, or operations in their place, a pair costs."""
    return (d + 2 * t * d if name == "l1_laplacian" else d + t * (d + 1)) + SLOPE[name]


def by_autograd(kernel: Kernel, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return gradients in float64 from all differences at once, by torch."""
    x, z, v = (torch.from_numpy(xp.to_float64(part)) for part in (x, z, v))
    x.requires_grad_()
    apart = (x[:, None] - z) / kernel.get_params()["lengthscale"]
    name = kernel.to_dict()["name"]
    if name == "l1_laplacian":
        K = torch.exp(-apart.abs().sum(dim=2))
    else:
        s = apart.square().sum(dim=2)
        K = torch.exp(-s / 2) if name == "gaussian" else torch.exp(-s.sqrt())
    f = K @ v
    each = [torch.autograd.grad(f[:, c].sum(), x, retain_graph=True)[0] for c in range(v.shape[1])]
    return np.stack([gradient.numpy() for gradient in each], axis=1)


def measured(name: str, d: int, t: int, rounds: int, scale: int) -> dict[str, Any]:
    rng = RandomStream(0)
    n = ROWS[d] // scale
    x, z, v = (rng.standard_normal(shape, np.float32) for shape in ((n, d), (M, d), (M, t)))
    native, plain = (
        operator(name, d, z, NativeEngine(1)),
        operator(name, d, z, TiledEngine(threads=1)),
    )
    whole = KernelOperator(native.kernel, x, z, NativeEngine(1))
    few, square = max(n // 8, 1), rng.standard_normal((SIDE, SIDE), np.float32)
    works: dict[str, Callable[[], Any]] = {
        "native": lambda: native.gradients(x, v),
        "normal": lambda: whole.normal(v[:, :1]),
        "torch": lambda: plain.gradients(x[:few], v),
        "square": lambda: square @ square,
    }
    seconds = interleaved(works, rounds=rounds, slow=("torch",))
    pairs = {"native": n * M, "normal": n * M, "torch": few * M, "square": SIDE**3}
    rates = {what: pairs[what] / spent.cpu / 1e9 for what, spent in seconds.items()}
    limit = rates["square"] / operations(name, d, t)
    truth = by_autograd(native.kernel, x[:CHECKED], z, v)
    error = float(
        np.abs(xp.to_float64(native.gradients(x[:CHECKED], v)) - truth).max() / np.abs(truth).max()
    )
    return {
        "kernel": name, "d": d, "t": t, "native": rates["native"], "torch": rates["torch"],
        "native / torch": rates["native"] / rates["torch"], "normal": rates["normal"],
        "of normal": rates["native"] / rates["normal"], "limit": limit,
        "of the limit": rates["native"] / limit, "error": f"{error:.1e}",
    }  # fmt: skip


def main(options: argparse.Namespace) -> None:
    if not compiled_tiles():
        print("skipped: the compiled tiles are not installed (see `gramian info`)")
        return
    rounds, scale = (2, 8) if options.quick else (7, 1)
    set_blas_threads(1)
    table = [
        shown(measured(name, d, t, rounds, scale))
        for t in (1, 8)
        for name in LENGTHSCALES
        for d in (tuple(ROWS)[:2] if options.quick else tuple(ROWS))
    ]
    tables = {"Gradients of a predictor, float32": table}
    if options.quick:
        print(*(markdown(each) for each in tables.values()), sep="\n\n")
    else:
        write("gradients", tables, NOTES)
