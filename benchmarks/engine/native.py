"""Kernel evaluations per second of the compiled tiles, against torch tiles, KeOps, scikit-learn."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.operators import Engine, KernelOperator, NativeEngine, TiledEngine, compiled_tiles

from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.products import CHUNK, Case, M, exact, keops
from ..lib.results import markdown, shown, write
from ..lib.timing import interleaved

ROWS = {1: 40_000, 4: 40_000, 18: 20_000, 90: 10_000, 784: 4_000}
FMA_PER_SECOND = 7.1e9
KEOPS_PAIRS = 4_000_000_000  # times features
STUDY = {4: 6.92, 18: 3.07, 90: 0.86, 784: 0.099}
NOTES = f"""\
Pairs per second, in 10^9, of one product with n x {M:,} kernel entries; x and z normal, lengthscale
sqrt(d). `one core`: n {M:,} / CPU seconds with one thread. `two cores`: n {M:,} / wall seconds with
two. Contenders take turns in one process; least of the rounds.

- native: `NativeEngine`; torch: `TiledEngine`, both through `KernelOperator`.
- sklearn: `sklearn.metrics.pairwise`, {CHUNK:,} rows at a time, and `@`.
- KeOps: `LazyTensor` of pykeops on the CPU, where it is installed; of fewer rows from d = 90 on.
- study: float32 rates of the hand-written tiles that the compiled ones were modelled on, on an
  idle machine of the same kind.
- limit: what {FMA_PER_SECOND:.2g} vector operations per second allow (two a cycle, measured on an
  idle machine of the same kind), with d + 11 + t of them for 16 pairs in float32, d + 17 + t for 8
  in float64, and t more in `normal`; the fraction of it that native reaches.

