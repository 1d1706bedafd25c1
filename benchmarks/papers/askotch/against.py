"""ASkotch and SketchySAGA against PCG and FALKON: SMAPE, float32, more inducing points."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.scoring.table import METRIC_TABLE
from gramian.solvers import PCG, ASkotch, Direct, Falkon, SketchySAGA, solve

from ...full.full_linear import synthetic
from ...lib.stored import StoredSquare
from ..falkon.theorems import landmark_problem
from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Line, Panel, Plot, line
from ..stored import generated_rows, sample_rows, stored_rows

FIRST, GROWTH = 0.1, 1.3
"""CPU seconds at which a curve is first measured, and the factor to the next time."""

HOMO_LENGTHSCALE, HOMO_PENALTY = 5120.0, 1e-8
"""Table 3 of the paper: ridge 1e-3 with 100,000 rows."""


def run_for_seconds(
    states: Any, seconds: float, value: Callable[[np.ndarray], float]
) -> list[tuple[float, float]]:
    """Return CPU seconds and the value of some iterates until the seconds are over."""
    found: list[tuple[float, float]] = []
    spent, due, start = 0.0, 0.0, time.process_time()
    for state in states:
        spent += time.process_time() - start
        over = spent > seconds or state.verdict is not None
        if state.iteration and (spent >= due or over):
            found.append((max(spent, 1e-3), value(state.coef)))
            due = FIRST if spent < FIRST else GROWTH * spent
        if over:
            break
        start = time.process_time()
    return found


def molecules(scale: Scale, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, str]:
    """Return Coulomb matrices and HOMO energies in float32, not scaled, as in the paper."""
    path = Path(scale.data) / "qm9_15k.parquet"
    if not path.is_file():
        X, y, X_test, y_test = generated_rows(n, np.random.default_rng(0))
        return 1000 * X, y - 9, 1000 * X_test, y_test - 9, "generated clusters"
    table = pq.read_table(path)
    names = [name for name in table.column_names if name.startswith("cm_")]
    X = np.stack([table[name].to_numpy() for name in names], axis=1).astype(np.float32)
    y = table["target"].to_numpy().astype(np.float64)[:, None]
    train = table["split"].to_numpy() == 0
    rng = np.random.default_rng(0)
    rows, test = (rng.permutation(np.flatnonzero(part))[:n] for part in (train, ~train))
    return X[rows], y[rows], X[test], y[test], "qm9_15k"


def smape(scale: Scale) -> Outcome:
    """Figure 2: SMAPE of HOMO energies by ASkotch, PCG and FALKON in equal seconds."""
    n, seconds = scale.size(1000, 4000), scale.size(2, 10)
    X, y, X_test, y_test, name = molecules(scale, n)
    n, mean = len(X), y.mean()
    kernel = kernels.make("l1_laplacian", lengthscale=HOMO_LENGTHSCALE)
    rows = as_rows(X)
    K = StoredSquare.of(KernelOperator(kernel, rows, rows))
    _ = K.stored  # All methods start with the entries, whose seconds they share.
    full = FullProblem(K, y - mean, HOMO_PENALTY)
    cross = KernelOperator(kernel, as_rows(X_test), rows).dense()
    metric = METRIC_TABLE["smape"]

    def value(columns: np.ndarray) -> Callable[[np.ndarray], float]:
        return lambda coef: float(metric(y_test[:, 0], (columns @ coef)[:, 0] + mean))

    index = RandomStream(0).permutation(n)[: n // 5]
    few = NystromProblem.at(KernelOperator(kernel, rows, rows), index, y - mean, HOMO_PENALTY)
    contenders = {
        "ASkotch": (ASkotch(n // 10), full, cross),
        "PCG, RPCholesky": (PCG("rpcholesky", 100), full, cross),
        "PCG, Nystrom": (PCG("nystrom", 100), full, cross),
        "FALKON": (Falkon(), few, cross[:, index]),
    }
    curves: dict[str, Line] = {}
    for key, (solver, problem, columns) in contenders.items():
        states = solver.iterate(problem, rng=RandomStream(0))
        curves[key] = run_for_seconds(states, seconds, value(columns))
    least = {key: min(v for _, v in points) for key, points in curves.items()}
    shown = ", ".join(f"{key} {value:.4g}" for key, value in least.items())
    return judged(
        f"least SMAPE of HOMO energies: {shown}",
        least["ASkotch"] <= 1.02 * min(least[key] for key in least),
        f"{name}, n = {n:,} in place of 100,000, ℓ1 Laplacian of table 3, entries kept, "
        f"{seconds} CPU s each, M = {n // 5:,} for FALKON",
        "PCG is as accurate with so few rows",
        Plot(
            "figure 2", "SMAPE by CPU seconds of ASkotch, PCG and FALKON",
            [Panel("CPU seconds", "SMAPE", curves, log="xy")],
        ),
    )  # fmt: skip


def single_precision(scale: Scale) -> Outcome:
    """Figures 4 and 5: CG is unstable in float32, ASkotch is not."""
    rows = {(row["penalty"], row["method"]): row for row in stored_rows("full_linear", "Float32")}
    curves = {
        row["of"][2]: [(point["passes"], point["residual"]) for point in row["curve"]]
        for row in stored_rows("full_linear", "Curves")
        if row["of"][:2] == ["Float32", "1e-09"]
    }
    texts = [f"{method} {rows['1e-09', method]['last']}" for method in curves]
    plain, ours = (
        float(rows["1e-09", method]["last"]) for method in ("CG, plain float32", "ASkotch, float32")
    )
    return judged(
        f"true residual at the end, penalty 1e-9: {', '.join(texts)}",
        ours < 1 < plain,
        "benchmark `full_linear`, 10,000 rows of nycflights: CG all in float32 diverges as in the "
        "paper; our PCG, with residuals in float64, does not",
        "CG is stable in float32",
        Plot(
            "figure 4", "True residual by passes in float32",
            [Panel("passes", "relative residual", curves, log="y")],
        ),
    )  # fmt: skip


def saga_is_linear(scale: Scale) -> Outcome:
    """Figure 8: SketchySAGA converges linearly on the synthetic set with inducing points."""
    n, m, epochs = scale.size(1000, 5000), scale.size(50, 200), scale.size(30, 60)
    full = synthetic(n)
    index = RandomStream(1).permutation(n)[:m]
    K = KernelOperator(full.K.kernel, full.K.rows, full.K.rows)
    problem = NystromProblem.at(K, index, full.targets, 0.1 / n)
    best = solve(problem, Direct()).state.coef
    columns = problem.K.dense()
    H = columns.T @ columns / n + problem.penalty * problem.K_mm.dense()
    least = abs(float((best * (columns.T @ problem.targets)).sum() / n))
    curves: dict[str, Line] = {}
    for rank in (10, 50):
        solver = SketchySAGA(rank=rank, batch=max(32, n // 100))
        states = islice(solver.iterate(problem, rng=RandomStream(0)), epochs + 1)
        curves[f"rank {rank}"] = [
            (s.iteration, float(((s.coef - best) * (H @ (s.coef - best))).sum() / least))
            for s in states
            if s.iteration
        ]
    rates = {}
    for key, points in curves.items():
        x, y = np.array([p for p in points if p[1] > 1e-13]).T
        late = x > x[-1] / 3
        slope, offset = np.polyfit(x[late], np.log(y[late]), 1)
        fit = slope * x[late] + offset
        spread = 1 - np.var(np.log(y[late]) - fit) / np.var(np.log(y[late]))
        rates[key] = (float(slope), float(spread), float(y[-1]))
    shown = ", ".join(f"{k}: {last:.1e}, R² {r:.3f}" for k, (_, r, last) in rates.items())
    return judged(
        f"relative suboptimality after {epochs} epochs, and R² of a line through its logarithm: "
        f"{shown}",
        all(slope < 0 and r > 0.9 for slope, r, _ in rates.values()),
        f"the synthetic set of C.2.2, n = {n:,}, m = {m}, ridge 0.1",
        "the fall is not linear",
        Plot(
            "figure 8", "Suboptimality of SketchySAGA by epochs for two ranks",
            [Panel("epochs", "relative suboptimality", curves, log="y")],
        ),
    )  # fmt: skip


def more_inducing_points(scale: Scale) -> Outcome:
    """Figure 14: with the memory of FALKON's M, SketchySAGA has more inducing points."""
    n, few, many = scale.size(2000, 20_000), scale.size(20, 100), scale.size(400, 4000)
    X, y, X_test, y_test, name = sample_rows(scale, "bathy_celt", n)
    test = as_rows(X_test[: scale.size(1000, 5000)])
    curves: dict[str, Line] = {}
    seconds = scale.size(3, 20)
    contenders: dict[str, tuple[Any, Any]] = {
        f"FALKON, m = {few:,}": (Falkon(), landmark_problem(X, y, few, 1e-8, 0.3)),
        f"FALKON, m = {5 * few:,}": (Falkon(), landmark_problem(X, y, 5 * few, 1e-8, 0.3)),
        f"SketchySAGA, m = {many:,}": (SketchySAGA(), landmark_problem(X, y, many, 1e-8, 0.3)),
        "ASkotch, all rows": (ASkotch(), None),
    }
    for key, (solver, problem) in contenders.items():
        if problem is None:
            rows = as_rows(X)
            kernel = contenders[f"FALKON, m = {few:,}"][1].K.kernel
            problem = FullProblem(KernelOperator(kernel, rows, rows), y, 1e-8)
        at = KernelOperator(problem.K.kernel, test, problem.K.cols)

        def value(coef: np.ndarray, at: KernelOperator = at) -> float:
            return float(xp.norm(at @ coef - y_test[: len(test)]) / len(test) ** 0.5)

        curves[key] = run_for_seconds(solver.iterate(problem, rng=RandomStream(0)), seconds, value)
    least = {key: min(v for _, v in points) for key, points in curves.items()}
    falkon, larger, saga, full = least.values()
    where = (
        f"{name}, n = {n:,}: {many // few} times the inducing points of the smaller FALKON (the "
        f"paper has 100), whose factor takes {8 * few**2 / 1e6:.2g} MB in place of "
        f"{8 * many**2 / 1e6:.0f}; ASkotch is {'below' if full < saga else 'above'} SketchySAGA"
    )
    shown = ", ".join(f"{key} {error:.4g}" for key, error in least.items())
    return judged(
        f"least test RMSE in {seconds} CPU s: {shown}",
        saga < min(falkon, larger),
        where,
        f"{where}, and a FALKON with an eighth of its points is below it in this time; it is below "
        "the smaller FALKON alone",
        Plot(
            "figure 14", "Test error by CPU seconds of FALKON, SketchySAGA and ASkotch",
            [Panel("CPU seconds", "test RMSE", curves, log="xy")],
        ),
    )  # fmt: skip


