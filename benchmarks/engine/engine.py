"""How many kernel evaluations per second, against plain torch and against bare tiles."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gramian.operators import KernelOperator, TorchEngine

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
- gramian: `KernelOperator.normal` and `@` with `TorchEngine`, sums in float64.

`error` is the relative distance (Frobenius norm) to the product in float64 from differences."""


def ours(case: Case, threads: int) -> Tensor:
    K = KernelOperator(case.kernel, case.x, case.z, TorchEngine(threads=threads))
    return K.normal(case.v, targets=case.y) if case.normal else K @ case.v


def chunks(case: Case, threads: int) -> Tensor:
    torch.set_num_threads(threads)
    out = []
    for i in range(0, len(case.x), CHUNK):
        K = torch.cdist(case.x[i : i + CHUNK], case.z)
        K = torch.exp(-(K**2) / (2 * case.lengthscale**2))
        u = K @ case.v
        out.append(K.T @ (u - case.y[i : i + CHUNK]) if case.normal else u)
    torch.set_num_threads(1)
    return sum(out[1:], out[0]) if case.normal else torch.cat(out)


_pools = {threads: ThreadPoolExecutor(threads) for threads in (1, 2)}


def bare_tiles(case: Case, threads: int) -> Tensor:
    a = 1 / case.lengthscale
    x, z = case.x * a, case.z * a
    xn, zn = (-(s * s).sum(1, keepdim=True) / 2 for s in (x, z))
    left = torch.cat([x, xn, torch.ones_like(xn)], 1)
    right = torch.cat([z, torch.ones_like(zn), zn], 1).t()
    work = _bare_normal if case.normal else _bare_matvec
    cuts = [len(x) * i // (4 * threads) for i in range(4 * threads + 1)]
    spans = list(pairwise(cuts))
    parts = list(_pools[threads].map(lambda s: work(left, right, case.v, case.y, *s), spans))
    return sum(parts[1:], parts[0]) if case.normal else torch.cat(parts)


def _bare_matvec(left: Tensor, right: Tensor, v: Tensor, y: Tensor, lo: int, hi: int) -> Tensor:
    out, buffer = v.new_zeros(hi - lo, v.shape[1]), v.new_empty(256 * 1024)
    for i in range(lo, hi, 256):
        x = left[i : min(i + 256, hi)]
        for j in range(0, M, 1024):
            z = right[:, j : j + 1024]
            K = torch.mm(x, z, out=buffer[: len(x) * z.shape[1]].view(len(x), -1)).exp_()
            out[i - lo : i - lo + len(x)].addmm_(K, v[j : j + 1024])
    return out


def _bare_normal(left: Tensor, right: Tensor, v: Tensor, y: Tensor, lo: int, hi: int) -> Tensor:
    out, buffer = torch.zeros_like(v), v.new_empty(128 * M)
    for i in range(lo, hi, 128):
        x = left[i : min(i + 128, hi)]
        u, tiles = -y[i : i + len(x)], []
        for j in range(0, M, 1024):
            z = right[:, j : j + 1024]
            K = buffer[len(x) * j : len(x) * (j + z.shape[1])].view(len(x), -1)
            tiles.append((j, torch.mm(x, z, out=K).exp_()))
            u.addmm_(K, v[j : j + 1024])
        for j, K in tiles:
            out[j : j + K.shape[1]].addmm_(K.t(), u)
    return out


Contender = Callable[[Case, int], Tensor]
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
        f"error {name}": float((f(case, 1).double() - truth).norm() / truth.norm())
        for name, f in GAUSSIAN.items()
    }


def gaussian_table(n: int, rounds: int, dims: tuple[int, ...]) -> list[dict[str, Any]]:
    table = []
    for normal in (True, False):
        for dtype in (torch.float32, torch.float64):
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
        case = Case.draw(n, d, 1, torch.float32, True, **change)
        table.append(shown({"case": what, **rates(case, GAUSSIAN, rounds), **errors(case)}))
    return table


def profile_table(n: int, rounds: int) -> list[dict[str, Any]]:
    table = []
    for name in ("gaussian", "laplacian", "matern32", "matern52", "l1_laplacian"):
        for d in (4, 18):
            case = Case.draw(n, d, 1, torch.float32, True, kernel=name)
            table.append(shown({"kernel": name, "d": d, **rates(case, {"gramian": ours}, rounds)}))
    return table


def main(options: argparse.Namespace) -> None:
    n, rounds, dims = (10_000, 2, (4, 18)) if options.quick else (20_000, 9, (4, 18, 90, 784))
    torch.set_num_threads(1)
    tables = {
        "Gaussian, normal rows": gaussian_table(n, rounds, dims),
        "Hard cases: normal, float32, d = 18, t = 1": hard_table(n, rounds),
        "Other kernels: normal, float32, t = 1": profile_table(n, rounds),
    }
    if options.quick:
        print(*(markdown(table) for table in tables.values()), sep="\n\n")
    else:
        write("engine", tables, NOTES)
