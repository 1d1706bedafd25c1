"""Costs and condition numbers of FALKON: table 1, section 3, theorems 4 and 5, appendix A."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.approximations import FourierMap
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, Falkon, max_iterations, solve

from ...landmarks.falkon_bless import Stored, condition, explained
from ..item import Outcome, Scale, judged
from ..plot import Line, Panel, Plot, line
from ..stored import sample_rows, stored_rows
from .theorems import landmark_problem


def slope(x: list[float], y: list[float]) -> float:
    """Return the exponent of y against x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def least_seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the least CPU seconds of some rounds."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def factor_seconds(scale: Scale) -> Outcome:
    """Section 3: the preconditioner takes 4/3 M³ operations."""
    sizes = (500, 1000, 2000) if scale.quick else (1000, 2000, 4000)
    X, y, *_, name = sample_rows(scale, "nycflights", 5000)
    seconds = []
    for m in sizes:
        problem = landmark_problem(X, y, m, 1e-4)
        seconds.append(least_seconds(lambda p=problem: FalkonFactor.build(p, None), 2))
    exponent = slope(list(sizes[-2:]), seconds[-2:])
    rate = 4 / 3 * sizes[-1] ** 3 / seconds[-1] / 1e9
    shown = ", ".join(f"M = {m:,}: {s:.2f} s" for m, s in zip(sizes, seconds, strict=True))
    return judged(
        f"CPU seconds of the factor, {shown}; exponent of the last two {exponent:.1f}; 4/3 M³ "
        f"operations in the last would be {rate:.0f} GFLOPS",
        2 < exponent < 3.5,
        f"{name}; the kernel entries of K_MM and the pivoted factor count, too",
        "other work than the factorisations dominates",
    )


def work_by_rows(scale: Scale) -> Outcome:
    """Table 1: seconds against n of FALKON, random features and divide and conquer.

    Sizes as in the table, for the error of kernel ridge regression with the penalty n^-1/2: M and
    the features of the order of n^1/2 log n, n^1/2 parts.
    """
    sizes = (1000, 4000) if scale.quick else (4000, 16_000, 64_000)
    seconds: dict[str, list[float]] = {}
    for n in sizes:
        X, y, *_ = sample_rows(scale, "nycflights", n)
        n, m = len(X), int(math.sqrt(len(X)) * math.log(len(X)) / 2)
        problem = landmark_problem(X, y, m, 1 / math.sqrt(n))
        works = {
            "FALKON": lambda p=problem: solve(p, Falkon(), stop=[max_iterations(10)]),
            "random features": lambda X=X, y=y, m=m: ridge_on_features(X, y, m),
            "divide and conquer": lambda X=X, y=y: solve_parts(X, y),
        }
        for method, work in works.items():
            seconds.setdefault(method, []).append(least_seconds(work, 2))
    powers = {k: slope(list(sizes), v) for k, v in seconds.items()}
    shown = ", ".join(f"{k} n^{power:.2f} ({seconds[k][-1]:.1f} s)" for k, power in powers.items())
    curves = {k: line(sizes, v) for k, v in seconds.items()}
    alt = "CPU seconds against rows of FALKON, random features and divide and conquer"
    return judged(
        f"CPU seconds to n = {sizes[-1]:,} grow as {shown}",
        powers["FALKON"] < powers["random features"],
        "sizes of the theory with half the logarithm; parts are of a few hundred rows, whose "
        "factorisations do not dominate yet: n^2 is beyond these sizes",
        "overheads hide the exponents at these sizes",
        Plot("table 1", alt, [Panel("rows n", "CPU seconds", curves, log="xy")]),
    )


