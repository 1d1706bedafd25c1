"""Recursive RLS-Nystrom (Musco, Musco 2017): figures 1 to 4, theorems 3, 7, 8, 12, 16 and 17."""

from __future__ import annotations

import math

import numpy as np

from gramian._arrays import RandomStream
from gramian.approximations import NystromMap
from gramian.data import as_rows
from gramian.kernels import Gaussian
from gramian.landmarks import RecursiveRLS, Uniform
from gramian.landmarks.leverage.exact_rls import exact_scores
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, solve

from ...landmarks import clusters, nystrom
from ..item import Outcome, Scale, judged
from ..plot import Panel, Plot, line
from ..stored import sample_rows, stored_row, stored_rows

SETS = ("kddcup", "beijing_pm25", "california_housing", "nycflights")
OF_NYSTROM = "benchmark `nystrom`, 5,000 rows of public sets, ten seeds"


def kernel_of_rows(scale: Scale, name: str, n: int) -> tuple[KernelOperator, str]:
    """Return the operator of some rows, with the lengthscale of the benchmark `nystrom`."""
    X, *_, label = sample_rows(scale, name, n)
    rows = as_rows(X)
    return KernelOperator(Gaussian(nystrom.LENGTHSCALES.get(name, 3.0)), rows, rows), label


def features_of(K: KernelOperator, points: np.ndarray) -> np.ndarray:
    """Return F with F F' = K̃, the Nystrom approximation by these landmarks."""
    return NystromMap.build(K.kernel, points).features(K.rows)


def figure_1(scale: Scale) -> Outcome:
    """Share of seeds in which landmarks meet a cluster of one percent of the rows."""
    X, label = clusters.points()
    rows = as_rows(X)
    K, seeds = KernelOperator(Gaussian(1.0), rows, rows), scale.size(10, 100)
    share = {}
    for name, selector in (("uniform", Uniform(clusters.M)), ("RLS", RecursiveRLS(clusters.M))):
        hit = 0
        for seed in range(seeds):
            chosen = selector.select(K, rng=RandomStream(seed)).points
            hit += len(set(clusters.nearest(chosen, X, label).tolist())) == len(clusters.SIZES)
        share[name] = 100 * hit / seeds
    return judged(
        f"every cluster has a landmark: uniform {share['uniform']:.0f} %, RLS {share['RLS']:.0f} %",
        share["RLS"] > 90 > share["uniform"],
        f"three clusters of 100, 5,000 and 4,900 rows, 10 landmarks, {seeds} seeds",
        "a landmark is missing",
        cluster_plot(),
    )


def cluster_plot() -> Plot:
    """Return the picture of the share of seeds that cover every cluster, of the benchmark."""
    rows = stored_rows("leverage", "Clusters")
    lines = {row["selector"]: [(0, 0), (row["every cluster, %"],) * 2, (0, 0)] for row in rows}
    lines = {k: [(0, 0), (0, v[1][0]), (0, v[1][0])] for k, v in lines.items()}
    label = "% of seeds in which every cluster has a landmark"
    panel = Panel("% of 200 seeds", "", lines, ranges=True)
    return Plot("figure 1", f"Selectors, and the {label}", [panel])


def figure_2(scale: Scale) -> Outcome:
    """Spectral error over that of uniform landmarks at the same number."""
    if not scale.quick:
        rows = stored_rows("nystrom", nystrom.ERRORS, selector="recursive_rls")
        ratios = {row["set"]: float(row["m = 400"]) for row in rows}
        rff = min(
            float(r["m = 400"]) for r in stored_rows("nystrom", nystrom.ERRORS, selector="rff")
        )
        where = OF_NYSTROM
    else:
        ratios, rff, where = _measured_ratios(scale)
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return judged(
        f"error over uniform: {shown}; random Fourier features at least {rff:.1f}",
        max(ratios.values()) < 1 < rff,
        where,
        "scores of some sets are nearly flat at these sizes, so that uniform is as good",
        error_plot("figure 2", "m", "landmarks m", ("uniform", "recursive_rls", "rff")),
    )


def error_plot(figure: str, along: str, label: str, selectors: tuple[str, ...]) -> Plot:
    """Return the picture of spectral errors along landmarks or seconds on four sets."""
    panels = []
    for name in SETS:
        lines = {}
        for selector in selectors:
            rows = stored_rows("nystrom", nystrom.MEDIANS, set=name, selector=selector)
            x = [row["m"] if along == "m" else row["select"] + row["factor"] for row in rows]
            lines[selector] = line(x, [row["error"] for row in rows])
        panels.append(Panel(label, "relative spectral error", lines, name, "xy"))
    alt = f"Spectral error along {label} of {', '.join(selectors)} on four sets"
    return Plot(figure, alt, panels)


