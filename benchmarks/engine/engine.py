"""How many kernel evaluations per second, against plain torch and against bare tiles."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian.operators import KernelOperator, TiledEngine

from ..lib.products import CHUNK, Case, M, exact
from ..lib.results import markdown, shown, write
from ..lib.timing import interleaved

NOTES = f"""\
Pairs per second, in 10^9, of one product with n x {M:,} kernel entries; x and z normal, Gaussian
kernel of lengthscale sqrt(d). `one core`: n {M:,} / CPU seconds with one thread. `two cores`:
n {M:,} / wall seconds with two. Contenders take turns in one process; least of the rounds.

- chunks: `torch.cdist`, `exp` and `@` on {CHUNK:,} rows at a time.
- bare tiles: one matrix product of augmented rows into a reused buffer, `exp_` in place, 128 rows
  by 1,024 columns (256 for the plain product); float32 sums; no care for denormals, for digits lost
  to cancellation, for equal points, for memory.
- gramian: `KernelOperator.normal` and `@` with `TiledEngine`, sums in float64.

`error` is the relative distance (Frobenius norm) to the product in float64 from differences."""


def ours(case: Case, threads: int) -> np.ndarray:
    K = KernelOperator(case.kernel, case.x, case.z, TiledEngine(threads=threads))
    return K.normal(case.v, targets=case.y) if case.normal else K @ case.v


def chunks(case: Case, threads: int) -> np.ndarray:
    set_blas_threads(threads)
    out = []
    for i in range(0, len(case.x), CHUNK):
        K = xp.cdist(case.x[i : i + CHUNK], case.z)
        K = np.exp(-(K**2) / (2 * case.lengthscale**2))
        u = K @ case.v
        out.append(K.T @ (u - case.y[i : i + CHUNK]) if case.normal else u)
    set_blas_threads(1)
    return sum(out[1:], out[0]) if case.normal else np.concatenate(out)


_pools = {threads: ThreadPoolExecutor(threads) for threads in (1, 2)}


def bare_tiles(case: Case, threads: int) -> np.ndarray:
    a = 1 / case.lengthscale
    x, z = case.x * a, case.z * a
    xn, zn = (-(s * s).sum(1, keepdims=True) / 2 for s in (x, z))
    left = np.concatenate([x, xn, np.ones_like(xn)])
    right = np.concatenate([z, np.ones_like(zn), zn]).T
    work = _bare_normal if case.normal else _bare_matvec
    cuts = [len(x) * i // (4 * threads) for i in range(4 * threads + 1)]
    spans = list(pairwise(cuts))
    parts = list(_pools[threads].map(lambda s: work(left, right, case.v, case.y, *s), spans))
    return sum(parts[1:], parts[0]) if case.normal else np.concatenate(parts)


def _bare_matvec(
    left: np.ndarray, right: np.ndarray, v: np.ndarray, y: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    out, buffer = (
        np.zeros((hi - lo, v.shape[1]), dtype=v.dtype),
        np.empty(256 * 1024, dtype=v.dtype),
    )
    for i in range(lo, hi, 256):
        x = left[i : min(i + 256, hi)]
        for j in range(0, M, 1024):
            z = right[:, j : j + 1024]
            K = xp.exp_(xp.matmul(x, z, out=buffer[: len(x) * z.shape[1]].reshape(len(x), -1)))
            xp.addmm_(out[i - lo : i - lo + len(x)], K, v[j : j + 1024])
    return out


def _bare_normal(
    left: np.ndarray, right: np.ndarray, v: np.ndarray, y: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    out, buffer = np.zeros_like(v), np.empty(128 * M, dtype=v.dtype)
    for i in range(lo, hi, 128):
        x = left[i : min(i + 128, hi)]
        u, tiles = -y[i : i + len(x)], []
        for j in range(0, M, 1024):
            z = right[:, j : j + 1024]
            K = buffer[len(x) * j : len(x) * (j + z.shape[1])].reshape(len(x), -1)
            tiles.append((j, xp.exp_(xp.matmul(x, z, out=K))))
            xp.addmm_(u, K, v[j : j + 1024])
        for j, K in tiles:
            xp.addmm_(out[j : j + K.shape[1]], K.T, u)
    return out


Contender = Callable[[Case, int], np.ndarray]
GAUSSIAN: dict[str, Contender] = {"chunks": chunks, "bare tiles": bare_tiles, "gramian": ours}


def rates(case: Case, contenders: dict[str, Contender], rounds: int) -> dict[str, float]:
    row: dict[str, float] = {}
    for threads, what in ((1, "one core"), (2, "two cores")):
        works = {name: lambda f=f, k=threads: f(case, k) for name, f in contenders.items()}
        for name, seconds in interleaved(works, rounds=rounds, slow=("chunks",)).items():
            spent = seconds.cpu if threads == 1 else seconds.wall
            row[f"{name}, {what}"] = case.pairs / spent / 1e9
        if "bare tiles" in contenders:
            row[f"gramian / bare, {what}"] = row[f"gramian, {what}"] / row[f"bare tiles, {what}"]
    return row


def errors(case: Case) -> dict[str, float]:
    truth = exact(case)
    return {
        f"error {name}": float(xp.norm(xp.to_float64(f(case, 1)) - truth) / xp.norm(truth))
        for name, f in GAUSSIAN.items()
    }


def gaussian_table(n: int, rounds: int, dims: tuple[int, ...]) -> list[dict[str, Any]]:
    table = []
    for normal in (True, False):
        for dtype in (np.float32, np.float64):
            for t in (1, 10):
                for d in dims:
                    case = Case.draw(n, d, t, dtype, normal)
                    row = {
                        "product": "normal" if normal else "matvec",
                        "dtype": str(dtype).removeprefix("torch."),
                        "t": t,
                        "d": d,
                        **rates(case, GAUSSIAN, rounds),
                    }
                    table.append(shown(row))
    return table


def hard_table(n: int, rounds: int) -> list[dict[str, Any]]:
    d = 18
    cases = {
        "as above, landmarks among the rows": {"near": True},
        "offset 1000": {"near": True, "offset": 1000.0},
        "mean exponent -95": {"near": True, "lengthscale": math.sqrt(d / 95)},
        "mean exponent -400": {"near": True, "lengthscale": math.sqrt(d / 400)},
    }
    table = []
    for what, change in cases.items():
        case = Case.draw(n, d, 1, np.float32, True, **change)
        table.append(shown({"case": what, **rates(case, GAUSSIAN, rounds), **errors(case)}))
    return table


def profile_table(n: int, rounds: int) -> list[dict[str, Any]]:
    table = []
    for name in ("gaussian", "laplacian", "matern32", "matern52", "l1_laplacian"):
        for d in (4, 18):
            case = Case.draw(n, d, 1, np.float32, True, kernel=name)
            table.append(shown({"kernel": name, "d": d, **rates(case, {"gramian": ours}, rounds)}))
    return table


def main(options: argparse.Namespace) -> None:
    n, rounds, dims = (10_000, 2, (4, 18)) if options.quick else (20_000, 9, (4, 18, 90, 784))
    set_blas_threads(1)
    tables = {
        "Gaussian, normal rows": gaussian_table(n, rounds, dims),
        "Hard cases: normal, float32, d = 18, t = 1": hard_table(n, rounds),
        "Other kernels: normal, float32, t = 1": profile_table(n, rounds),
    }
    if options.quick:
        print(*(markdown(table) for table in tables.values()), sep="\n\n")
    else:
        write("engine", tables, NOTES)
