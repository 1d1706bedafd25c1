"""Uses and limits of recursive RLS: where it is below uniform, seconds, regression, CCA."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gramian import KernelCCA
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.approximations import FourierMap, NystromMap
from gramian.data import as_rows
from gramian.kernels import Gaussian
from gramian.landmarks import RecursiveRLS, Selector, Uniform
from gramian.operators import KernelOperator

from ...landmarks import nystrom
from ...landmarks.flatness import FEW, RATIOS
from ...lib.results import Row
from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Line, Panel, Plot
from ..stored import sample_rows, stored_row, stored_rows
from .figures import kernel_of_rows, seconds_to_error

RECURSIONS = ("rls", "auto")
FLAT = 1.01
"""Unevenness of scores, n times the sum of squared probabilities, that counts as flat."""


def sandwich(scale: Scale) -> Outcome:
    """Theorem 8 (6): half to three halves of B'B + lambda I, with the weighted sample."""
    n, seeds = scale.size(600, 1500), scale.size(3, 5)
    K, name = kernel_of_rows(scale, "nycflights", n)
    n, penalty = K.shape[0], 1e-3
    values, V = np.linalg.eigh(K.dense())
    values, lam = values.clip(min=0), n * penalty
    # With B = V diag(values)^1/2, rows of B (B'B + lambda I)^-1/2 are the vectors to be summed.
    whitened = V * np.sqrt(values / (values + lam))
    ranges = {}
    for oversampling in (3.0, 10.0):
        low, high, sizes = math.inf, 0.0, []
        for seed in range(seeds):
            selector = RecursiveRLS(penalty=penalty, oversampling=oversampling)
            chosen = selector.select(K, rng=RandomStream(seed))
            weights = xp.to_float64(chosen.weight) * n / len(chosen.points)
            rows = whitened[chosen.index]
            middle = (rows.T * weights) @ rows + np.diag(lam / (values + lam))
            found = np.linalg.eigvalsh(middle)
            low, high = min(low, float(found[0])), max(high, float(found[-1]))
            sizes.append(len(chosen.points))
        ranges[oversampling] = (low, high, np.mean(sizes))
    shown = ", ".join(f"{q:g}: {a:.2f} to {b:.2f} ({m:.0f})" for q, (a, b, m) in ranges.items())
    return judged(
        f"eigenvalues relative to B'B + λ I, by oversampling (landmarks): {shown}",
        ranges[10.0][0] >= 0.5 and ranges[10.0][1] <= 1.5,
        f"{name}, n = {n:,}, penalty 1e-3, {seeds} seeds, oversampling 10; the theorem has "
        "16 log(d_eff / δ)",
        "the oversampling is smaller than the theorem's",
    )


def least_rank(scale: Scale) -> Outcome:
    """Section 3.2: d_eff is essentially the smallest rank with the error lambda."""
    K, name = kernel_of_rows(scale, "nycflights", scale.size(800, 2000))
    n = K.shape[0]
    values = np.linalg.eigvalsh(K.dense())[::-1].clip(min=0)
    curves: dict[str, Line] = {"least rank": [], "d_eff": []}
    for penalty in (1e-2, 1e-3, 1e-4, 1e-5):
        lam = n * penalty
        curves["least rank"].append((penalty, float((values > lam).sum())))
        curves["d_eff"].append((penalty, float((values / (values + lam)).sum())))
    pairs = list(zip(curves["least rank"], curves["d_eff"], strict=True))
    shown = ", ".join(f"{p:.0e}: {rank:.0f} and {d:.0f}" for (p, rank), (_, d) in pairs)
    ratios = [d / max(rank, 1) for (_, rank), (_, d) in pairs]
    return judged(
        f"eigenvalues above λ, the least rank, and d_eff, by penalty: {shown}",
        min(ratios) >= 0.5 and max(ratios) <= 4,
        f"{name}, n = {n:,}; d_eff is {min(ratios):.1f} to {max(ratios):.1f} times the least rank",
        "the spectrum decays too slowly",
        Plot(
            "section 3.2", "Least rank and effective dimension by penalty",
            [Panel("penalty λ / n", "number", curves, log="xy")],
        ),
    )  # fmt: skip