`error` is the relative distance (Frobenius norm) to the product in float64 from differences; in the
table of entries it is the largest error of any of them."""

PAIRWISE: dict[str, Callable[[Any, Any, float], Any]] = {
    "gaussian": lambda x, z, s: pairwise.rbf_kernel(x, z, gamma=0.5 / s**2),
    "l1_laplacian": lambda x, z, s: pairwise.laplacian_kernel(x, z, gamma=1 / s),
}


def ours(case: Case, engine: Engine) -> np.ndarray:
    K = KernelOperator(case.kernel, case.x, case.z, engine)
    return K.normal(case.v, targets=case.y) if case.normal else K @ case.v


def sklearn(case: Case, kernel: str) -> np.ndarray:
    x, z, v, y = (a for a in (case.x, case.z, case.v, case.y))
    out = []
    for i in range(0, len(x), CHUNK):
        K = PAIRWISE[kernel](x[i : i + CHUNK], z, case.lengthscale)
        u = K @ v
        out.append(K.T @ (u - y[i : i + CHUNK]) if case.normal else u)
    return sum(out[1:], out[0]) if case.normal else np.concatenate(out)


def rates(
    case: Case, rounds: int, kernel: str = "", isa: str = "best", precision: str = "auto"
) -> dict[str, float]:
    """Measure one case; with scikit-learn, if it has the `kernel` of that name."""
    row: dict[str, float] = {}
    for threads, what in ((1, "one core"), (2, "two cores")):
        native = NativeEngine(threads, isa, precision)
        engines = {"native": native, "torch": TiledEngine(threads=threads)}
        works: dict[str, Callable[[], Any]] = {
            name: lambda engine=engine: ours(case, engine) for name, engine in engines.items()
        }
        if kernel in PAIRWISE and threads == 1:
            works["sklearn"] = lambda: sklearn(case, kernel)
        fewer = few_rows(case)
        if kernel == "gaussian" and find_spec("pykeops"):
            keops(few_rows(case, 10))  # which it compiles first
            works["KeOps"] = lambda threads=threads, fewer=fewer: keops_on(fewer, threads)
        for name, seconds in interleaved(works, rounds=rounds, slow=("sklearn", "KeOps")).items():
            spent = seconds.cpu if threads == 1 else seconds.wall
            pairs = fewer.pairs if name == "KeOps" else case.pairs
            row[f"{name}, {what}"] = pairs / spent / 1e9
        for other in ("torch", "KeOps"):
            if f"{other}, {what}" in row:
                row[f"native / {other}, {what}"] = row[f"native, {what}"] / row[f"{other}, {what}"]
    row["two cores / one core"] = row["native, two cores"] / row["native, one core"]
    return row


def few_rows(case: Case, most: int = KEOPS_PAIRS) -> Case:
    """Return the case with fewer rows: where there are many features KeOps takes minutes."""
    n = min(len(case.x), max(most // (M * case.x.shape[1]), 10))
    return replace(case, x=case.x[:n], y=case.y[:n])


def keops_on(case: Case, threads: int) -> np.ndarray:
    with threadpool_limits(threads, user_api="openmp"):
        return keops(case)


def limit(case: Case) -> float:
    """Return 10^9 pairs per second that the arithmetic units of one core allow."""
    lanes, profile = (16, 11) if case.x.dtype == np.float32 else (8, 17)
    d, t = case.x.shape[1], case.v.shape[1]
    return FMA_PER_SECOND * lanes / (d + profile + t * (1 + case.normal)) / 1e9


def gaussian_table(dims: tuple[int, ...], rounds: int, scale: int) -> list[dict[str, Any]]:
    table = []
    for normal in (False, True):
        for dtype in (np.float32, np.float64):
            for t in (1, 10):
                for d in dims:
                    case = Case.draw(ROWS[d] // scale, d, t, dtype, normal)
                    measured = rates(case, rounds, "gaussian")
                    first = t == 1 and not normal and dtype == np.float32
                    row = {
                        "product": "normal" if normal else "matvec",
                        "dtype": str(dtype).removeprefix("torch."),
                        "t": t,
                        "d": d,
                        **measured,
                        "study": STUDY.get(d) if first else None,
                        "of the limit": measured["native, one core"] / limit(case),
                        "error": error(case),
                    }
                    table.append(shown(row))
    return table


def error(case: Case) -> float:
    few = Case(case.x[:500], case.z, case.v, case.y[:500], case.kernel, case.lengthscale, False)
    truth = exact(few)
    return float(xp.norm(xp.to_float64(ours(few, NativeEngine(1))) - truth) / xp.norm(truth))


def kernel_table(dims: tuple[int, ...], rounds: int, scale: int) -> list[dict[str, Any]]:
    table = []
    for name in kernels.names():
        if name in ("gaussian", "matern12", "linear"):
            continue
        for d in dims:
            case = Case.draw(ROWS[d] // scale, d, 1, np.float32, False, kernel=name)
            if name == "l1_laplacian":
                case.lengthscale = float(d)
                case.kernel = kernels.make(name, lengthscale=case.lengthscale)
            table.append(shown({"kernel": name, "d": d, **rates(case, rounds, name)}))
    return table


def instruction_table(dims: tuple[int, ...], rounds: int, scale: int) -> list[dict[str, Any]]:
    table = []
    for isa in compiled_tiles():
        for d in dims:
            case = Case.draw(ROWS[d] // scale, d, 1, np.float32, True)
            table.append(shown({"instructions": isa, "d": d, **rates(case, rounds, isa=isa)}))
    return table


def precision_table(dims: tuple[int, ...], rounds: int, scale: int) -> list[dict[str, Any]]:
    """Measure products of bfloat16 pieces beside those of float32."""
    table = []
    for normal in (False, True):
        for d in dims:
            for precision in ("exact", "auto", "fast"):
                case = Case.draw(ROWS[d] // scale, d, 1, np.float32, normal)
                row = {"product": "normal" if normal else "matvec", "d": d, "precision": precision}
                table.append(shown(row | rates(case, rounds, precision=precision)))
    return table


def entry_table(n: int) -> list[dict[str, Any]]:
    """Measure the largest error of a float32 entry on data that float32 has trouble with."""
    table = []
    for what in ("normal", "offset 10,000", "near-duplicates", "one far row", "lengthscale / 100"):
        for d in (4, 90):
            x = RandomStream(0).standard_normal((n, d), np.float32)
            z = x[: n // 4] + (1e-3 if what == "near-duplicates" else 0.5)
            if what == "offset 10,000":
                x, z = x + 1e4, z + 1e4
            if what == "one far row":
                z[0] = 1e3
            scale = math.sqrt(d) / (100 if what.startswith("lengthscale") else 1)
            row: dict[str, Any] = {"rows": what, "d": d}
            for name in ("gaussian", "laplacian", "matern52"):
                kernel = kernels.make(name, lengthscale=scale)
                truth = kernel(xp.to_float64(x), xp.to_float64(z))
                for engine in (NativeEngine(1), TiledEngine(threads=1)):
                    who = type(engine).__name__.removesuffix("Engine").lower()
                    worst = np.abs(xp.to_float64(engine.block(kernel, x, z)) - truth).max()
                    row[f"{name}, {who}"] = f"{float(worst):.1e}"
            table.append(shown(row))
    return table


def sum_table(n: int) -> list[dict[str, Any]]:
    """Measure what is lost of K' 1 over n equal rows, beside a plain float32 running sum."""
    x, ones = np.zeros((n, 1), np.float32), np.ones((n, 1), np.float32)
    table = []
    for z in (0.7, 1.3, 1.9):
        column = np.array([[z]])
        kernel = kernels.make("gaussian")
        expected = n * float(kernel(xp.to_float64(x[:1]), xp.to_float64(column)))
        entry = float(NativeEngine(1).block(kernel, x[:1], column))
        running = float(np.cumsum(np.full(n, entry, np.float32))[-1])
        row: dict[str, Any] = {"rows": n, "entry": entry}
        row["running float32 sum"] = f"{abs(running / expected - 1):.1e}"
        for engine in (NativeEngine(1), TiledEngine(threads=1)):
            total = float(engine.normal(kernel, x, column, None, targets=-ones))
            who = type(engine).__name__.removesuffix("Engine").lower()
            row[who] = f"{abs(total / expected - 1):.1e}"
        table.append(shown(row))
    return table


