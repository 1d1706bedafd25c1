"""Which landmarks: test error and CPU seconds of each selector at equal numbers of them."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, KernelRidgeClassifier
from gramian._arrays import RandomStream
from gramian.landmarks import (
    Bless,
    KMeans,
    Landmarks,
    RecursiveRLS,
    RPCholesky,
    Selector,
    Uniform,
)
from gramian.operators import KernelOperator

from ..lib import labels, sets
from ..lib.results import Row, read, shown, write
from ..lib.sets import Split, data_set
from ..lib.settings import chosen
from ..lib.timing import Seconds, clock

Tables = dict[str, list[Row]]
SELECTORS: dict[str, Callable[[int], Selector]] = {
    "uniform": Uniform,
    "bless": Bless,
    "recursive_rls": lambda m: RecursiveRLS(m, accelerated=True),
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
}
CLASSIFICATION = ("skin", "kddcup", "magic")
WIDE = ("skin", "kddcup")
SIZES = (500, 2000)
SEEDS = (0, 1, 2)
ROWS = 20_000
NOTES = f"""\
Gaussian kernel; lengthscale and penalty from `settings` (stage 2000: chosen with uniform landmarks)
and, for classification, from a small search, see `lib/labels.py`. At most {ROWS:,} random
training rows, all test rows. `KernelRidge` and `KernelRidgeClassifier` with the selector
as `landmarks`, max_iter=20, tol=1e-4, one thread. Means over {len(SEEDS)} seeds.

- error: test RMSE, or percent of wrong labels; ±: standard deviation over the seeds.
- relative: error over that of uniform landmarks at the same M.
- selection, fit: CPU seconds of choosing, and of the whole fit, choosing included.
- fit / uniform: ratio of the CPU seconds of the fits.
- iterations: of Falkon, and residual: what they end with.
- float64 rows: the sets on which Falkon with float32 rows did not converge for uniform landmarks,
  many of which are nearly the same, with the jitter of 4 eps32 that it had when this was measured
  (now 100 eps32, see `FalkonFactor`). It is no matter of the choice of landmarks, and these rows
  replace those of float32 in the summary (geometric means over the sets)."""


@dataclass(frozen=True)
class Timed(Selector):
    """Another selector, with the seconds that it takes."""

    inner: Selector
    m: int
    seconds: list[Seconds] = field(default_factory=list, compare=False)

    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        with clock() as seconds:
            found = self.inner.select(K, rng=rng)
        self.seconds.append(seconds)
        return found


@dataclass(frozen=True)
class Contest:
    """A set, and what is to be fitted to it."""

    name: str
    split: Split
    lengthscale: float
    penalty: float
    classes: bool

    @classmethod
    def load(cls, name: str, path: Path, rows: int, dtype: str = "float32") -> Contest:
        if name in sets.NAMES:
            split, (lengthscale, penalty) = sets.load(path, dtype), chosen(name, "2000")
        else:
            split, setting = labels.load(path, dtype), labels.SETTINGS[name]
            lengthscale, penalty = setting.lengthscale, setting.penalty
        split = labels.subsampled(split, rows)
        return cls(name, split, lengthscale, penalty, name not in sets.NAMES)

    def run(self, selector: Selector, m: int, seed: int) -> Row:
        timed = Timed(selector, m)
        kind = KernelRidgeClassifier if self.classes else KernelRidge
        est = kind(
            standardize=False,
            lengthscale=self.lengthscale,
            penalty=self.penalty,
            landmarks=timed,
            max_iter=20,
            tol=1e-4,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with clock() as fit:
                est.fit(self.split.X, self.split.y)
        last = est.history_[-1]
        row = {"error": self.error(est.predict(self.split.X_test))}
        row |= {"selection": timed.seconds[0].cpu, "fit": fit.cpu}
        return row | {"iterations": est.n_iter_, "residual": last["rel_residual"]}

    def error(self, prediction: np.ndarray) -> float:
        if self.classes:
            return 100 * float((prediction != self.split.y_test).mean())
        return sets.errors(prediction, self.split.y_test)[0]

    def rows(self, m: int, seeds: tuple[int, ...]) -> Iterator[Row]:
        base: Row = {}
        for name, make in SELECTORS.items():
            runs = [self.run(make(m), m, seed) for seed in seeds]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            base = base or dict(mean)
            row = {"set": self.name, "n": len(self.split.X), "M": m, "selector": name}
            row |= {"error": mean.pop("error"), "±": float(np.std([r["error"] for r in runs]))}
            row |= {"relative": row["error"] / base["error"]} | mean
            yield row | {"fit / uniform": mean["fit"] / base["fit"]}


def summary(rows: list[Row]) -> list[Row]:
    """Return the geometric means over the sets."""
    out: list[Row] = []
    for m in dict.fromkeys(row["M"] for row in rows):
        for name in SELECTORS:
            of = [row for row in rows if (row["M"], row["selector"]) == (m, name)]
            ratios = {"relative error": [row["relative"] for row in of]}
            ratios["fit / uniform"] = [row["fit / uniform"] for row in of]
            row = {"M": m, "selector": name, "sets": len(of)}
            row["best of"] = sum(_is_best(r, rows) for r in of)
            row["worst relative"] = max(ratios["relative error"], default=None)
            out.append(row | {key: float(np.exp(np.mean(np.log(v)))) for key, v in ratios.items()})
    return out


def _is_best(row: Row, rows: list[Row]) -> bool:
    rivals = [r["error"] for r in rows if (r["set"], r["M"]) == (row["set"], row["M"])]
    return bool(row["error"] == min(rivals))


def main(options: argparse.Namespace) -> None:
    """Run all sets, or with --fresh only those of float64 rows, and keep the other table."""
    set_blas_threads(1)
    size, sizes, seeds = (1000, (50,), (0, 1)) if options.quick else (ROWS, SIZES, SEEDS)
    tables = read("selectors") if options.fresh else {}
    work = [("float64", name) for name in WIDE]
    if not options.fresh:
        work = [("float32", name) for name in (*sets.NAMES, *CLASSIFICATION)] + work
    for dtype in dict.fromkeys(dtype for dtype, _ in work):
        tables[f"{dtype} rows"] = []
    with threadpool_limits(1):
        for dtype, name in work:
            if (path := data_set(options.data, name)) is None:
                return
            contest = Contest.load(name, path, size, dtype)
            for m in sizes:
                for row in contest.rows(m, seeds):
                    tables[f"{dtype} rows"].append(shown(row))
            if not options.quick:
                save(tables)


def save(tables: Tables) -> None:
    """Write the tables, with a summary in which float64 rows take the place of float32."""
    wide = tables.get("float64 rows", [])
    known = {(row["set"], row["M"]) for row in wide}
    rows = [r for r in tables["float32 rows"] if (r["set"], r["M"]) not in known]
    named = {name: rows for name, rows in tables.items() if name != "Summary"}
    write("selectors", {"Summary": summary(rows + wide)} | named, NOTES)
