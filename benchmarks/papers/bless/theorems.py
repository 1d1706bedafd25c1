"""Theorems 1 and 2, lemma 1 and table 1 of BLESS, on rows at hand."""

from __future__ import annotations

import math

import numpy as np

from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Gaussian
from gramian.landmarks import Bless, Selector, Uniform
from gramian.landmarks.leverage.scores import Dictionary, Scorer
from gramian.landmarks.leverage.selecting import LEAST_LEVEL_ROWS
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import Direct, Falkon, max_iterations, solve

from ...landmarks import scores
from ..item import Outcome, Scale, judged
from ..plot import Line, Panel, Plot
from ..stored import sample_rows

ENOUGH = 20.0
"""Oversampling at which the bounds of theorem 1 hold for all rows of these sets."""


class Spectrum:
    """Eigenvalues and squared eigenvectors of a kernel matrix: its scores at all penalties."""

    def __init__(self, K: KernelOperator) -> None:
        self.values, V = np.linalg.eigh(K.dense())
        self.squares, self.n = V**2, K.shape[0]

    def scores(self, penalty: float) -> np.ndarray:
        """Return the exact leverage scores."""
        values = self.values.clip(min=0)
        found: np.ndarray = self.squares @ (values / (values + self.n * penalty))
        return found


def spectrum_of_rows(scale: Scale, n: int) -> tuple[KernelOperator, Spectrum, str]:
    X, *_, name = sample_rows(scale, "nycflights", n)
    K = scores.operator(X)
    return K, Spectrum(K), name


def all_levels(scale: Scale) -> Outcome:
    """Theorem 1 (a): scores within 1 / (1 + t) and 1 + t, t <= 1, of all rows at all levels."""
    K, exact, name = spectrum_of_rows(scale, scale.size(1000, 3000))
    seeds, low, high = scale.size(3, 10), math.inf, 0.0
    curves: dict[str, Line] = {"largest": [], "smallest": []}
    for seed in range(seeds):
        selector = Bless(penalty=scores.PENALTY, oversampling=ENOUGH)
        for level in selector.select_path(K, rng=RandomStream(seed)):
            approximate = Scorer.build(K, level.dictionary, level.penalty)(np.arange(K.shape[0]))
            ratio = approximate / exact.scores(level.penalty)
            low, high = min(low, float(ratio.min())), max(high, float(ratio.max()))
            if seed == 0:
                curves["largest"].append((level.penalty, float(ratio.max())))
                curves["smallest"].append((level.penalty, float(ratio.min())))
    plot = Plot(
        "theorem 1", "Largest and smallest ratio of approximate to exact scores at each penalty",
        [Panel("penalty of the level", "ratio to exact scores", curves, log="xy")],
    )  # fmt: skip
    return judged(
        f"ratio of all rows, levels and {seeds} seeds from {low:.2f} to {high:.2f}",
        low >= 0.5 and high <= 2,
        f"{name}, n = {K.shape[0]:,}, penalty 1e-5, oversampling {ENOUGH:g} in place of the "
        "constants of the theorem, in the thousands",
        "the oversampling is too small, see the next item",
        plot,
    )


def oversampling_needed(scale: Scale) -> Outcome:
    """The cause of theorem 1 (a): the range of the ratios by oversampling."""
    K, exact, name = spectrum_of_rows(scale, scale.size(1000, 3000))
    truth, ranges = exact.scores(scores.PENALTY), {}
    curves: dict[str, Line] = {"largest": [], "smallest": []}
    for q in (2.0, 5.0, 10.0, 20.0, 40.0):
        chosen = Bless(penalty=scores.PENALTY, oversampling=q).select(K, rng=RandomStream(0))
        J = Dictionary.of(chosen, K.shape[0])
        ratio = Scorer.build(K, J, scores.PENALTY)(np.arange(K.shape[0])) / truth
        ranges[q] = (float(ratio.min()), float(ratio.max()), len(J))
        curves["largest"].append((q, ranges[q][1]))
        curves["smallest"].append((q, ranges[q][0]))
    shown = ", ".join(
        f"{q:g}: {a:.2f} to {b:.2f} ({m} landmarks)" for q, (a, b, m) in ranges.items()
    )
    return judged(
        f"ratio of all rows by oversampling, {shown}",
        ranges[40.0][0] >= 0.5 and ranges[40.0][1] <= 2,
        f"{name}, n = {K.shape[0]:,}, penalty 1e-5",
        "more than 40 is needed",
        Plot(
            "theorem 1 oversampling", "Range of the ratios to exact scores by oversampling",
            [Panel("oversampling q2", "ratio to exact scores", curves, log="x")],
        ),
    )  # fmt: skip


def all_sizes(scale: Scale) -> Outcome:
    """Theorem 1 (b): |J_h| <= q2 d_eff(lambda_h), at each level."""
    K, exact, name = spectrum_of_rows(scale, scale.size(1000, 3000))
    q = scores.OVERSAMPLING
    levels = Bless(penalty=scores.PENALTY, oversampling=q).select_path(K, rng=RandomStream(0))
    curves: dict[str, Line] = {"landmarks": [], "q2 d_eff (dotted)": []}
    worst = 0.0
    for level in levels:
        bound = max(q * float(exact.scores(level.penalty).sum()), LEAST_LEVEL_ROWS)
        worst = max(worst, len(level.dictionary) / bound)
        curves["landmarks"].append((level.penalty, len(level.dictionary)))
        curves["q2 d_eff (dotted)"].append((level.penalty, bound))
    return judged(
        f"landmarks over q2 d_eff, at most {worst:.2f} over {len(levels)} levels",
        worst <= 1.2,
        f"{name}, n = {K.shape[0]:,}, q2 = {q:g}; d_eff of the algorithm is an estimate, and "
        f"levels have at least {LEAST_LEVEL_ROWS} rows, which the bound includes",
        "the estimate of d_eff is too large",
        Plot(
            "theorem 1 sizes", "Landmarks at each level, and q2 times the effective dimension",
            [Panel("penalty of the level", "landmarks", curves, log="xy")],
        ),
    )  # fmt: skip


