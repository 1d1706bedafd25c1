"""Parameters of ASkotch: mu, beta, damping, test matrices, power steps; dual and costs."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.lowrank import TEST_MATRICES, randomized_nystrom
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import ASkotch, Direct, Skotch, solve
from gramian.solvers.askotch.block_rules import FixedBlocks
from gramian.solvers.askotch.blocks import Blocks

from ...full.full_linear import suboptimality, synthetic
from ...lib.stored import StoredSquare
from ..item import Outcome, Scale, judged, proved
from ..plot import Line, Panel, Plot
from ..stored import sample_rows

RANK = 50


def real_problem(scale: Scale, n: int, penalty: float) -> tuple[FullProblem, str]:
    """Return the regression on rows of nycflights in float64."""
    X, y, *_, name = sample_rows(scale, "nycflights", n)
    kernel, rows = kernels.make("gaussian", lengthscale=2.68), as_rows(X)
    # The entries are kept: only passes are compared.
    K = StoredSquare.of(KernelOperator(kernel, rows, rows))
    return FullProblem(K, y, penalty), name


def runs(problem: FullProblem, solvers: dict[str, ASkotch]) -> dict[str, Line]:
    """Return the relative suboptimality by passes of solvers with ten blocks."""
    best = solve(problem, Direct()).state.coef
    curves = {}
    for name, solver in solvers.items():
        rows = suboptimality(problem, solver, best)
        curves[name] = [(row["passes"], row["suboptimality"]) for row in rows]
    return curves


def passes_to(line: Iterable[tuple[float, float]], goal: float) -> float:
    """Return the first number of passes with at most the suboptimality; infinity if none."""
    return next((passes for passes, value in line if value <= goal), float("inf"))


def describe_passes(curves: dict[str, Line], goal: float) -> str:
    texts = {
        name: f"{passes_to(line, goal):g}".replace("inf", f"over {line[-1][0]:g}")
        for name, line in curves.items()
    }
    return f"passes to {goal:.0e}: " + ", ".join(f"{name} {text}" for name, text in texts.items())


def plot_of(figure: str, alt: str, curves: dict[str, Line]) -> Plot:
    panel = Panel("passes", "relative suboptimality", curves, log="y")
    return Plot(figure, alt, [panel])


def printed_convexity(scale: Scale) -> Outcome:
    """Figure 7 with algorithm 1 as printed: fixed blocks, rank 50, mu = the ridge."""
    n = scale.size(1000, 2000)
    problem = synthetic(n)
    b, ridge = n // 10, float(problem.ridge)
    curves = runs(problem, {
        "ASkotch, μ = ridge": ASkotch(b, RANK, "fixed", "nystrom", convexity=ridge),
        "ASkotch, μ estimated": ASkotch(b, RANK, "fixed", "nystrom"),
        "Skotch": Skotch(b, RANK, "fixed", "nystrom"),
    })  # fmt: skip
    first, _, last = (passes_to(line, 1e-10) for line in curves.values())
    return judged(
        describe_passes(curves, 1e-10),
        first < last,
        f"the synthetic set of C.2.2, n = {n:,} in place of 10,000, ridge 0.1, rank {RANK}",
        "momentum with the ridge as convexity is slower than Skotch",
        plot_of("figure 7 convexity", "Suboptimality by passes with two choices of mu", curves),
    )


def sampling_powers(scale: Scale) -> Outcome:
    """Section 3: beta = 0 is recommended; theory has beta = 1."""
    n = scale.size(400, 1000)
    problem, name = real_problem(scale, n, 1e-4)
    b = problem.K.shape[0] // 10
    curves = runs(problem, {
        f"β = {1 - 2 * power:g}": ASkotch(b, 10, "fixed", "nystrom", sampling_power=power)
        for power in (0.5, 0.25, 0.0)
    })  # fmt: skip
    smoothness = FixedBlocks(Blocks(problem, b, 10, "nystrom"), 0).smoothness()
    spread = float(smoothness.max() / smoothness.min())
    last = [line[-1][1] for line in curves.values()]
    shown = ", ".join(f"{key} {line[-1][1]:.1e}" for key, line in curves.items())
    return judged(
        f"relative suboptimality at the end, {shown}; the largest L over the smallest {spread:.2f}",
        last[0] <= 10 * min(last),
        f"{name}, n = {problem.K.shape[0]:,}, ten fixed blocks, rank 10, penalty 1e-4",
        "another power is faster",
        plot_of("algorithm 1 beta", "Suboptimality by passes for three values of beta", curves),
    )


def dampings(scale: Scale) -> Outcome:
    """Section 3: the damping is the ridge plus the last eigenvalue of the approximation."""
    n = scale.size(400, 1000)
    problem, name = real_problem(scale, n, 1e-5)
    b, ridge = problem.K.shape[0] // 10, float(problem.ridge)
    names = {"ridge + last eigenvalue": "auto", "ridge": ridge, "100 ridges": 100 * ridge}
    curves = runs(problem, {
        key: ASkotch(b, 20, "fresh", "nystrom", damping=damping) for key, damping in names.items()
    })  # fmt: skip
    last = [line[-1][1] for line in curves.values()]
    shown = ", ".join(f"{key} {value:.1e}" for key, value in zip(curves, last, strict=True))
    return judged(
        f"relative suboptimality at the end, {shown}",
        last[0] <= 3 * min(last),
        f"{name}, n = {problem.K.shape[0]:,}, ten blocks, rank 20, penalty 1e-5",
        "another damping is faster",
        plot_of("section 3 damping", "Suboptimality by passes for three dampings", curves),
    )


def sketch_matrices(scale: Scale) -> Outcome:
    """Section B.2: normal, Hadamard and sparse sign matrices are equally accurate."""
    n, rank = scale.size(500, 2000), 100
    problem, name = real_problem(scale, n, 1e-4)
    H = problem.K.dense()
    values = np.linalg.eigvalsh(H)[::-1]
    errors: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for key in TEST_MATRICES:
        found = []
        start = time.process_time()
        for seed in range(5):
            low = randomized_nystrom(
                lambda x: H @ x, len(H), rank, float(np.trace(H)), test_matrix=key,
                rng=RandomStream(seed),
            )  # fmt: skip
            found.append(low.factor)
        seconds[key] = (time.process_time() - start) / 5
        gaps = [float(np.linalg.norm(H - F @ F.T, 2)) for F in found[:3]]
        errors[key] = float(np.median(gaps) / values[rank])
    shown = ", ".join(f"{k} {errors[k]:.2f} ({seconds[k]:.2f} s)" for k in errors)
    return judged(
        f"error over the best of rank {rank} (CPU seconds of a sketch): {shown}",
        max(errors.values()) <= 1.5 * min(errors.values()),
        f"{name}, n = {len(H):,}, medians of three seeds; products are dense, so that none is "
        "cheaper than the others",
        "the matrices are not equally accurate",
    )


def solves_with_matrices(scale: Scale) -> Outcome:
    """Section B.2: ASkotch with each of the test matrices."""
    n = scale.size(400, 1000)
    problem, name = real_problem(scale, n, 1e-4)
    b = problem.K.shape[0] // 10
    curves = runs(problem, {
        key: ASkotch(b, RANK, "fresh", "nystrom", test_matrix=key) for key in TEST_MATRICES
    })  # fmt: skip
    passes = [passes_to(line, 1e-6) for line in curves.values()]
    return judged(
        describe_passes(curves, 1e-6),
        max(passes) <= 1.3 * min(passes),
        f"{name}, n = {problem.K.shape[0]:,}, ten blocks, rank {RANK}, penalty 1e-4",
        "a test matrix is slower",
    )


def power_steps(scale: Scale) -> Outcome:
    """Algorithm 3: ten power steps estimate the largest eigenvalue of the preconditioned block."""
    problem, name = real_problem(scale, scale.size(600, 2000), 1e-4)
    n, ratios = problem.K.shape[0], []
    for seed in range(scale.size(5, 20)):
        rng = RandomStream(seed)
        index = np.sort(rng.permutation(n)[: n // 5])
        B = Blocks(problem, len(index), RANK, "nystrom").build(index, rng)
        H = problem.K[index, index].dense() + float(problem.ridge) * np.eye(len(index))
        ratios.append(B.L / float(np.linalg.eigvals(B.P @ H).real.max()))
    return judged(
        f"L, ten steps times 1.1, over the largest eigenvalue: {min(ratios):.3f} to "
        f"{max(ratios):.3f}",
        min(ratios) >= 0.97 and max(ratios) <= 1.2,
        f"{name}, {len(ratios)} blocks of {n // 5} rows, rank {RANK}",
        "ten steps are too few",
    )


def dual_condition(scale: Scale) -> Outcome:
    """Lemma 3.1: the dual system has the root of the condition number of the primal one."""
    problem, name = real_problem(scale, scale.size(300, 1000), 1e-4)
    values = np.linalg.eigvalsh(problem.K.dense())
    # Smaller eigenvalues are rounding.
    values = values.clip(min=1e-15 * len(values) * values[-1])
    ridge = float(problem.ridge)
    dual = (values[-1] + ridge) / (values[0] + ridge)
    primal = values * (values + ridge)
    ratio = primal[-1] / primal[0]
    return judged(
        f"condition number of K + λ I {dual:.2g}, of K (K + λ I) {ratio:.2g}",
        ratio >= dual,
        f"{name}, n = {problem.K.shape[0]:,}, penalty 1e-4",
        "rounding",
    )


def iteration_costs(scale: Scale) -> Outcome:
    """Table 1: an iteration evaluates n b entries, and memory is of the order n."""
    X, y, *_ = sample_rows(scale, "nycflights", scale.size(1000, 4000))
    rows = as_rows(X)
    K = KernelOperator(kernels.make("gaussian", lengthscale=2.68), rows, rows)
    problem, n, steps, counts = FullProblem(K, y, 1e-4), len(X), 20, {}
    for b in (n // 50, n // 10):
        states = ASkotch(b, RANK, block_solver="nystrom").iterate(problem, rng=RandomStream(0))
        next(states)
        before = K.meter.evaluations
        for _ in range(steps):
            next(states)
        counts[b] = (K.meter.evaluations - before) / steps / (n * b)
    shown = ", ".join(f"b = {b}: {count:.2f} n b" for b, count in counts.items())
    return proved(
        f"kernel evaluations of an iteration, {shown}",
        max(counts.values()) <= 1.6,
        "the entries of the block, or restarts",
    )


def convergence_rate(scale: Scale) -> Outcome:
    """Theorem 5.1: with beta = 1 and mu of the theory, d falls by 1 - tau in each iteration."""
    n, count = scale.size(400, 1000), 10
    problem = synthetic(n)
    b = n // count
    rule = FixedBlocks(Blocks(problem, b, RANK, "nystrom"), 0, 0.0)
    H = problem.K.dense() + float(problem.ridge) * np.eye(n)
    # With beta = 1 the norm of block i is L_i P_i; mu is the least eigenvalue in this metric.
    metric = np.zeros((n, n))
    for number in range(count):
        B = rule.block(number)
        metric[np.ix_(B.index, B.index)] = B.L * B.P.apply(np.eye(len(B.index)))
    root = np.linalg.cholesky(metric)
    inner = np.linalg.solve(root, np.linalg.solve(root, H).T)
    mu = float(np.linalg.eigvalsh(inner)[0])
    S = float(count)
    tau = 2 / (1 + np.sqrt(4 * S**2 / mu + 1))
    solver = ASkotch(b, RANK, "fixed", "nystrom", convexity=mu, sampling_power=0.0)
    best = solve(problem, Direct()).state.coef
    rows = suboptimality(problem, solver, best)
    curve = [(row["passes"], row["suboptimality"]) for row in rows]
    start = next(value for passes, value in curve if passes >= 4)
    last_passes, last = curve[-1]
    measured = -np.log(last / start) / ((last_passes - 4) * count)
    predicted = -np.log(1 - tau)
    bound = [(passes, float(curve[0][1] * (1 - tau) ** (passes * count))) for passes, _ in curve]
    return judged(
        f"ln of the fall in an iteration: measured {measured:.3f}, at least {predicted:.3f} by the "
        f"theorem, μ = {mu:.3f}",
        measured >= predicted,
        f"the synthetic set of C.2.2, n = {n:,}, {count} fixed blocks, rank {RANK}",
        "the partition of the run differs from the one of μ",
        plot_of(
            "theorem 5.1", "Suboptimality by passes, and the bound of the theorem",
            {"ASkotch, β = 1": curve, "bound (dotted)": bound},
        ),
    )  # fmt: skip
