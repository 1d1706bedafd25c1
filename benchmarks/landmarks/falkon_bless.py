"""FALKON with landmarks by leverage scores: condition numbers, iterations, band of penalties."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.lib.timing import set_blas_threads
from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Bless, BlessR, Landmarks, Selector, Uniform
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.problems import NystromProblem
from gramian.solvers import Falkon, max_iterations, solve

from ..lib.labels import load, subsampled
from ..lib.results import ROOT, Row, write
from ..lib.sets import data_set

Tables = dict[str, list[Row]]
TABLES = ("Summary", "Band of penalties", "Iterations", "Condition numbers", "Error by penalty")


@dataclass(frozen=True)
class Case:
    """A binary set, its kernel, and the penalties of BLESS and of FALKON as in the paper's ratio.

    Attributes
    ----------
    choosing : float
        The penalty of BLESS, which decides how many landmarks there are.
    penalty : float
        That of FALKON, a hundredth, as for SUSY in the paper (1e-4 and 1e-6).
    """

    name: str
    lengthscale: float
    choosing: float
    penalty: float
    rows: int


CASES = (
    Case("magic", 1.45, 1e-3, 1e-5, 15_216),
    Case("skin", 0.383, 3e-4, 3e-6, 12_000),
    Case("adult_a9a", 3.2, 3e-3, 3e-5, 12_000),
)
SEEDS = (0, 1, 2)
PENALTIES = tuple(10.0**-k for k in (14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1))
STEPS = (5, 20)
SAMPLERS = ("uniform", "bless", "bless_r")
CHOICES: dict[str, Any] = {"paper": None, "auto": "auto"}
PLOT = ROOT / "docs" / "plots" / "falkon_bless.png"


class Stored(KernelOperator):
    """An operator that keeps its matrix: many solves with the same landmarks."""

    @classmethod
    def of(cls, K: KernelOperator) -> Stored:
        stored = cls(K.kernel, K.rows, K.cols, K.engine, K.memory_bytes, K.meter)
        object.__setattr__(stored, "matrix", K.double().dense())
        return stored

    def normal(
        self,
        v: np.ndarray | None,
        weights: np.ndarray | None = None,
        targets: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return K' (K v - y) from the stored matrix."""
        matrix: np.ndarray = self.matrix  # type: ignore[attr-defined]
        r = np.zeros((), np.float32) if v is None else matrix @ v
        out: np.ndarray = matrix.T @ (r if targets is None else r - targets)
        return out


@dataclass(frozen=True)
class Setup:
    """Training rows with some landmarks, and test rows, as matrices."""

    problem: NystromProblem
    test: np.ndarray
    labels: np.ndarray
    chosen: Landmarks

    def at(self, penalty: float, weight: np.ndarray | None = None) -> NystromProblem:
        weight = self.problem.landmark_weight if weight is None else weight
        return replace(self.problem, penalty=penalty, landmark_weight=weight)

    def run(self, penalty: float, choice: Any, wanted: Sequence[int], auc: bool) -> dict[int, Row]:
        """Return errors on the test rows after the iterations wanted; the last if CG broke down."""
        rows: dict[int, Row] = {}
        last: Row = {}

        def look(_: Any, state: Any) -> None:
            last.update(coef=state.coef, condition=state.metrics["condition"])
            if state.iteration in wanted:
                rows[state.iteration] = self.quality(state.coef, auc)

        stop = [max_iterations(max(wanted))]
        solve(self.at(penalty), Falkon(choice), stop=stop, callbacks=[look])
        for step in wanted:
            row = rows.setdefault(step, self.quality(last["coef"], auc))
            row["condition"] = last["condition"]
        return rows

    def quality(self, coef: np.ndarray, auc: bool) -> Row:
        value = (self.test @ xp.to_float64(coef))[:, 0]
        if not np.isfinite(value).all():
            return {"error": 50.0, "AUC": 0.5}
        error = 100 * float(((value > 0) != self.labels).mean())
        return {"error": error, "AUC": float(roc_auc_score(self.labels, value)) if auc else None}


def setups(case: Case, path: Path, seed: int) -> Iterator[tuple[str, Setup]]:
    """Yield BLESS, then about as many landmarks of BLESS-R and as many uniform ones."""
    split = subsampled(load(path, "float64"), case.rows)
    rows, test = as_rows(split.X), as_rows(split.X_test)
    y = (2.0 * split.y - 1)[:, None]
    kernel = kernels.Gaussian(case.lengthscale)
    K = KernelOperator(kernel, rows, rows)

    def select(selector: Selector) -> Landmarks:
        return selector.select(K, rng=RandomStream(seed))

    bless = select(Bless(penalty=case.choosing))
    m = len(bless.points)
    more = len(select(BlessR(penalty=case.choosing)).points)  # of the same oversampling
    bless_r = select(BlessR(penalty=case.choosing, oversampling=3 * m / more))
    both = {"bless": bless, "bless_r": bless_r}
    for name, chosen in (both | {"uniform": select(Uniform(m))}).items():
        small = Stored.of(K.against(chosen.points))
        problem = NystromProblem(small, y, case.penalty, None, chosen.weight)
        against = KernelOperator(kernel, test, chosen.points).dense()
        yield name, Setup(problem, against, split.y_test.astype(bool), chosen)