def _measured_ratios(scale: Scale) -> tuple[dict[str, float], float, str]:
    ratios, rff, n, m = {}, math.inf, 1000, 100
    for name in SETS[:2]:
        K, label = kernel_of_rows(scale, name, n)
        dense = K.dense()
        errors = {
            method: np.median(
                [nystrom.error(dense, nystrom.formed(K, method, m, s).F) for s in range(5)]
            )
            for method in ("uniform", "recursive_rls", "rff")
        }
        ratios[label] = float(errors["recursive_rls"] / errors["uniform"])
        rff = min(rff, float(errors["rff"] / errors["uniform"]))
    return ratios, rff, f"n = {n:,}, m = {m}, medians of five seeds"


def figure_3(scale: Scale) -> Outcome:
    """Seconds to the errors of 400 and of 800 uniform landmarks."""
    texts, faster = [], []
    for name in SETS:
        at: dict[str, dict[int, float]] = {}
        for m in (400, 800):
            seconds = {key: seconds_to_error(name, key, m) for key in ("uniform", "recursive_rls")}
            at.setdefault(name, {})[m] = seconds["recursive_rls"] / seconds["uniform"]
        texts.append(f"{name} {at[name][400]:.2f} and {at[name][800]:.2f}")
        faster.append(max(at[name].values()) < 1)
    return judged(
        "CPU seconds to the errors of 400 and of 800 uniform landmarks, over uniform's: "
        + ", ".join(texts),
        sum(faster) >= len(faster) - 1,
        OF_NYSTROM,
        f"{OF_NYSTROM}: RLS is faster on all sets to the error of 800 uniform landmarks, but to "
        "the one of 400 only on kddcup, since selecting landmarks costs more than it saves there",
        error_plot("figure 3", "seconds", "CPU seconds", ("uniform", "recursive_rls")),
    )


def seconds_to_error(
    name: str, selector: str, m: int, parts: tuple[str, ...] = ("select", "factor")
) -> float:
    """Return the CPU seconds to the error of m uniform landmarks, by interpolated logarithms."""
    goal = stored_row("nystrom", nystrom.MEDIANS, set=name, selector="uniform", m=m)["error"]
    rows = stored_rows("nystrom", nystrom.MEDIANS, set=name, selector=selector)
    rows = sorted(rows, key=lambda row: row["error"])
    seconds = [math.log(sum(row[part] for part in parts)) for row in rows]
    errors = [math.log(row["error"]) for row in rows]
    return math.exp(float(np.interp(math.log(goal), errors, seconds)))


def figure_4(scale: Scale) -> Outcome:
    rows = {
        key: stored_row("nystrom", nystrom.ERRORS, set="kddcup", selector=key)
        for key in ("recursive_rls", "recursive_rls, accelerated")
    }
    slopes = {
        key: stored_row("leverage", "Growth with n", selector=key)["ratio of evaluations"]
        for key in rows
    }
    plain, fast = (float(row["m = 400"]) for row in rows.values())
    return judged(
        f"kddcup, error over uniform at m = 400: plain {plain:.3f}, accelerated {fast:.3f}; "
        f"evaluations at 30 times the rows: {', '.join(f'{v:.0f} times' for v in slopes.values())}",
        plain < fast < 1,
        f"{OF_NYSTROM}; benchmark `leverage`",
        "the accelerated recursion is not below uniform",
        accelerated_plot(),
    )


def accelerated_plot() -> Plot:
    """Return the picture of seconds and errors by landmarks on kddcup."""
    keys = ("uniform", "rff", "recursive_rls", "recursive_rls, accelerated")
    errors, seconds = {}, {}
    for key in keys:
        rows = stored_rows("nystrom", nystrom.MEDIANS, set="kddcup", selector=key)
        m = [row["m"] for row in rows]
        errors[key] = line(m, [row["error"] for row in rows])
        seconds[key] = line(m, [row["select"] + row["factor"] for row in rows])
    panels = [
        Panel("landmarks m", "CPU seconds", seconds, "kddcup", "xy"),
        Panel("landmarks m", "relative spectral error", errors, "kddcup", "xy"),
    ]
    return Plot("figure 4", "CPU seconds and spectral errors by landmarks on kddcup", panels)


def spectral_bound(scale: Scale) -> Outcome:
    """Theorem 3 and 7: K̃ <= K <= K̃ + lambda I, for landmarks drawn with lambda."""
    n, seeds, lam = scale.size(1000, 2000), scale.size(5, 10), 1e-3
    K, name = kernel_of_rows(scale, "nycflights", n)
    dense, n = K.dense(), K.shape[0]
    largest, least, sizes = 0.0, 0.0, []
    for seed in range(seeds):
        rng = RandomStream(seed)
        chosen = RecursiveRLS(penalty=lam).select(K, rng=rng)
        F = features_of(K, chosen.points)
        values = np.linalg.eigvalsh(dense - F @ F.T)
        largest, least = max(largest, values[-1] / (n * lam)), min(least, values[0])
        sizes.append(len(chosen.points))
    d = float(exact_scores(K, lam).sum())
    bound = 384 * d * math.log(3 * d / 0.1)
    return judged(
        f"largest eigenvalue of K - K̃ over lambda {largest:.2f}, least {least:.1e}; "
        f"{np.mean(sizes):.0f} landmarks, bound {bound:,.0f}",
        largest <= 1 and least > -1e-8 and max(sizes) <= bound,
        f"{name}, n = {n:,}, {seeds} seeds, d_eff = {d:.0f}; constants of the code, not the proof",
        "oversampling is smaller than the theorem's",
    )


