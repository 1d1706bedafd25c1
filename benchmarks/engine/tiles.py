"""Compiled tiles against the floor of their arithmetic, before and after a change of them.

`GRAMIAN_BEFORE` names an extension module that was built from an earlier commit; it takes turns
with the one that is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import matmul
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.engines._compiled.kernels import NATIVE_MODULE
from gramian.kernels import Kernel
from gramian.operators import Engine, KernelOperator, NativeEngine, TiledEngine, compiled_tiles

from ..lib.process import in_fresh_process
from ..lib.results import Row, markdown, shown, write
from ..lib.timing import clock

M, FEATURES = 5_000, (1, 4, 18, 90, 784)
SLOTS_PER_CELL = 2e8
"""Vectors of multiplications and additions of one product: a twentieth of a second."""

RATES = {("AuthenticAMD", 25): 3.66e9, ("AuthenticAMD", 26): 8.46e9, ("GenuineIntel", 6): 7.1e9}
"""Fused multiplications and additions of 64 bytes a second and core, by vendor and family, measured
on the processors at hand: a Zen 4 at 3.67 GHz, which begins one a cycle, a Zen 5 at 4.23 GHz and a
Xeon, which begin two."""

NOTES = f"""\
10^9 entries a second of one thread (CPU time) of products with n x {M:,} entries through
`KernelOperator`, float32, rows normal, lengthscale sqrt(d), or d for the l1 distance; the best of
the rounds, which `before` and `after` take in turns, on a machine that others use.

`floor`: entries that the units for fused multiplications and additions allow, which begin
8.46 * 10^9 vectors of 16 numbers a second on the Zen 5 at hand (two a cycle; 3.66 * 10^9 on a Zen
4, one a cycle). 16 entries take d of them for the distance, 5 for the polynomial of the
exponential, and t for each product with t columns (`normal` has two): d + 5 + t, or d + 5 + 2 t.
Everything else has other units there: additions, minima and maxima (of the l1 distance, too), the
scaling by a power of two, loads, and stores. `share` is `after` over `floor`; there is none for
processors that were not measured.

Tanimoto and chi-squared rows are counts, a twentieth of them above zero, or shares of histograms;
1,000 columns; `torch` are tiles of torch, on dense rows, which `native` replaces, and `sparse` on
the same rows in CSR form."""


@dataclass(frozen=True)
class Cell:
    """One product."""

    kernel: str
    product: str
    t: int
    d: int

    @property
    def made(self) -> Kernel:
        scale = float(self.d) if self.kernel == "l1_laplacian" else self.d**0.5
        return kernels.make(self.kernel, lengthscale=scale)

    @property
    def slots(self) -> int:
        """Vectors of fused multiplications and additions for 16 entries."""
        return self.d + 5 + self.t * (1 + (self.product == "normal"))

    def works(self) -> tuple[Callable[[], Any], float]:
        n = max(int(SLOTS_PER_CELL * 16 / self.slots / M), 96)
        rng = RandomStream(0)
        x, z, v, y = (
            rng.standard_normal(shape, np.float32)
            for shape in ((n, self.d), (M, self.d), (M, self.t), (n, self.t))
        )
        K = KernelOperator(self.made, x, z, NativeEngine(1))
        if self.product == "normal":
            return lambda: K.normal(v, targets=y), n * M
        return lambda: K @ v, n * M


CELLS = [
    Cell("gaussian", product, t, d)
    for product in ("matvec", "normal")
    for t in (1, 10)
    for d in FEATURES
] + [Cell("l1_laplacian", product, 1, d) for product in ("matvec", "normal") for d in FEATURES]

SHARED: dict[str, tuple[Kernel, str]] = {
    "tanimoto, bits": (kernels.Tanimoto(), "bits"),
    "tanimoto, counts": (kernels.Tanimoto(), "counts"),
    "tanimoto, minmax": (kernels.Tanimoto(counts="minmax"), "counts"),
    "chi_squared": (kernels.ChiSquared(), "shares"),
}


def rates_of(module: str | None, cells: list[Cell], rounds: int) -> list[float]:
    """Return 10^9 entries a second of each cell, in a process that has loaded this module."""
    set_blas_threads(1)
    if module is not None:
        spec = importlib.util.spec_from_file_location(NATIVE_MODULE, module)
        if spec is None or spec.loader is None:
            raise ImportError(f"{module} is no extension module")
        sys.modules[NATIVE_MODULE] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NATIVE_MODULE])
    found = []
    for cell in cells:
        work, entries = cell.works()
        found.append(entries / best(work, rounds) / 1e9)
    return found


def best(work: Callable[[], Any], rounds: int) -> float:
    """Return the least CPU seconds of some rounds, after one that is not counted."""
    work()
    least = float("inf")
    for _ in range(rounds):
        with clock() as seconds:
            work()
        least = min(least, seconds.cpu)
    return least


def floor_table(cells: list[Cell], turns: int, rounds: int) -> list[Row]:
    before = os.environ.get("GRAMIAN_BEFORE")
    modules = {"before": before, "after": None} if before else {"after": None}
    most = {name: [0.0] * len(cells) for name in modules}
    for _ in range(turns):
        for name, module in modules.items():
            found = in_fresh_process(rates_of, module, cells, rounds)
            most[name] = [max(pair) for pair in zip(most[name], found, strict=True)]
    rate = RATES.get(_processor())
    rows = []
    for i, cell in enumerate(cells):
        row: Row = {"kernel": cell.kernel, "product": cell.product, "t": cell.t, "d": cell.d}
        row |= {name: found[i] for name, found in most.items()}
        if rate is not None:
            row["floor"] = rate * 16 / cell.slots / 1e9
            row |= {f"share {name}": found[i] / row["floor"] for name, found in most.items()}
        if before:
            row["after / before"] = row["after"] / row["before"]
        rows.append(shown(row))
    return rows


def _processor() -> tuple[str, int]:
    """Return the vendor and the family of the processor, as Linux says them."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    said = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    return said.get("vendor_id", ""), int(said.get("cpu family", 0))