# --- condition numbers -----------------------------------------------------------------------


def explained(problem: NystromProblem) -> np.ndarray:
    """Return T'^(-1) K_nm' K_nm T^(-1) / n, positive semidefinite whatever the rounding."""
    matrix: np.ndarray = problem.K.matrix  # type: ignore[attr-defined]
    features = FalkonFactor.build(problem).solve_Tt(xp.contiguous(matrix.T))
    return features @ features.T / len(matrix)


def condition(problem: NystromProblem, G: np.ndarray, choice: Any = None) -> float:
    """Return that of B'HB, as Falkon applies it, from its eigenvalues."""
    B = FalkonFactor.build(problem, choice)
    inner = xp.copy(G)
    xp.add_(xp.diagonal(inner), problem.penalty)
    inner = B.solve_At(B.solve_At(inner).T)
    values = np.linalg.eigvalsh((inner + inner.T) / 2)
    return float(values[-1] / values[0])


def conditions(setup: Setup, penalty: float, G: np.ndarray) -> Row:
    """Return the condition numbers with each weight in A."""
    n, m = setup.problem.K.shape
    ours = xp.to_float64(setup.chosen.weight)
    weights = {
        "unweighted": xp.to_float64(np.ones(m, np.float32)),
        "ours": ours,
        "eq. 15 read literally": ours,
    }
    weights["eq. 15 read literally"] = ours * (n / m)  # n/M on top of A = expected copies
    row = {name: condition(setup.at(penalty, w), G) for name, w in weights.items()}
    row["ours, auto"] = condition(setup.at(penalty), G, "auto")
    return row


def condition_rows(case: Case, name: str, setup: Setup, penalties: tuple[float, ...]) -> list[Row]:
    rows, G = [], explained(setup.problem)
    for penalty in penalties:
        row = {"set": case.name, "landmarks": name, "M": len(setup.chosen.points)}
        estimate = setup.run(penalty, None, [20], False)[20]["condition"]
        row |= {"penalty": f"{penalty:.0e}"} | conditions(setup, penalty, G)
        rows.append(row | {"ours, Lanczos after 20": estimate})
    return rows


