"""On a GPU: the contracts, kernel evaluations per second beside other programs, and whole fits."""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.operators import Engine, KernelOperator, TiledEngine, TritonEngine
from gramian.solvers import ASkotch, EigenPro3, Falkon

from ..lib.process import peak_bytes, reset_peak
from ..lib.products import Case, exact, keops
from ..lib.results import ROOT, markdown, shown, write
from ..lib.timing import clock

DIMS, TARGETS = (4, 18, 90), (1, 10)
PRECISIONS = ("ieee", "3xtf32", "3xbf16")
COLUMNS, CHECKED = 10_000, 500
CONTRACTS = {
    "tests/contracts/test_engine.py": "triton",
    "tests/engines/test_triton_engine.py": "",
    "tests/engines/test_device.py": "",
}
"""Files of tests that run on the card, and those of them by name, all if empty."""

FLOPS_PER_CLOCK: dict[tuple[int, int], dict[str, float]] = {
    (8, 0): {"ieee": 128, "3xtf32": 1024 / 3, "3xbf16": 2048 / 3},
    (9, 0): {"ieee": 256, "3xtf32": 2048 / 3, "3xbf16": 4096 / 3},
}
"""By compute capability, operations that one multiprocessor does in a cycle, of a split product."""

EXPONENTIALS_PER_CLOCK = 16

NOTES = f"""\
Pairs per second, in 10^9, of one product with n x {COLUMNS:,} kernel entries; x and z normal and on
the device, Gaussian kernel of lengthscale sqrt(d), float32. `symmetric`: of rows with themselves,
with as many entries, all of which count as pairs though `TritonEngine` evaluates half of them.
Contenders take turns in one process; least of the rounds, after one for compiling and tuning.

- ieee, 3xtf32, 3xbf16: `TritonEngine` with that precision, through `KernelOperator`.
- torch: unfused. `addmm` of norms and products without TF32, `exp_`, and `@`, on as many rows at a
  time as make 2^28 entries; in `normal` the entries are kept for the second product.
- KeOps: `LazyTensor`, where it is installed.
- of the floor: pairs per second over what the arithmetic units allow for the distances, 2 d
  operations a pair, or for one exponential a pair, whichever is less; twice of both in `normal`
  (with many features entries may be kept, and more than all of it reached), half in `symmetric`.

`error` is the relative distance (Frobenius norm) to the product in float64 from differences, for
the first {CHECKED} rows."""


# --- contenders -----------------------------------------------------------------------------------


def fused(case: Case, engine: Engine) -> np.ndarray:
    K = KernelOperator(case.kernel, case.x, case.z, engine, 1 << 34)
    return K.normal(case.v, targets=case.y) if case.normal else K @ case.v


