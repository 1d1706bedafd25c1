"""Lengthscale and penalty of each real set, chosen on held-out training rows."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import product

from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge

from ..lib.results import Row, shown, write
from ..lib.sets import NAMES, Split, data_set, errors, held_out, load, median_distance
from ..lib.settings import best, record

FACTORS = (0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0, 1.5, 2.2)
PENALTIES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
STAGES = {"1000": (20_000, 1000), "2000": (50_000, 2000)}
QUICK_STAGES = {"1000": (500, 50), "2000": (500, 100)}
"""Rows and landmarks of each stage."""

NOTES = """\
Gaussian kernel, one lengthscale: factor times the median distance of 1,000 standardized rows.
Validation RMSE on other training rows, a quarter as many; the test rows stay unseen.

- stage 1000: every other one of 9 factors with every other one of 7 penalties; M = 1,000.
- stage 2000: the best factor and penalty with their neighbours on the full lists; M = 2,000. Its
  choice is used for all M: it is not chosen again for M = 10,000.

Falkon, 20 iterations. The smallest RMSE wins; within 0.02 % of it the largest penalty."""


def score(split: Split, m: int, lengthscale: float, penalty: float) -> float:
    est = KernelRidge(
        standardize=False,
        lengthscale=lengthscale,
        penalty=penalty,
        landmarks=m,
        max_iter=20,
        tol=1e-4,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(split.X, split.y)
    return errors(est.predict(split.X_test), split.y_test)[0]


def around(choice: Row) -> tuple[tuple[float, ...], tuple[float, ...]]:
    at, p = FACTORS.index(choice["factor"]), PENALTIES.index(choice["penalty"])
    return FACTORS[max(at - 1, 0) : at + 2], PENALTIES[max(p - 1, 0) : p + 2]


def choose(
    name: str, full: Split, stages: dict[str, tuple[int, int]], known: list[Row]
) -> Iterator[Row]:
    median = median_distance(full.X)
    factors, penalties = FACTORS[::2], PENALTIES[::2]
    for stage, (n, m) in stages.items():
        split, tried = held_out(full, n), []
        for factor, penalty in product(factors, penalties):
            row = {"set": name, "stage": stage, "n": len(split.X), "M": m, "factor": factor}
            row |= {"lengthscale": factor * median, "penalty": penalty}
            before = [old for old in known if row.items() <= old.items()]
            rmse = before[0]["RMSE"] if before else score(split, m, factor * median, penalty)
            tried.append(row | {"RMSE": rmse})
            yield tried[-1]
        factors, penalties = around(best(tried))


def main(options: argparse.Namespace) -> None:
    rows: list[Row] = []
    known = [] if options.fresh or options.quick else record()
    for name in NAMES[-1:] if options.quick else NAMES:
        if (path := data_set(options.data, name)) is None:
            return
        stages = QUICK_STAGES if options.quick else STAGES
        for row in choose(name, load(path), stages, known):
            rows.append(shown(row))
            if not options.quick:
                save(rows + [old for old in known if old not in rows])


def save(rows: list[Row]) -> None:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["stage"]), []).append(row)
    write("settings", {"chosen": [best(group) for group in groups.values()], "tried": rows}, NOTES)
