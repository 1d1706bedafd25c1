"""Lengthscale and penalty of each real set, chosen on held-out training rows."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge

from .common import RESULTS, data_set, write
from .sets import NAMES, Split, errors, held_out, load, median_distance

FACTORS = (0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0, 1.5, 2.2)
PENALTIES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
STAGES = {"1000": (20_000, 1000), "2000": (50_000, 2000)}
NOTES = """\
Gaussian kernel, one lengthscale: factor times the median distance of 1,000 standardised rows.
Validation RMSE on other training rows, a quarter as many; the test rows stay unseen.

- stage 1000: every other one of 9 factors with every other one of 7 penalties; M = 1,000.
- stage 2000: the best factor and penalty with their neighbours on the full lists; M = 2,000. Its
  choice is used for all M: it is not chosen again for M = 10,000.

Falkon, 20 iterations. The smallest RMSE wins; within 0.02 % of it the largest penalty."""


def score(split: Split, m: int, lengthscale: float, penalty: float) -> float:
    est = KernelRidge(
        lengthscale=lengthscale, penalty=penalty, landmarks=m, max_iter=20, tol=1e-4, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(split.X, split.y)
    return errors(est.predict(split.X_test), split.y_test)[0]


def best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    least = min(row["RMSE"] for row in rows)
    good = [row for row in rows if row["RMSE"] <= least * 1.0002]
    return max(good, key=lambda row: (row["penalty"], -row["RMSE"]))


def around(choice: dict[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    at, p = FACTORS.index(choice["factor"]), PENALTIES.index(choice["penalty"])
    return FACTORS[max(at - 1, 0) : at + 2], PENALTIES[max(p - 1, 0) : p + 2]


def choose(name: str, full: Split, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    median = median_distance(full.X)
    factors, penalties = FACTORS[::2], PENALTIES[::2]
    for stage, (n, m) in STAGES.items():
        split, tried = held_out(full, n), []
        for factor, penalty in product(factors, penalties):
            row = {"set": name, "stage": stage, "n": len(split.X), "M": m, "factor": factor}
            row |= {"lengthscale": factor * median, "penalty": penalty}
            before = [old for old in known if row.items() <= old.items()]
            rmse = before[0]["RMSE"] if before else score(split, m, factor * median, penalty)
            tried.append(row | {"RMSE": rmse})
            print(*tried[-1].values(), flush=True)
            yield tried[-1]
        factors, penalties = around(best(tried))


def record() -> list[dict[str, Any]]:
    """Return what has been tried, also by a run that was interrupted."""
    path = RESULTS / "settings.json"
    return json.loads(path.read_text())["tables"]["tried"] if path.is_file() else []


def chosen(name: str, stage: str) -> tuple[float, float]:
    """Return the lengthscale and the penalty chosen for a set."""
    choice = best([row for row in record() if (row["set"], row["stage"]) == (name, stage)])
    return choice["lengthscale"], choice["penalty"]


def main(options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    known = [] if options.fresh else record()
    for name in NAMES:
        if (path := data_set(options.data, name)) is None:
            return
        for row in choose(name, load(path), known):
            rows.append(row)
            save(rows + [old for old in known if old not in rows])


def save(rows: list[dict[str, Any]]) -> None:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["stage"]), []).append(row)
    write("settings", {"chosen": [best(group) for group in groups.values()], "tried": rows}, NOTES)
