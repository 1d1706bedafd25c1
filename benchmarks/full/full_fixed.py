"""Fixed and fresh blocks: the least eigenvalue that they leave, and the rate that it predicts."""

from __future__ import annotations

import argparse
import math
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.problems import FullProblem
from gramian.solvers import ASkotch, Direct, Skotch, Solver, solve
from gramian.solvers.askotch.block_rules import BlockRule

from ..lib.results import Row
from ..lib.tables import Tables
from .full_linear import BLOCKS, GOAL, synthetic

RATES = "Rates"
ROWS, MOST_PASSES, EVERY, DRAWN = 2000, 320, 4, 200

NOTES = f"""\
The problem of full_linear with {ROWS:,} rows, {BLOCKS} blocks. In the mean over blocks a step
of Skotch is w - w* -> (I - H A / {BLOCKS}) (w - w*), A the matrix of the system, H the sum over
blocks of I_B (L_B P_B)^-1 I_B', of fresh ones {BLOCKS} times the mean of {DRAWN}. The slowest
direction has the least eigenvalue mu of H A; the suboptimality falls by exp(-2 mu) a pass there.

- mu: of H A, by its eigenvalues. predicted: ln 10 / (2 mu), passes for a factor of ten.
- Skotch, ASkotch: the same, measured, over the last 80 passes before 1e-20 (a suboptimality: its
  root, the error, is 1e-10 then) or {MOST_PASSES} passes; to {GOAL:.0e}: passes until there."""


def mean_step(rule: BlockRule, blocks: int) -> np.ndarray:
    """Return H: of the blocks of a partition, or of so many random ones."""
    n = rule.blocks.n
    H, none = np.zeros((n, n), np.float64), np.empty(0, np.float32)
    fixed = hasattr(rule, "partition")
    for k in range(BLOCKS if fixed else blocks):
        B = rule.block(k) if fixed else rule.draw(k, none)  # type: ignore[attr-defined]
        inverse = (B.P @ np.eye(len(B.index), dtype=np.float64)) / B.L
        H[B.index[:, None], B.index] += inverse * (1 if fixed else BLOCKS / blocks)
    return H


def least_eigenvalue(H: np.ndarray, C: np.ndarray) -> float:
    """Return that of H A, where A = C C'."""
    return float(np.linalg.eigvalsh(C.T @ H @ C)[0])


def measured(problem: FullProblem, solver: Solver[Any, Any], best: np.ndarray) -> tuple[str, str]:
    """Return passes for a factor of ten at the end, and passes to the goal."""
    least, curve = float((best * problem.rhs).sum()) / 2, []
    states = solver.iterate(problem, rng=RandomStream(0))
    for state in islice(states, 0, BLOCKS * MOST_PASSES + 1, BLOCKS * EVERY):
        away = state.coef - best
        curve.append(float((away * problem.apply(away)).sum()) / 2 / least)
        if curve[-1] < 1e-20:
            break
    there = next((str(EVERY * k) for k, value in enumerate(curve) if value < GOAL), "-")
    back = min(80 // EVERY, len(curve) - 1)
    slope = math.log10(curve[-1 - back] / curve[-1]) / (EVERY * back)
    return f"{1 / slope:.1f}", there


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("full_fixed", (RATES,), NOTES, options)
    n = 500 if options.quick else ROWS
    problem, b = synthetic(n), n // BLOCKS
    best = solve(problem, Direct()).state.coef
    A = problem.K.double().dense()
    xp.add_(xp.diagonal(A), float(problem.ridge))
    C = np.linalg.cholesky(A)
    for how, rank in (("nystrom", b // 10), ("nystrom", b // 2), ("exact", 1)):
        for blocks in ("fixed", "fresh"):
            name = "exact" if how == "exact" else f"rank {rank}"
            if tables.has(RATES, solved=name, blocks=blocks):
                continue
            mu = least_eigenvalue(
                mean_step(Skotch(b, rank, blocks, how).rule(problem, 0), DRAWN), C
            )
            row: Row = {"solved": name, "blocks": blocks, "mu": mu}
            row["predicted"] = f"{math.log(10) / (2 * mu):.1f}"
            for kind in (Skotch, ASkotch):
                rate, there = measured(problem, kind(b, rank, blocks, how), best)
                row |= {kind.__name__: rate, f"{kind.__name__} to {GOAL:.0e}": there}
            tables.add(RATES, row)