def runtime_by_penalty(scale: Scale) -> Outcome:
    """Table 1: 1 / lambda candidates times d_eff landmarks, which do not depend on n."""
    n = scale.size(5000, 50_000)
    X, *_, name = sample_rows(scale, "nycflights", n)
    counts, used = [], []
    penalties = (1e-2, 1e-3) if scale.quick else (1e-2, 1e-3, 1e-4)
    for penalty in penalties:
        K = scores.operator(X)
        chosen = Bless(penalty=penalty).select(K, rng=RandomStream(0))
        counts.append(K.meter.evaluations * penalty / float(chosen.effective_dimension or 1))
        used.append(K.meter.evaluations / K.shape[0])
    shown = ", ".join(f"{p:.0e}: {c:.1f}" for p, c in zip(penalties, counts, strict=True))
    return judged(
        f"kernel evaluations over d_eff / λ, by penalty, which the bound keeps constant: {shown}",
        counts[-1] <= counts[0],
        f"{name}, n = {K.shape[0]:,}; {used[-1]:.0f} evaluations per row at the smallest",
        "the evaluations grow faster than the bound",
    )


def uniform_columns(scale: Scale) -> Outcome:
    """Table 1: uniform sampling needs 1 / lambda columns for the same accuracy."""
    K, exact, name = spectrum_of_rows(scale, scale.size(1000, 3000))
    n, penalty = K.shape[0], 1e-4
    truth = exact.scores(penalty)

    def within(selector: Selector) -> tuple[float, int]:
        worst, size = [], 0
        for seed in range(3):
            chosen = selector.select(K, rng=RandomStream(seed))
            ratio = Scorer.build(K, Dictionary.of(chosen, n), penalty)(np.arange(n)) / truth
            worst.append(float(ratio.max()))
            size = max(size, len(chosen.points))
        return float(np.median(worst)), size

    goal, m = within(Bless(penalty=penalty, oversampling=scores.OVERSAMPLING))
    sizes = [s for s in (m, 2 * m, 3 * m, 4 * m) if s < n] + [n]
    needed = next(s for s in sizes if within(Uniform(s))[0] <= goal)
    return judged(
        f"largest ratio {goal:.2f} with {m} landmarks of BLESS; uniform ones need {needed} of "
        f"{n:,} rows; d_eff {truth.sum():.0f}, n times the largest score {n * truth.max():,.0f}",
        needed > m,
        f"{name}, penalty 1e-4, all rows, medians of three seeds",
        "scores are so flat that uniform columns are as accurate",
    )


def as_good_as_krr(scale: Scale) -> Outcome:
    """Theorem 2: FALKON-BLESS with log n iterations has the error of kernel ridge regression."""
    n = scale.size(2000, 6000)
    X, y, X_test, y_test, name = sample_rows(scale, "nycflights", n)
    penalty, kernel, rows = 1 / math.sqrt(len(X)), Gaussian(2.68), as_rows(X)
    K = KernelOperator(kernel, rows, rows)
    chosen = Bless(penalty=penalty).select(K, rng=RandomStream(0))
    points = as_rows(chosen.points)
    problem = NystromProblem(K.against(chosen.points), y, penalty, None, chosen.weight)
    t = math.ceil(math.log(n))
    coef = solve(problem, Falkon(None), stop=[max_iterations(t)]).state.coef
    exact = solve(FullProblem(K, y, penalty), Direct()).state.coef
    test = as_rows(X_test)
    errors = [
        float(np.sqrt(np.square(KernelOperator(kernel, test, at) @ c - y_test).mean()))
        for at, c in ((points, coef), (rows, exact))
    ]
    return judged(
        f"test RMSE {errors[0]:.4g} with {len(chosen.points)} landmarks after {t} iterations, KRR "
        f"{errors[1]:.4g}",
        errors[0] <= 1.01 * errors[1],
        f"{name}, n = {len(X):,}, penalty n^-1/2",
        "too few landmarks",
    )


def dimension_of_samples(scale: Scale) -> Outcome:
    """Lemma 1: the effective dimension of n rows is within a factor of 3 of the population's."""
    sizes = (125, 500, 1000) if scale.quick else (125, 500, 1000, 2000, 4000)
    penalty, found = 1e-3, []
    for n in sizes:
        X, *_ = sample_rows(scale, "nycflights", sizes[-1])
        values = np.linalg.eigvalsh(scores.operator(np.ascontiguousarray(X[:n])).dense())
        found.append(float((values / (values + n * penalty)).sum()))
    ratios = [d / found[-1] for d in found]
    shown = ", ".join(f"n = {n:,}: {d:.1f}" for n, d in zip(sizes, found, strict=True))
    return judged(
        f"d_eff at penalty 1e-3, {shown}",
        1 / 3 <= min(ratios) <= max(ratios) <= 3,
        f"the largest sample in place of the population; within {min(ratios):.2f} and "
        f"{max(ratios):.2f} of it",
        "n is too small for this penalty",
    )