def unfused(case: Case) -> np.ndarray:
    chunk = max((1 << 28) // len(case.z), 1)
    x, z = (points / case.lengthscale for points in (case.x, case.z))
    norms = -(z * z).sum(axis=1) / 2
    out = []
    for rows, y in zip(xp.split(x, chunk), xp.split(case.y, chunk), strict=True):
        K = xp.exp_(
            xp.subtract_(xp.addmm(norms, rows, z.T), (rows * rows).sum(axis=1, keepdims=True) / 2)
        )
        u = K @ case.v
        out.append(K.T @ (u - y) if case.normal else u)
    return sum(out[1:], out[0]) if case.normal else xp.concat(out)


def contenders(device: str) -> dict[str, Callable[[Case], np.ndarray]]:
    works: dict[str, Callable[[Case], np.ndarray]] = {
        precision: lambda case, precision=precision: fused(case, TritonEngine(device, precision))
        for precision in PRECISIONS
    }
    works["torch"] = unfused
    if find_spec("pykeops"):
        works["KeOps"] = keops
    return works


# --- pairs per second -----------------------------------------------------------------------------


def placed(case: Case, device: str) -> Case:
    x, v, y = (xp.to_device(u, device) for u in (case.x, case.v, case.y))
    z = x if is_symmetric(case) else xp.to_device(case.z, device)
    return Case(x, z, v, y, case.kernel, case.lengthscale, case.normal)


def is_symmetric(case: Case) -> bool:
    return case.x is case.z


def seconds(work: Callable[[], Any], device: str) -> float:
    """Return the wall seconds until the device has finished."""
    with clock() as spent:
        work()
        if device != "cpu":
            torch.cuda.synchronize(device)
    return spent.wall


def floor(case: Case, precision: str, device: str) -> float | None:
    """Return the pairs per second that the arithmetic units allow, None if they are not known."""
    if device == "cpu":
        return None
    facts = torch.cuda.get_device_properties(device)
    flops = FLOPS_PER_CLOCK.get((facts.major, facts.minor))
    hertz = getattr(facts, "clock_rate", 0) * 1e3 * facts.multi_processor_count
    if flops is None or hertz == 0:
        return None
    each = max(2 * case.x.shape[1] / flops[precision], 1 / EXPONENTIALS_PER_CLOCK)
    return float(hertz / each / (1 + case.normal) * (1 + is_symmetric(case)))


def rates(case: Case, device: str, rounds: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    few = Case(case.x[:CHECKED], case.z, case.v, case.y[:CHECKED], case.kernel, case.lengthscale,
               case.normal)  # fmt: skip
    truth = exact(few)
    works = contenders(device)
    least = dict.fromkeys(works, math.inf)
    case, few = placed(case, device), placed(few, device)
    for name, work in works.items():
        whole = work(case)
        told = xp.to_float64(xp.to_host(work(few) if case.normal else whole[:CHECKED]))
        row[f"error {name}"] = float(xp.norm(told - truth) / xp.norm(truth))
    for _ in range(rounds):
        for name, work in works.items():
            least[name] = min(least[name], seconds(lambda work=work: work(case), device))
    for name, spent in least.items():
        row[name] = len(case.x) * len(case.z) / spent / 1e9
    for precision in PRECISIONS:
        most = floor(case, precision, device)
        row[f"{precision} of the floor"] = None if most is None else row[precision] * 1e9 / most
    row["best / torch"] = max(row[precision] for precision in PRECISIONS) / row["torch"]
    if "KeOps" in row:
        row["best / KeOps"] = max(row[precision] for precision in PRECISIONS) / row["KeOps"]
    return row


def rate_table(
    device: str, n: int, m: int, rounds: int, dims: tuple[int, ...] = DIMS
) -> list[dict[str, Any]]:
    table = []
    for product in ("matvec", "normal", "symmetric"):
        for t in TARGETS:
            for d in dims:
                case = drawn(product, n, m, d, t)
                about = {"product": product, "t": t, "d": d}
                table.append(shown(about | rates(case, device, rounds)))
    return table


def drawn(product: str, n: int, m: int, d: int, t: int) -> Case:
    if product == "symmetric":
        case = Case.draw(math.isqrt(n * m), d, t, np.float32, False)
        return Case(case.x, case.x, case.y, case.y, case.kernel, case.lengthscale, False)
    normal = product == "normal"
    case = Case.draw(max(n, m), d, t, np.float32, normal)
    v = RandomStream(0).standard_normal((m, t), np.float32)
    return Case(
        case.x[:n], xp.flip(case.x, 0)[:m], v, case.y[:n], case.kernel, case.lengthscale, normal
    )


# --- whole fits -----------------------------------------------------------------------------------


def synthetic(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets: a smooth function of all features, and noise of a tenth."""
    rng = RandomStream(0)
    X = rng.standard_normal((n, d), np.float32)
    y = np.sin(X @ rng.standard_normal(d, np.float32) / math.sqrt(d)) + X[:, 0] * X[:, 1] / 2
    return X, y + 0.1 * rng.standard_normal(n, np.float32)


def fits(scale: float, passes: int) -> dict[str, tuple[int, int, dict[str, Any]]]:
    """Return rows, features and settings of each fit; `scale` multiplies rows and landmarks."""
    n, p = int(1e7 * scale), max(int(50_000 * scale), 20)
    m = max(int(20_000 * scale), 20)
    return {
        "FALKON": (n, 18, {"solver": Falkon(), "landmarks": m, "max_iter": 10, "penalty": 1e-7}),
        "ASkotch": (n // 5, 18, {"solver": ASkotch(), "max_iter": passes, "penalty": 1e-7}),
        "EigenPro 3": (n // 5, 18, {"solver": EigenPro3(), "landmarks": p, "max_iter": 1}),
    }


def fit_table(engine: Engine, scale: float, held_out: int, passes: int = 3) -> list[dict[str, Any]]:
    table = []
    for name, (n, d, settings) in fits(scale, passes).items():
        X, y = synthetic(n + held_out, d)
        row, told = fitted(engine, X, y, n, settings)
        about = {"fit": name, "n": n, "centers": settings.get("landmarks", n)}
        rmse = float(np.sqrt(np.square(told - xp.to_float64(y[n:])).mean()))
        table.append(shown(about | row | {"RMSE": rmse, "noise": 0.1}))
    return table


def fitted(
    engine: Engine, X: np.ndarray, y: np.ndarray, n: int, settings: dict[str, Any]
) -> tuple[dict[str, Any], np.ndarray]:
    """Fit the first n rows; return what that took, and predictions for the others."""
    model = KernelRidge(
        engine=engine, lengthscale=math.sqrt(X.shape[1]), tol=0.0, random_state=0, standardize=False
    )
    model.set_params(**{"penalty": 0.0, **settings})
    reset_peak()
    on_card = getattr(engine, "device", "cpu") != "cpu"
    if on_card:
        torch.cuda.reset_peak_memory_stats()
    with clock() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after so many on purpose
        model.fit(X[:n], y[:n])
    row = {
        "iterations": model.n_iter_,
        "seconds": spent.wall,
        "host GB": peak_bytes() / 1e9,
        "device GB": torch.cuda.max_memory_allocated() / 1e9 if on_card else None,
    }
    return row, xp.to_float64(model.predict(X[n:]))


def limit_table(
    engine: TritonEngine, n: int, d: int, landmarks: int, limit: int, held_out: int
) -> list[dict[str, Any]]:
    """Fit with all memory of the device, and with less than the rows take: to the same model."""
    X, y = synthetic(n + held_out, d)
    settings = {"solver": Falkon(), "landmarks": landmarks, "max_iter": 10, "penalty": 1e-6}
    table, first = [], None
    for most in (None, limit):
        row, told = fitted(replace(engine, memory_bytes=most), X, y, n, settings)
        first = told if first is None else first
        apart = float(xp.norm(told - first) / xp.norm(first))
        about = {"limit GB": None if most is None else most / 1e9, "rows GB": 4e-9 * xp.size(X)}
        table.append(shown(about | row | {"distance of predictions": apart}))
    return table


# --- contracts ------------------------------------------------------------------------------------


def contract_table() -> list[dict[str, Any]]:
    """Run the tests that know of fused tiles, on the card."""
    table = []
    for path, names in CONTRACTS.items():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-k", names, path],
            cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "0"}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed)", last)}
        failed = re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)
        table.append(shown({"tests": path, **counts, "names of those failed": ", ".join(failed)}))
    return table


def main(options: argparse.Namespace) -> None:
    if not torch.cuda.is_available():
        print(
            "There is no GPU that torch could use on this machine, so there is nothing to measure. "
            "The contracts run without one, in Triton's interpreter: make test ARGS='-k triton'."
        )
        return
    device, card = "cuda", torch.cuda.get_device_name()
    n, rounds, scale = (100_000, 2, 0.01) if options.quick else (2_000_000, 3, 1.0)
    tables = {
        "Contracts": contract_table(),
        "Pairs per second": rate_table(device, n, COLUMNS, rounds),
        "Whole fits": fit_table(TritonEngine(device), scale, 10_000),
        "Less memory than the rows take": limit_table(
            TritonEngine(device), int(2e7 * scale), 64, 10_000, int(4e9 * scale), 10_000
        ),
        "Whole fits with torch tiles, a tenth of the rows": fit_table(
            TiledEngine(device, tile_bytes=1 << 28), scale / 10, 10_000
        ),
    }
    if options.quick:
        print(*(markdown(table) for table in tables.values()), sep="\n\n")
    else:
        write("gpu", tables, f"On one {card}.\n\n{NOTES}")