def memory_table(scale: int) -> list[dict[str, Any]]:
    """Measure what a product needs beside its rows, vectors and result, however many rows."""
    table = []
    for n in (100_000, 1_000_000, 4_000_000):
        for normal in (False, True):
            rows = n // scale
            row = {"product": "normal" if normal else "matvec", "rows": rows}
            row |= {"rows MB": 72e-6 * rows, "result MB": 0.0 if normal else 4e-6 * rows}
            table.append(
                shown(row | {"peak MB beside the rows": in_fresh_process(peak_of, rows, normal)})
            )
    return table


def peak_of(n: int, normal: bool) -> float:
    """Return the MB by which this process grows while it computes one product."""
    case = Case.draw(n, 18, 1, np.float32, normal)
    case.z, case.v = case.z[:500], case.v[:500]
    ours(few_rows(case, 1), NativeEngine(2))  # which loads what is loaded once
    before = bytes_before_work()
    ours(case, NativeEngine(2))
    return (peak_bytes() - before) / 1e6


def main(options: argparse.Namespace) -> None:
    if not compiled_tiles():
        print("skipped: the compiled tiles are not installed (see `gramian info`)")
        return
    rounds, scale = (2, 4) if options.quick else (7, 1)
    set_blas_threads(1)
    tables = {
        "Gaussian": gaussian_table((4, 18) if options.quick else tuple(ROWS), rounds, scale),
        "Other kernels: matvec, float32, t = 1": kernel_table((4, 18, 90), rounds, scale),
        "Instruction sets: normal, float32, t = 1": instruction_table((4, 18, 90), rounds, scale),
        "Largest error of an entry, float32": entry_table(2000),
        "Relative error of a sum over rows, float32": sum_table(10_000_000 // scale),
        "Memory: 500 columns, 18 features, float32": memory_table(scale),
    }
    if "amx" in compiled_tiles():
        name = "With AMX: Gaussian, float32, t = 1"
        tables[name] = precision_table((18, 90) if options.quick else (18, 90, 784), rounds, scale)
    if options.quick:
        print(*(markdown(table) for table in tables.values()), sep="\n\n")
    else:
        write("native", tables, NOTES)
