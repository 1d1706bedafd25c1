"""Where the seconds of FALKON go, with torch tiles and with compiled ones."""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS
from gramian.operators import Engine, KernelOperator, NativeEngine, TiledEngine
from gramian.preconditioners import FalkonFactor
from gramian.problems import NystromProblem
from gramian.solvers import Falkon

from ..lib import sets
from ..lib.sets import data_set
from ..lib.settings import chosen
from ..lib.tables import Tables
from ..lib.timing import Seconds, clock

SET = "beijing_pm25"
SIZES, ITERATIONS = (2000, 10_000), 20
ENGINES: dict[str, type[Any]] = {"torch": TiledEngine, "native": NativeEngine}
PARTS, WHOLE = "Parts", "Whole"
REST = "triangular solves, right-hand side"


@dataclass(frozen=True)
class Timed(Falkon):
    """FALKON that notes how long its factorizations took."""

    spent: Seconds = field(default_factory=Seconds, kw_only=True, compare=False)

    def factor(self, problem: NystromProblem) -> FalkonFactor:
        with clock() as seconds:
            factor = super().factor(problem)
        self.spent.wall, self.spent.cpu = seconds.wall, seconds.cpu
        return factor


def parts(split: sets.Split, kernel: kernels.Kernel, penalty: float, m: int, engine: Engine) -> Any:
    """Return seconds by part, and the RMSE on test rows."""
    rows = as_rows(split.X)
    K = KernelOperator(kernel, rows, rows, engine)
    rng = RandomStream(0)
    spent: dict[str, Seconds] = {}
    with clock() as spent["landmarks"]:
        chosen = RecursiveRLS(m=m, accelerated=True).select(K, rng=rng)
    targets = xp.to_float64(split.y)[:, None]
    at = K.against(chosen.points)
    problem = NystromProblem(at, targets, penalty, None, chosen.weight, index=chosen.index)
    with clock() as spent["entries of K_mm"]:
        xp.to_float64(problem.K_mm).dense()
    solver = Timed()
    with clock() as iterations:
        *_, last = itertools.islice(solver.iterate(problem, rng=rng), ITERATIONS + 1)
    spent["factorisation"] = _without(solver.spent, spent["entries of K_mm"])
    with clock() as one_pass:
        problem.K.normal(last.coef)
    passes = Seconds(ITERATIONS * one_pass.wall, ITERATIONS * one_pass.cpu)
    spent[f"{ITERATIONS} passes"] = passes
    spent[REST] = _without(_without(iterations, solver.spent), passes)
    with clock() as spent["prediction"]:
        told = problem.model(last.coef).predict(split.X_test, engine=engine)
    return spent, sets.errors(told[:, 0], split.y_test)[0]


def _without(whole: Seconds, part: Seconds) -> Seconds:
    return Seconds(whole.wall - part.wall, whole.cpu - part.cpu)


def measure(tables: Tables, split: sets.Split, m: int) -> None:
    lengthscale, penalty = chosen(SET, "2000")
    kernel = kernels.Gaussian(lengthscale)
    for name, engine in ENGINES.items():
        if tables.has(WHOLE, M=m, engine=name):
            continue
        spent, rmse = parts(split, kernel, penalty, m, engine())
        about = {"M": m, "engine": name}
        for part, seconds in spent.items():
            tables.add(PARTS, about | {"part": part, "CPU s": seconds.cpu, "wall s": seconds.wall})
        cpu = sum(seconds.cpu for seconds in spent.values())
        wall = sum(seconds.wall for seconds in spent.values())
        tables.add(WHOLE, about | {"n": len(split.X), "RMSE": rmse, "CPU s": cpu, "wall s": wall})


NOTES = f"""\
{SET}, the largest regression set: all training rows, standardized, float32, Gaussian kernel;
{ITERATIONS} iterations of `Falkon`, landmarks by the accelerated recursion (the default). Two
threads; CPU seconds of both together. A pass is `K.normal` on all rows, timed once after the fit;
what the iterations took beyond their passes is in "{REST}"."""


def main(options: argparse.Namespace) -> None:
    if (path := data_set(options.data, SET)) is None:
        return
    tables = Tables("parts", (PARTS, WHOLE), NOTES, options)
    split = loaded(path, options.quick)
    for m in (200,) if options.quick else SIZES:
        measure(tables, split, m)


def loaded(path: Path, quick: bool) -> sets.Split:
    split = sets.load(path)
    return sets.held_out(split, 4000) if quick else split