def evaluations(scale: Scale) -> Outcome:
    """Theorem 8: O(n s) kernel evaluations."""
    found = {}
    for n in (1000, 4000) if scale.quick else (5000, 20_000):
        K, _ = kernel_of_rows(scale, "nycflights", n)
        before = K.meter.evaluations
        RecursiveRLS(100).select(K, rng=RandomStream(0))
        found[K.shape[0]] = (K.meter.evaluations - before) / (100 * K.shape[0])
    shown = ", ".join(f"n = {n:,}: {value:.2f} n s" for n, value in found.items())
    return Outcome(
        shown,
        "reproduced" if max(found.values()) < 4 else "not reproduced",
        "" if max(found.values()) < 4 else "the recursion has more levels",
    )


def projection_cost(scale: Scale) -> Outcome:
    r"""Theorem 12: for every rank-k projection X the cost tr(K - XKX) is kept up to 1 + epsilon.

    With the constant c = tr(K - K̃), the difference of the costs is tr(X (K - K̃) X), which is at
    most the sum of the k largest eigenvalues of K - K̃, and the cost is at least the sum of the
    eigenvalues of K beyond the k-th. The ratio of these sums bounds epsilon for all projections.
    """
    n, seeds, k, epsilon = scale.size(1000, 3000), scale.size(3, 10), 10, 0.5
    K, name = kernel_of_rows(scale, "nycflights", n)
    dense = K.dense()
    tail = float(np.linalg.eigvalsh(dense)[:-k].sum())
    lam, found, sizes = epsilon * tail / k, [], []
    for seed in range(seeds):
        rng = RandomStream(seed)
        chosen = RecursiveRLS(penalty=lam / len(dense)).select(K, rng=rng)
        F = features_of(K, chosen.points)
        found.append(float(np.linalg.eigvalsh(dense - F @ F.T)[-k:].sum() / tail))
        sizes.append(len(chosen.points))
    worst = max(found)
    return judged(
        f"epsilon {worst:.3f} for all projections of rank {k}, {np.mean(sizes):.0f} landmarks",
        worst <= epsilon,
        f"{name}, n = {len(dense):,}, lambda = epsilon / k times the tail, {seeds} seeds",
        "too few landmarks for this penalty",
    )


def regression_risk(scale: Scale) -> Outcome:
    """Theorem 16: (1 + epsilon) relative risk of kernel ridge regression."""
    n, penalty = scale.size(1000, 4000), 1e-3
    X, y, *_, name = sample_rows(scale, "nycflights", n)
    rows = as_rows(X)
    K = KernelOperator(Gaussian(2.68), rows, rows)
    signal = K @ solve(FullProblem(K, y, penalty), Direct()).state.coef
    noise = RandomStream(0).standard_normal((len(X), 1), np.float64)
    targets = signal + float((y - signal).std()) * noise
    exact = K @ solve(FullProblem(K, targets, penalty), Direct()).state.coef
    chosen = RecursiveRLS(penalty=penalty).select(K, rng=RandomStream(0))
    problem = NystromProblem.at(K, chosen.index, targets, penalty)
    ours = problem.K @ solve(problem, Direct()).state.coef
    risks = [float(np.square(f - signal).mean()) for f in (ours, exact)]
    return judged(
        f"risk relative to exact KRR {risks[0] / risks[1]:.3f}, {len(chosen.points)} landmarks",
        risks[0] <= 1.1 * risks[1],
        f"{name}, n = {len(X):,}, simulated targets of a known function",
        "too few landmarks for this penalty",
    )


def clustering(scale: Scale) -> Outcome:
    row = stored_row("downstream", "Kernel k-means", m=1000, n=10_000)
    return judged(
        f"objective relative to the dense kernel {row['objective / exact']}, 1,000 landmarks",
        float(row["objective / exact"]) <= 1.01,
        "benchmark `downstream`, 10,000 images of fashion-MNIST",
        "another local minimum",
    )


def components(scale: Scale) -> Outcome:
    row = stored_row("downstream", "Kernel PCA", m=1000, n=10_000)
    return judged(
        f"explained variance over exact {row['explained / exact']}, 1,000 landmarks, 20 components",
        float(row["explained / exact"]) >= 0.99,
        "benchmark `downstream`, 10,000 images of fashion-MNIST",
        "too few landmarks",
    )
