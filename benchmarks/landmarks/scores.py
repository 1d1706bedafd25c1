"""Approximate leverage scores over exact ones, the protocol of figure 1 of the BLESS paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.kernels import Gaussian
from gramian.landmarks import (
    Bless,
    BlessR,
    RecursiveRLS,
    RPCholesky,
    Selector,
    Squeak,
    TwoPass,
    Uniform,
)
from gramian.landmarks.leverage.candidates import Candidates
from gramian.landmarks.leverage.exact_rls import exact_scores
from gramian.landmarks.leverage.scores import Dictionary, Scorer
from gramian.landmarks.leverage.selecting import draw_independently
from gramian.lowrank import pivoted_cholesky
from gramian.operators import KernelOperator

from ..lib.timing import clock

LENGTHSCALE = 4.0
PENALTY = 1e-5
OVERSAMPLING = 10.0
CHECKED = 5000
DEFINITION, FACTOR = "definition", "pivoted Cholesky"
CERTIFIED = 0.001
PAPER = {
    "BLESS": ("1.06", "0.57 / 2.03", 17),
    "BLESS-R": ("1.06", "0.73 / 1.50", 17),
    "SQUEAK": ("1.06", "0.70 / 1.48", 52),
    "uniform": ("1.09", "0.22 / 3.75", None),
    "RRLS": ("1.59", "1.00 / 2.70", 235),
}
"""Mean, 5 % / 95 % quantiles and seconds, printed in [1]_: SUSY, n = 70,000, M = 10,000."""


@dataclass(frozen=True)
class Method:
    """A way to a dictionary: from a penalty, or from as many rows as BLESS has taken."""

    name: str
    make: Callable[[int], Selector]
    oversampling: float | None = None
    paper: str = ""
    runs: int = 3


METHODS = (
    *(
        Method("BLESS", lambda _, q=q: Bless(penalty=PENALTY, oversampling=q), q, p, r)
        for q, p, r in ((OVERSAMPLING, "BLESS", 10), (5.0, "", 3), (3.0, "", 3))
    ),
    *(
        Method("BLESS-R", lambda _, q=q: BlessR(penalty=PENALTY, oversampling=q), q, p, r)
        for q, p, r in ((OVERSAMPLING, "BLESS-R", 10), (5.0, "", 3), (3.0, "", 3))
    ),
    Method("SQUEAK", lambda _: Squeak(penalty=PENALTY, oversampling=10.0), 10.0, "SQUEAK", 1),
    Method("RRLS", lambda _: RecursiveRLS(penalty=PENALTY, oversampling=10.0), 10.0, "RRLS", 1),
    Method(
        "two-pass, first 4,000",
        lambda _: TwoPass(penalty=PENALTY, oversampling=10.0, first=4000),
        10.0,
        runs=1,
    ),
    Method("uniform", Uniform, None, "uniform", 10),
    Method("RPCholesky, voronoi", RPCholesky, runs=1),
    Method("RPCholesky, ones", lambda m: RPCholesky(m, weights="ones"), runs=1),
)


def operator(X: np.ndarray, lengthscale: float = LENGTHSCALE) -> KernelOperator:
    K = KernelOperator(Gaussian(lengthscale), X, X)
    return KernelOperator(K.kernel, K.rows, K.rows, memory_bytes=1 << 28, meter=K.meter)


def subsample(X: np.ndarray, n: int) -> np.ndarray:
    return np.ascontiguousarray(X[np.random.default_rng(0).permutation(len(X))[:n]])


def certified_scores(K: KernelOperator, penalty: float, d: float) -> tuple[np.ndarray, float, int]:
    """Return the scores of K_hat, a partial Cholesky factorization, as those of K.

    They are too small, by tr(K - K_hat) / (n penalty) in total at most, since K_hat <= K and
    t -> t / (t + n penalty) is operator monotone, with a slope of 1 / (n penalty) at most. It ends
    where this is a thousandth of d, a guess of the effective dimension.

    Returns
    -------
    scores, bound on their total error, rank
    """
    n = K.shape[0]
    rng = RandomStream(0)
    found = pivoted_cholesky(K, target=CERTIFIED * d * n * penalty, rng=rng)
    F = found.factor
    G = F.T @ F
    xp.add_(xp.diagonal(G), n * penalty)
    R = xp.cholesky(G, upper=True)
    scores = np.empty(n, np.float64)
    for rows in xp.split(np.arange(n), 8192):
        x = xp.solve_triangular(R, F[rows], upper=True, left=False)
        scores[rows] = np.square(x).sum(axis=1)
    return scores, found.residual_trace / (n * penalty), len(found.pivots)


def truth(K: KernelOperator, exact: bool) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the scores at PENALTY, and what is to be known about them."""
    n = K.shape[0]
    about: dict[str, Any] = {"n": n, "by": DEFINITION if exact else FACTOR}
    with clock() as seconds:
        if exact:
            scores = exact_scores(K, PENALTY)
        else:
            rough = Bless(penalty=PENALTY).select(K, rng=RandomStream(0))
            d = rough.effective_dimension
            scores, bound, about["rank"] = certified_scores(K, PENALTY, d)
            about["deff at most"] = float(scores.sum()) + bound
    about |= {"effective dimension": float(scores.sum()), "CPU": seconds.cpu}
    top = xp.sort(scores, descending=True)
    about["held by 1 % of the rows"] = float(top[: n // 100].sum() / top.sum())
    about["largest / mean"] = float(top[0] / top.mean())
    return scores, about


def ratios(
    K: KernelOperator, J: Dictionary, scores: np.ndarray, index: np.ndarray
) -> tuple[float, ...]:
    """Return mean, 5 % and 95 % quantile of approximate over exact scores of some rows."""
    ratio = Scorer.build(K, J, PENALTY)(index) / scores[index]
    low, high = np.quantile(ratio, [0.05, 0.95]).tolist()
    return float(ratio.mean()), low, high


def measured(
    K: KernelOperator, method: Method, m: int, scores: np.ndarray, runs: int, checked: int
) -> dict[str, Any]:
    n, found = K.shape[0], []
    index = RandomStream(99).permutation(n)[:checked]
    for seed in range(runs):
        before = K.meter.evaluations
        with clock() as seconds:
            chosen = method.make(m).select(K, rng=RandomStream(seed))
        evaluations = K.meter.evaluations - before
        J = Dictionary.of(chosen, n)
        found.append((*ratios(K, J, scores, index), seconds.cpu, evaluations, len(J)))
    return _row(n, method, runs, np.array(found, dtype=float))


def ideal(K: KernelOperator, scores: np.ndarray, runs: int, checked: int) -> dict[str, Any]:
    """Sample by the true scores: what no other way to the same number of rows should surpass."""
    n, found, rows = K.shape[0], [], Candidates.all(K)
    index = RandomStream(99).permutation(n)[:checked]
    for seed in range(runs):
        rng = RandomStream(seed)
        J = draw_independently(rows, scores[rows.index], OVERSAMPLING, rng)
        found.append((*ratios(K, J, scores, index), 0.0, 0, len(J)))
    method = Method("sampled by the true scores", Uniform, OVERSAMPLING)
    return _row(n, method, runs, np.array(found, dtype=float))


def _row(n: int, method: Method, runs: int, found: np.ndarray) -> dict[str, Any]:
    mean, low, high, cpu, evaluations, size = found.mean(axis=0)
    row: dict[str, Any] = {"n": n, "method": method.name, "oversampling": method.oversampling}
    row |= {"runs": runs, "landmarks": float(size), "mean": mean, "5 %": low, "95 %": high}
    row |= {"CPU": cpu if cpu else None, "evaluations, 10^6": evaluations / 1e6 or None}
    if method.paper:
        paper = PAPER[method.paper]
        row |= {"paper: mean": paper[0], "paper: 5 % / 95 %": paper[1], "paper: seconds": paper[2]}
    return row