def shared_table(rounds: int, scale: int) -> list[Row]:
    rows = []
    for name, (kernel, kind) in SHARED.items():
        for d in (16, 128, 1024):
            for dtype in (np.float32, np.float64):
                x, z = (
                    xp.cast(draw(n, d, kind), dtype)
                    for n in (max(1_000_000 // d // scale, 96), 1_000)
                )
                v = xp.cast(RandomStream(0).standard_normal((len(z), 1), np.float32), dtype)
                sides: dict[str, Engine] = {}
                sides |= {"torch": TiledEngine(threads=1), "native": NativeEngine(1)}
                row: Row = {"kernel": name, "d": d, "dtype": str(dtype).removeprefix("torch.")}
                for engine, made in sides.items():
                    K = KernelOperator(kernel, x, z, made)
                    row[engine] = len(x) * len(z) / best(partial(matmul, K, v), rounds) / 1e9
                if kernel.sparse_ok:
                    K = KernelOperator(kernel, x.to_sparse_csr(), z, sides["torch"])
                    row["sparse"] = len(x) * len(z) / best(partial(matmul, K, v), rounds) / 1e9
                row["native / torch"] = row["native"] / row["torch"]
                rows.append(shown(row))
    return rows


def draw(n: int, d: int, kind: str) -> np.ndarray:
    rng = RandomStream(n)
    if kind == "shares":
        shares = rng.random((n, d), np.float32)
        return shares / shares.sum(axis=1, keepdims=True)
    counts = xp.cast(1 + rng.integers(2 if kind == "bits" else 4 - 1, size=(n, d)), np.float32)
    return counts * (rng.random((n, d), np.float32) < 0.05)


def main(options: argparse.Namespace) -> None:
    if not compiled_tiles():
        print("skipped: the compiled tiles are not installed (see `gramian info`)")
        return
    set_blas_threads(1)
    cells = [cell for cell in CELLS if cell.d in (4, 18)] if options.quick else CELLS
    turns, rounds = (1, 2) if options.quick else (2, 4)
    tables = {
        "Shares of the floor": floor_table(cells, turns, rounds),
        "Kernels of what rows share": shared_table(rounds, 8 if options.quick else 1),
    }
    if options.quick:
        print(*(markdown(table) for table in tables.values()), sep="\n\n")
    else:
        write("tiles", tables, NOTES)