def ridge_on_features(X: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """Return the weights of ridge regression on random Fourier features."""
    kernel = kernels.make("gaussian", lengthscale="median").resolve(X[:1000])
    F = FourierMap.build(kernel, X.shape[1], size, rng=RandomStream(0)).features(as_rows(X))
    gram = F.T @ F
    gram[np.diag_indices(len(gram))] += math.sqrt(len(X))
    return np.linalg.solve(gram, F.T @ y)


def solve_parts(X: np.ndarray, y: np.ndarray) -> None:
    """Solve the kernel ridge regression of the square root of n random parts."""
    kernel = kernels.make("gaussian", lengthscale="median").resolve(X[:1000])
    order = RandomStream(0).permutation(len(X))
    for part in np.array_split(order, math.isqrt(len(X))):
        rows = as_rows(X[part])
        problem = FullProblem(KernelOperator(kernel, rows, rows), y[part], 1 / math.sqrt(len(X)))
        solve(problem, Direct())


def conditions_by_rows(scale: Scale) -> Outcome:
    """Section 3: iterations follow from condition numbers, with the penalty n^-1/2."""
    sizes = (500, 1000, 2000) if scale.quick else (500, 2000, 8000, 32_000)
    found: dict[str, list[float]] = {"problem (8)": [], "T alone": [], "FALKON": []}
    for n in sizes:
        X, y, *_, name = sample_rows(scale, "nycflights", n)
        m = int(math.sqrt(len(X)) * math.log(len(X)) / 2)
        problem = landmark_problem(X, y, m, 1 / math.sqrt(len(X)))
        problem = replace(problem, K=Stored.of(problem.K))
        G = explained(problem)
        matrix = problem.K.matrix
        plain = matrix.T @ matrix / len(X) + problem.penalty * problem.K_mm.dense()
        values = np.linalg.eigvalsh(plain)
        found["problem (8)"].append(values[-1] / max(values[0], 1e-16 * values[-1]))
        values = np.linalg.eigvalsh(G)
        found["T alone"].append(
            (values[-1] + problem.penalty) / (max(values[0], 0) + problem.penalty)
        )
        found["FALKON"].append(condition(problem, G))
    powers = {k: slope(list(sizes), v) for k, v in found.items()}
    shown = "; ".join(f"{k} {v[0]:.2g} to {v[-1]:.2g}, n^{powers[k]:.2f}" for k, v in found.items())
    curves = {k: line(sizes, v) for k, v in found.items()}
    alt = "Condition numbers against rows: of the plain problem, with T alone, and of FALKON"
    return judged(
        f"condition numbers from n = {sizes[0]:,} to {sizes[-1]:,}: {shown}",
        powers["FALKON"] < 0.1 < powers["T alone"] and found["FALKON"][-1] < 17,
        f"{name}, M = n^1/2 log n / 2, penalty n^-1/2",
        "M is too small for a constant condition number",
        Plot("section 3", alt, [Panel("rows n", "condition number", curves, log="xy")]),
    )


def leverage_conditions(scale: Scale) -> Outcome:
    """Theorem 4: leverage scores need fewer landmarks for the same condition number."""
    rows = stored_rows("falkon_bless", "Condition numbers")
    panels, ratios = [], {}
    for name in ("magic", "skin", "adult_a9a"):
        curves: dict[str, Line] = {}
        for key in ("uniform", "bless"):
            chosen = [row for row in rows if (row["set"], row["landmarks"]) == (name, key)]
            curves[key] = [(float(row["penalty"]), row["ours"]) for row in chosen]
        ratios[name] = [u / b for (_, u), (_, b) in zip(*curves.values(), strict=True)]
        panels.append(Panel("penalty", "condition number", curves, name, "xy"))
    shown = ", ".join(f"{name} {min(r):.2g} to {max(r):.2g}" for name, r in ratios.items())
    return judged(
        f"condition number of uniform landmarks over the one of BLESS, equal M, five penalties: "
        f"{shown}",
        ratios["skin"][-1] > 2 and ratios["magic"][-1] > 2,
        "benchmark `falkon_bless`, M = 579 to 690; no gain on adult_a9a, whose scores are flat",
        "scores are flat",
        Plot("theorem 4", "Condition numbers by penalty, uniform landmarks and BLESS", panels),
    )


def fast_rates(scale: Scale) -> Outcome:
    """Theorem 5: excess risk n^(-2r / (2r + gamma)), for r = 1/2 and gamma = 1/2: n^(-2/3).

    The exponential kernel of one feature has eigenvalues of the order j^-2, so that gamma is 1/2,
    and the function is a combination of kernel functions, so that r is at least 1/2.
    """
    sizes = (250, 1000, 4000) if scale.quick else (250, 500, 1000, 2000, 4000, 8000)
    seeds, kernel = scale.size(3, 10), kernels.make("laplacian", lengthscale=1.0)
    grid = np.linspace(0, 1, 501, dtype=np.float64)[:, None]
    knots = np.linspace(0.05, 0.95, 8, dtype=np.float64)[:, None]

    def truth(x: np.ndarray) -> np.ndarray:
        signs = np.array([1, -1] * 4, dtype=np.float64)[:, None]
        return KernelOperator(kernel, as_rows(x), as_rows(knots)) @ signs

    risks, used = [], []
    for n in sizes:
        risk, most = [], 0
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            x = rng.random((n, 1))
            y = truth(x) + 0.3 * rng.standard_normal((n, 1))
            rows, penalty = as_rows(x), n ** (-2 / 3)
            K = KernelOperator(kernel, rows, rows)
            chosen = RecursiveRLS(penalty=penalty).select(K, rng=RandomStream(seed))
            problem = NystromProblem.at(K, chosen.index, y, penalty)
            problem = replace(problem, landmark_weight=chosen.weight)
            stop = [max_iterations(int(math.log(n)) + 5)]
            coef = solve(problem, Falkon(), stop=stop).state.coef
            fit = KernelOperator(kernel, as_rows(grid), as_rows(chosen.points)) @ coef
            risk.append(float(np.square(fit - truth(grid)).mean()))
            most = max(most, len(chosen.points))
        risks.append(float(np.mean(risk)))
        used.append(most)
    power = slope(list(sizes), risks)
    alt = "Excess risk against rows, and the rate of the theorem"
    bound = [risks[0] * (n / sizes[0]) ** (-2 / 3) for n in sizes]
    curves = {"FALKON, leverage scores": line(sizes, risks)}
    curves["n^-2/3 (dotted)"] = line(sizes, bound)
    return judged(
        f"excess risk falls as n^{power:.2f} with M = {used[0]} to {used[-1]} landmarks",
        power <= -0.6,
        f"simulated, one feature, n = {sizes[0]} to {sizes[-1]:,}, {seeds} seeds; M by RLS",
        "the penalty leaves too much bias at these sizes",
        Plot("theorem 5", alt, [Panel("rows n", "excess risk", curves, log="xy")]),
    )


def relative_errors(scale: Scale) -> Outcome:
    """Table 2: relative error of FALKON and of kernel ridge regression on all rows."""
    n, m = scale.size(2000, 6000), scale.size(200, 1000)
    X, y, X_test, y_test, name = sample_rows(scale, "beijing_pm25", n)
    problem = landmark_problem(X, y, m, 1e-6)
    rows = as_rows(X)
    coef = solve(problem, Falkon(), stop=[max_iterations(20)]).state.coef
    full = FullProblem(KernelOperator(problem.K.kernel, rows, rows), y, 1e-6)
    exact = solve(full, Direct()).state.coef
    found = {}
    for key, K, c in (("FALKON", problem.K, coef), ("KRR", full.K, exact)):
        fit = replace(K, rows=as_rows(X_test)) @ c
        found[key] = float(xp.norm(fit - y_test) / xp.norm(y_test))
    return judged(
        f"relative error ‖f - y‖ / ‖y‖ of centered targets: FALKON {found['FALKON']:.3f}, KRR "
        f"{found['KRR']:.3f}",
        found["FALKON"] <= 1.1 * found["KRR"],
        f"{name}, n = {n:,}, M = {m:,}; the paper's targets are years, which are not centered",
        "M is too small",
    )


def more_centers(scale: Scale) -> Outcome:
    """Section 5: five times the centers lower the error."""
    curves: dict[str, Line] = {}
    for name in ("higgs_11k", "nycflights", "beijing_pm25"):
        rows = stored_rows("baselines", "Test error and AUC", set=name, method="FALKON")
        curves[name] = [(row["size"], row["RMSE"] / rows[0]["RMSE"]) for row in rows]
    least = {name: min(y for _, y in points) for name, points in curves.items()}
    shown = ", ".join(f"{name} {value:.3f}" for name, value in least.items())
    return judged(
        f"least test RMSE with up to 2,000 centers over the one with 500: {shown}",
        max(least.values()) < 1,
        "benchmark `baselines`, 20,000 rows in place of 460,000",
        "more centers do not help",
        Plot(
            "section 5", "Test error by centers, relative to 500 centers",
            [Panel("centers M", "RMSE over the one of M = 500", curves, log="x")],
        ),
    )  # fmt: skip