def averaged(rows: list[Row], keys: tuple[str, ...]) -> list[Row]:
    """Return geometric means over the seeds of rows that agree in `keys`."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    out = []
    for key, group in groups.items():
        row = dict(zip(keys, key, strict=True))
        for name in (name for name in group[0] if name not in keys):
            row[name] = float(np.exp(np.mean([math.log(r[name]) for r in group])))
        out.append(row)
    return out


# --- iterations and penalties ----------------------------------------------------------------


@dataclass
class Curves:
    """Errors by sampler and penalty of the preconditioner: per iteration, and per penalty."""

    iterations: dict[tuple[str, str], list[list[Row]]]
    penalties: dict[tuple[str, str, int], list[list[float]]]
    sizes: list[int]

    @classmethod
    def empty(cls) -> Curves:
        kinds = list(product(SAMPLERS, CHOICES))
        by_step = {(*kind, step): [] for kind in kinds for step in STEPS}
        return cls({kind: [] for kind in kinds}, by_step, [])

    def add(self, case: Case, name: str, setup: Setup) -> None:
        for label, choice in CHOICES.items():
            curve = setup.run(case.penalty, choice, range(max(STEPS) + 1), True)
            self.iterations[name, label].append([row for _, row in sorted(curve.items())])
            grid = [setup.run(penalty, choice, STEPS, False) for penalty in PENALTIES]
            for step in STEPS:
                errors = [run[step]["error"] for run in grid]
                self.penalties[name, label, step].append(errors)

    def mean(self, name: str, label: str, key: str) -> np.ndarray:
        """Return the mean over seeds of a quantity at iterations 0, 1, ..."""
        runs = self.iterations[name, label]
        return np.mean([[row[key] for row in run] for run in runs], axis=0)


def band(errors: np.ndarray, best: float) -> tuple[float, float, float]:
    """Return the ends and the width in decades of the longest run of accuracies near the best.

    Within 95 % of the best accuracy; ends are interpolated between penalties.
    """
    log = np.log10(PENALTIES)
    accuracy, least = 100 - errors, 0.95 * (100 - best)
    fine = np.linspace(log[0], log[-1], 2601)
    good = np.interp(fine, log, accuracy) >= least
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(int), [0]])))
    if len(edges) == 0:
        return math.nan, math.nan, 0.0
    runs = edges.reshape(-1, 2)
    start, stop = runs[np.argmax(runs[:, 1] - runs[:, 0])]
    low, high = fine[start], fine[stop - 1]
    return 10.0**low, 10.0**high, float(high - low)


def band_rows(case: Case, curves: Curves) -> list[Row]:
    """Return the bands: of mean errors, against the best of all and, as in Fig. 3, 1.05 x it."""
    means = {key: np.mean(runs, axis=0) for key, runs in curves.penalties.items()}
    rows = []
    for (label, step), name in product(product(CHOICES, STEPS), SAMPLERS):
        errors = means[name, label, step]
        best = min(float(means[other, label, step].min()) for other in SAMPLERS)
        low, high, width = band(errors, best)
        row = {"set": case.name, "preconditioner": label, "iterations": step, "landmarks": name}
        row |= {"best error": float(errors.min()), "accuracy: from": f"{low:.1e}"}
        row |= {"accuracy: to": f"{high:.1e}", "accuracy: decades": width}
        low, high, width = band(errors, 100 - (100 - 1.05 * best) / 0.95)
        row |= {"error: from": f"{low:.1e}", "error: to": f"{high:.1e}"}
        rows.append(row | {"error: decades": width})
    return rows


def first_at_most(values: np.ndarray, bound: float) -> int | str:
    """Return the first iteration from which a curve is not above a bound."""
    at = np.flatnonzero(values <= bound + 1e-9)
    return int(at[0]) if len(at) else f"> {len(values) - 1}"


def summary_rows(case: Case, curves: Curves) -> list[Row]:
    rows = []
    for label in CHOICES:
        error = {name: curves.mean(name, label, "error") for name in SAMPLERS}
        auc = {name: curves.mean(name, label, "AUC") for name in SAMPLERS}
        last, near = error["uniform"][-1], 1.01 * min(curve[-1] for curve in error.values())
        row = {"set": case.name, "preconditioner": label, "M": round(np.mean(curves.sizes))}
        row |= {f"{name} at 5": error[name][5] for name in SAMPLERS}
        row |= {f"{name} at 20": error[name][-1] for name in SAMPLERS}
        row["uniform reaches its 20th"] = first_at_most(error["uniform"], last)
        for name in SAMPLERS[1:]:
            row[f"{name} reaches it"] = first_at_most(error[name], last)
            row[f"{name} reaches that AUC"] = first_at_most(-auc[name], -auc["uniform"][-1])
        for name in SAMPLERS:
            row[f"{name} within 1 %"] = first_at_most(error[name], near)
        rows.append(row)
    return rows


def iteration_rows(case: Case, curves: Curves) -> list[Row]:
    rows = []
    for k in range(1, max(STEPS) + 1):
        row: Row = {"set": case.name, "iteration": k}
        for name, label in curves.iterations:
            row[f"error {name}, {label}"] = float(curves.mean(name, label, "error")[k])
        for name, label in curves.iterations:
            row[f"AUC {name}, {label}"] = f"{curves.mean(name, label, 'AUC')[k]:.4f}"
        rows.append(row)
    return rows


def penalty_rows(case: Case, curves: Curves) -> list[Row]:
    rows = []
    for i, penalty in enumerate(PENALTIES):
        row: Row = {"set": case.name, "penalty": f"{penalty:.0e}"}
        for (name, label, step), runs in curves.penalties.items():
            row[f"{name}, {label}, {step}"] = float(np.mean([run[i] for run in runs]))
        rows.append(row)
    return rows


# --- plot ------------------------------------------------------------------------------------

COLORS = {"uniform": "tab:orange", "bless": "tab:blue", "bless_r": "tab:green"}


def plot(results: dict[str, Curves], cases: tuple[Case, ...]) -> None:
    """Draw one row for each set: error by iteration, error by penalty."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [case for case in cases if case.name in results]
    figure, axes = pyplot.subplots(len(shown), 2, figsize=(11, 3.4 * len(shown)), squeeze=False)
    for (left, right), case in zip(axes, shown, strict=True):
        _by_iteration(left, case, results[case.name])
        _by_penalty(right, case, results[case.name])
    figure.tight_layout()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=110)
    pyplot.close(figure)