def canonical_correlations(scale: Scale) -> Outcome:
    """Theorem 19: kernel CCA with landmarks has nearly the correlations of all rows."""
    n, penalty = scale.size(500, 1200), 1e-2
    X, *_, name = sample_rows(scale, "beijing_pm25", n)
    half = X.shape[1] // 2
    views = np.ascontiguousarray(X[:, :half]), np.ascontiguousarray(X[:, half:])
    settings = {"penalty": penalty, "random_state": 0}
    exact = KernelCCA(3, landmarks=len(X), **settings).fit(*views).correlations_
    found: dict[str, float] = {}
    curves: dict[str, Line] = {}
    for m in (25, 50, 100, 200):
        for key, make in (("uniform", Uniform), ("RLS", RecursiveRLS)):
            est = KernelCCA(3, landmarks=make(m), **settings).fit(*views)
            gap = float(np.abs(est.correlations_ - exact).max())
            curves.setdefault(key, []).append((m, gap))
            found[key] = gap
    shown = ", ".join(f"{m}: {gap:.3f}" for m, gap in curves["RLS"])
    return judged(
        f"largest difference of three correlations ({', '.join(f'{c:.2f}' for c in exact)} with "
        f"all rows) by landmarks, {shown}; uniform {found['uniform']:.3f} at 200",
        found["RLS"] <= 0.05,
        f"{name}, n = {len(X):,}, two halves of the features, penalty 1e-2",
        "too few landmarks for this penalty",
        Plot(
            "theorem 19", "Error of the canonical correlations by landmarks",
            [Panel("landmarks m", "largest difference", curves, log="xy")],
        ),
    )  # fmt: skip


def regression_with_features(scale: Scale) -> Outcome:
    """Appendix G: regression with RLS, uniform and random Fourier features of the same number."""
    curves: dict[str, dict[str, Line]] = {}
    n = scale.size(1500, 8000)
    sizes = (50, 100, 200) if scale.quick else (50, 100, 200, 400, 800)
    ways: dict[str, Callable[[int], Selector]] = {"uniform": Uniform, "RLS": RecursiveRLS}
    for name in ("california_housing", "beijing_pm25"):
        X, y, X_test, y_test, label = sample_rows(scale, name, n)
        kernel = Gaussian(nystrom.LENGTHSCALES.get(label, 3.0))
        K = KernelOperator(kernel, as_rows(X), as_rows(X))
        for m in sizes:
            for way in ("Fourier", *ways):
                errors = []
                for seed in range(3):
                    rng = RandomStream(seed)
                    if way == "Fourier":
                        features = FourierMap.build(kernel, X.shape[1], m, rng=rng)
                    else:
                        points = ways[way](m).select(K, rng=rng).points
                        features = NystromMap.build(kernel, points)
                    F = features.features(as_rows(X))
                    gram = F.T @ F + 1e-6 * len(X) * np.eye(F.shape[1])
                    fit = features.features(as_rows(X_test)) @ np.linalg.solve(gram, F.T @ y)
                    errors.append(float(np.sqrt(np.square(fit - y_test).mean())))
                curves.setdefault(label, {}).setdefault(way, []).append((m, float(np.mean(errors))))
    last = {name: {way: points[-1][1] for way, points in of.items()} for name, of in curves.items()}
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{way} {error:.4g}" for way, error in of.items())
        for name, of in last.items()
    )
    return judged(
        f"test RMSE with {sizes[-1]} features, {shown}",
        all(of["RLS"] < of["Fourier"] for of in last.values()),
        f"n = {n:,}, penalty 1e-6, means of three seeds; MSD and other sets are not available",
        "random Fourier features are as good",
        Plot(
            "appendix G", "Test error by the number of features on two sets",
            [Panel("features", "test RMSE", of, name, "xy") for name, of in curves.items()],
        ),
    )  # fmt: skip