def slow_end(scale: Scale) -> Outcome:
    """The cause of SketchySAGA's distance to FALKON at equal inducing points."""
    rows = stored_rows("large_slow_end", "Error over that of FALKON")
    texts, curves = [], {}
    for row in rows:
        key = f"{row['rows']}, damping {row['damping']}, rank {row['rank']}"
        curves[key] = line((1, 3, 5, 10), [row[f"after {k}"] for k in (1, 3, 5, 10)])
        texts.append(f"{key} {row['after 10']:.4f}")
    at = {(row["rows"], row["damping"] == "auto"): row for row in rows if row["rank"] == 500}
    single, double, least = (
        at[key] for key in (("float32", True), ("float64", True), ("float64", False))
    )
    parts = [row["after 10"] - 1 for row in (single, double, least)]
    return judge_cause(
        f"error after 10 epochs over FALKON's: {', '.join(texts)}",
        parts[0] > parts[1] > parts[2],
        f"benchmark `large_slow_end`, nycflights: of {100 * parts[0]:.1f} % above FALKON float32 "
        f"entries cause {100 * (parts[0] - parts[1]):.1f}, the damping "
        f"{100 * (parts[1] - parts[2]):.1f}, and the rest, directions of small eigenvalues that "
        "fall slowly, is left; the rank causes next to nothing",
        "neither precision nor damping changes the distance",
        Plot(
            "figure 14 cause", "Error over FALKON's by epochs with other precision, damping, rank",
            [Panel("epochs", "test error over FALKON's", curves)],
        ),
    )  # fmt: skip