def _by_iteration(axis: Any, case: Case, curves: Curves) -> None:
    for (name, label), runs in curves.iterations.items():
        errors = np.array([[row["error"] for row in run] for run in runs])[:, 1:]
        x, style = np.arange(1, errors.shape[1] + 1), "-" if label == "paper" else "--"
        axis.plot(x, errors.mean(axis=0), style, color=COLORS[name], label=f"{name}, {label}")
        if label == "paper":
            axis.fill_between(x, *_range(errors), color=COLORS[name], alpha=0.15, lw=0)
    _scale(axis, np.array([[row["error"] for row in run[1:]] for run in runs]))
    m = round(np.mean(curves.sizes))
    axis.set(title=f"{case.name}: M = {m:,}, penalty {case.penalty:.0e}")
    axis.set(xlabel="iteration", ylabel="test error, %", xticks=(1, 5, 10, 15, 20))
    axis.legend(title="landmarks, preconditioner", fontsize=8, title_fontsize=8)


def _by_penalty(axis: Any, case: Case, curves: Curves) -> None:
    styles = {("paper", 5): "-", ("auto", 5): "--", ("paper", 20): ":"}
    for (name, label, step), runs in curves.penalties.items():
        if (label, step) not in styles:
            continue
        errors, style = np.array(runs), styles[label, step]
        text = f"{name}, {label}, {step} iterations"
        axis.semilogx(PENALTIES, errors.mean(axis=0), style, color=COLORS[name], label=text)
        if (label, step) == ("paper", 5):
            axis.fill_between(PENALTIES, *_range(errors), color=COLORS[name], alpha=0.15, lw=0)
    _scale(axis, np.array(list(curves.penalties.values())))
    axis.set(title=f"{case.name}: after 5 and 20 iterations", xlabel="penalty")
    axis.set(ylabel="test error, %")
    axis.legend(fontsize=8)


def _scale(axis: Any, errors: np.ndarray) -> None:
    if errors.max() > 5 * errors.min():
        axis.set_yscale("log")


def _range(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return errors.min(axis=0), errors.max(axis=0)


# --- all of it -------------------------------------------------------------------------------

NOTES = f"""\
Binary sets, standardized, +1 and -1 as targets, float64, Gaussian kernel (adult_a9a: lengthscale
3.2, magic: 1.45, skin: 0.383); {len(SEEDS)} seeds, which choose the landmarks. `Bless` at 100 times
FALKON's penalty, as the paper does for SUSY (1e-4 and 1e-6), decides M; `Uniform` draws as many,
`BlessR` about as many, by its oversampling. Landmarks are distinct rows.
SUSY itself is not there: skin is the largest binary set (12,000 of its 196,046 training rows),
adult_a9a (12,000 of 32,561) and magic (all 15,216) the large ones that are as noisy.

- preconditioner: "paper" has the penalty of the problem inside A, "auto" (the default of `Falkon`)
  a larger one where M asks for it. Both weight landmarks by 1 / (n probability).
- Summary: test error in percent after 5 and 20 iterations; the first iteration at which the mean
  error (or AUC) is that of uniform after 20; the first within 1 % of the better one's last error.
- Band of penalties: the longest run of penalties, 1e-14 to 1e-1, in which the mean accuracy is at
  least 95 % of the best of all samplers ("accuracy"), or the mean error at most 105 % of the
  least ("error", the stricter reading of Fig. 3); linear between the penalties tried.
- Condition numbers: of B'HB from its eigenvalues, the paper's penalty inside A unless it says auto;
  geometric means over seeds. Unweighted: A = I. Ours: weight m / (n A_jj), A_jj the probability
  that a row is drawn, over the number of its equals. Literal: the factor n/M of eq. 15 on top of
  that, which counts n/M twice."""


def measure(case: Case, path: Path, tables: Tables, seeds: tuple[int, ...]) -> Curves:
    curves, known = Curves.empty(), []
    penalties = tuple(case.penalty * 10.0**k for k in (2, 1, 0, -1, -2))
    for seed in seeds:
        for name, setup in setups(case, path, seed):
            print(case.name, seed, name, len(setup.chosen.points), flush=True)
            curves.add(case, name, setup)
            curves.sizes.append(len(setup.chosen.points))
            known += condition_rows(case, name, setup, penalties)
    for row in known:
        row["M"] = round(np.mean(curves.sizes))
    tables["Summary"] += summary_rows(case, curves)
    tables["Band of penalties"] += band_rows(case, curves)
    tables["Iterations"] += iteration_rows(case, curves)
    tables["Condition numbers"] += averaged(known, ("set", "landmarks", "M", "penalty"))
    tables["Error by penalty"] += penalty_rows(case, curves)
    return curves


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables: Tables = {name: [] for name in TABLES}
    results: dict[str, Curves] = {}
    cases = CASES
    if options.quick:
        cases = tuple(replace(case, rows=1500, choosing=1e-2) for case in CASES)
    for case in cases:
        if (path := data_set(options.data, case.name)) is None:
            return
        results[case.name] = measure(case, path, tables, SEEDS[:1] if options.quick else SEEDS)
        if not options.quick:
            write("falkon_bless", tables, NOTES)
            plot(results, CASES)