def flat_scores(scale: Scale) -> Outcome:
    """From which size and unevenness of the scores RLS has smaller errors than uniform."""
    every = stored_rows("flatness", RATIOS)
    rows, few = ([r for r in every if (r["m"] > FEW) == many] for many in (True, False))
    flat, others = ([r for r in rows if (r["uneven"] < FLAT) == low] for low in (True, False))
    by_rows = []
    for n in dict.fromkeys(row["n"] for row in rows):
        of = [row for row in rows if row["n"] == n]
        by_rows.append(f"n = {n:,}, {len(of)} set{'s' * (len(of) > 1)}: {describe_ratios(of)}")
    panels = []
    for key, title in (("rls", "RLS"), ("auto", "accelerated")):
        lines: dict[str, Line] = {}
        for row in rows:
            lines.setdefault(row["set"], []).append((row["n"], row[key]))
        panels.append(Panel("rows n", "error over uniform", lines, title, "xy"))
    worst = max(few, key=lambda row: row["auto"])
    return judge_cause(
        f"error over the median of uniform landmarks, least to largest of the sets, as many "
        f"landmarks as \"auto\" takes: {'; '.join(by_rows)}. Of these with flat scores (unevenness "
        f"below {FLAT:g}): {describe_ratios(flat)}. {FEW} landmarks: {describe_ratios(few)}, the "
        f"largest on {worst['set']} with {worst['n']:,} rows",
        max(row["rls"] for row in others) < 1 and max(row["auto"] for row in rows) <= 1.05,
        f"benchmark `flatness`: with as many landmarks as \"auto\" takes RLS is below uniform from "
        f"1,000 rows and an unevenness of {min(row['uneven'] for row in others):.2f} on, and equal "
        "within the spread of seeds where scores are flat. A rule by flatness would lose: with the "
        "same unevenness, gains are large or none. Few landmarks of few rows need not gain",
        "benchmark `flatness`: uniform landmarks have smaller errors in some cases",
        Plot("figure 2 flat scores", "Error of RLS over uniform by rows, plain and accelerated",
             panels),
    )  # fmt: skip


def describe_ratios(rows: list[Row]) -> str:
    """Return the least and the largest error over uniform's, of both recursions."""
    ends = [(min(row[key] for row in rows), max(row[key] for row in rows)) for key in RECURSIONS]
    plain, fast = (f"{low:.2f} to {high:.2f}" for low, high in ends)
    return f"{plain}, accelerated {fast}"


def seconds_by_part(scale: Scale) -> Outcome:
    """The cause of figure 3: the seconds of selecting, and of the factor alone."""
    speed = {row["set"]: row for row in stored_rows("nystrom", nystrom.SPEED)}
    texts, selection_is_cause = [], []
    for name, row in speed.items():
        alone = {
            key: seconds_to_error(name, key, nystrom.AT, ("factor",))
            for key in ("uniform", "recursive_rls")
        }
        ratio = alone["recursive_rls"] / alone["uniform"]
        selection_is_cause.append(ratio < 1)
        fast = row["recursive_rls, accelerated"] / row["uniform"]
        texts.append(f"{name} {ratio:.2f} (accelerated, with selection {fast:.2f})")
    many = [
        stored_row("nystrom", nystrom.TIMES, set="nycflights", n=n, m=1000, selector=key)
        for n in (50_000, 200_000)
        for key in ("recursive_rls", "recursive_rls, accelerated")
    ]
    shares = [row["select"] / row["factor"] for row in many]
    return judge_cause(
        f"seconds to the error of 400 uniform landmarks without the selection, RLS over uniform: "
        f"{', '.join(texts)}; selecting 1,000 of 50,000 and 200,000 rows takes {shares[0]:.1f} "
        f"and {shares[2]:.1f} times the factor, accelerated {shares[1]:.2f} and {shares[3]:.2f}",
        all(selection_is_cause),
        "benchmark `nystrom`: fewer landmarks save seconds on all sets, but at n = 5,000 the "
        "selection costs more; from 50,000 rows on the accelerated selection is a small part",
        "the factor alone is not faster",
    )
