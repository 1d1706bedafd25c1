"""FALKON beside what else may minimise over the same landmarks: test error by iterations."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import Falkon, max_iterations, solve

from ..lib import plots
from ..lib.results import ROOT, Row
from ..lib.sets import data_set, held_out, load
from ..lib.tables import Tables, asked

ITERATIONS, NEEDED = "Error by iterations", "Iterations to the error of FALKON"
SETS = ("higgs_11k", "nycflights", "beijing_pm25")
ROWS, LANDMARKS, BATCH = 20_000, 1000, 100
LOOKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300)
PENALTIES = tuple(10.0**-k for k in range(3, 11))
STEPS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.1)
WITHIN = (1.05, 1.01, 1.002)
JITTER = 1e-12
PLOT = ROOT / "docs" / "plots" / "iterations.png"
COLORS = {
    "FALKON": "#0072b2",
    "NYTRO CG": "#009e73",
    "NYTRO GD": "#e69f00",
    "NYTRO SGD": "#d55e00",
    "Nystrom CG": "#56b4e9",
    "Nystrom GD": "#7f7f7f",
    "Nystrom SGD": "#222222",
}

NOTES = f"""\
Figure 1 of FALKON's paper in kind: {ROWS:,} training rows, {LANDMARKS:,} uniform landmarks,
Gaussian kernel with the median distance as lengthscale, float64; RMSE of all test rows by the
number of iterations, each of one pass over the rows.

- FALKON: `gramian.solvers.Falkon`, conjugate gradient on problem (8) with the preconditioner.
- Nystrom GD: gradient descent on problem (8), its step one over the largest eigenvalue. Nystrom
  SGD: the same with the gradient of {BATCH} random rows, each row once in a pass. Nystrom CG:
  conjugate gradient on problem (8) as it stands, without a preconditioner.
- NYTRO GD, SGD, CG: the same, and conjugate gradient, on least squares without a penalty over
  K_nm T^-1 with T'T = K_mm (Camoriano et al. 2016): the number of iterations is what smooths.
- Penalty of FALKON and of Nystrom GD, SGD and CG: the best of {len(PENALTIES)} on held-out rows
  with FALKON. Steps of SGD: the best of {STEPS} times one over the mean squared norm of a row, on
  held-out rows after ten passes.
- {NEEDED}: the first of {LOOKS[-1]} at which the test error is at most so many times FALKON's
  after 100; -: none of those looked at. The least error is that of early stopping by the test
  rows, which no user has: it favours the others."""


@dataclass(frozen=True)
class Setup:
    """The matrices of one problem.

    Attributes
    ----------
    problem : NystromProblem
        Its penalty is not used.
    K : Tensor of shape (n, m)
    root : Tensor of shape (m, m)
        Upper triangular, T'T = K_mm.
    K_held, y_held : Tensor of shape (v, m) and (v, 1)
    K_test, y_test : Tensor of shape (w, m) and (w, 1)
    """

    problem: NystromProblem
    K: np.ndarray
    root: np.ndarray
    K_held: np.ndarray
    y_held: np.ndarray
    K_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, path: Path, rows: int, m: int) -> Setup:
        """Return that of a set."""
        whole = load(path, "float64")
        split = held_out(whole, rows)
        X, held, test = (x for x in (split.X, split.X_test, whole.X_test))
        y, y_held, y_test = (v[:, None] for v in (split.y, split.y_test, whole.y_test))
        kernel = kernels.make("gaussian", lengthscale="median").resolve(X[:1000])
        some = RandomStream(0).permutation(len(X))[:m]
        Z = np.unique(X[some], axis=0)
        K_mm = kernel(Z, Z)
        xp.add_(xp.diagonal(K_mm), JITTER * len(Z))
        root = xp.cholesky(K_mm, upper=True)
        operator = KernelOperator(kernel, as_rows(X), as_rows(Z))
        return cls(
            NystromProblem(operator, y, 1.0), kernel(X, Z), root,
            kernel(held, Z), y_held, kernel(test, Z), y_test,
        )  # fmt: skip

    @property
    def y(self) -> np.ndarray:
        return self.problem.targets

    def error(self, coef: np.ndarray, *, held: bool = False) -> float:
        """Return the RMSE of the test rows, or of those that are held out."""
        K, y = (self.K_held, self.y_held) if held else (self.K_test, self.y_test)
        error = float(np.sqrt(np.square(K @ coef - y).mean()))
        return error if np.isfinite(error) else float("inf")


Iterates = Iterator[np.ndarray]


def falkon(setup: Setup, penalty: float, most: int) -> Iterates:
    """Yield the coefficients of FALKON."""
    found: list[np.ndarray] = []
    problem = NystromProblem(setup.problem.K, setup.y, penalty)
    stop = [max_iterations(most)]
    solve(problem, Falkon(), stop=stop, callbacks=[lambda _, state: found.append(state.coef)])
    yield from found[1:]
    while True:  # conjugate gradient has ended
        yield found[-1]


def descent(gradient: Callable[[np.ndarray], np.ndarray], step: float, m: int) -> Iterates:
    """Yield the iterates of gradient descent from zero."""
    coef = np.zeros((m, 1), np.float64)
    while True:
        coef = coef - step * gradient(coef)
        yield coef


def stochastic(
    A: np.ndarray, y: np.ndarray, step: float, decay: Callable[[np.ndarray], np.ndarray]
) -> Iterates:
    """Yield what passes of random batches come to, from zero."""
    coef, rng = np.zeros((A.shape[1], 1), np.float64), RandomStream(0)
    step = step / float(np.square(A).sum(axis=1).mean())
    while True:
        for rows in xp.split(rng.permutation(len(A)), BATCH):
            part = A[rows]
            coef = coef - step * (part.T @ (part @ coef - y[rows]) / len(rows) + decay(coef))
        yield coef


def conjugate(A: np.ndarray, y: np.ndarray) -> Iterates:
    """Yield the iterates of conjugate gradient on the normal equations, from zero."""
    coef = np.zeros((A.shape[1], 1), np.float64)
    r = A.T @ y
    p, rho = xp.copy(r), float(np.square(r).sum())
    while True:
        q = A @ p
        alpha = rho / float(np.square(q).sum())
        coef, r = coef + alpha * p, r - alpha * (A.T @ q)
        rho, before = float(np.square(r).sum()), rho
        p = r + rho / before * p
        yield coef


def largest(A: np.ndarray, times: int = 50) -> float:
    """Return the largest eigenvalue of A'A, by the power method."""
    v = np.ones((A.shape[1], 1), np.float64)
    for _ in range(times):
        v = A.T @ (A @ (v / xp.norm(v)))
    return 1.02 * float(xp.norm(v))


def methods(setup: Setup) -> Iterator[tuple[str, str, Iterates]]:
    """Yield the name of each method, what was chosen for it, and its iterates."""
    n, m, K, y = len(setup.y), len(setup.root), setup.K, setup.y

    def after(iterates: Iterates, count: int) -> float:
        for _ in range(count - 1):
            next(iterates)
        return setup.error(next(iterates), held=True)

    penalty = min(PENALTIES, key=lambda lam: after(falkon(setup, lam, 20), 20))
    yield "FALKON", f"penalty {penalty:g}", falkon(setup, penalty, LOOKS[-1])
    K_mm = setup.root.T @ setup.root

    def problem_8(coef: np.ndarray) -> np.ndarray:
        return K.T @ (K @ coef - y) / n + penalty * (K_mm @ coef)

    stacked = np.concatenate([K, (n * penalty) ** 0.5 * setup.root])
    zeros = np.zeros((m, 1), np.float64)
    yield "Nystrom CG", f"penalty {penalty:g}", conjugate(stacked, np.concatenate([y, zeros]))
    step = n / largest(stacked)
    yield "Nystrom GD", f"penalty {penalty:g}", descent(problem_8, step, m)

    def decay(coef: np.ndarray) -> np.ndarray:
        return penalty * (K_mm @ coef)

    best = min(STEPS, key=lambda times: after(stochastic(K, y, times, decay), 10))
    yield "Nystrom SGD", f"step {best:g}", stochastic(K, y, best, decay)

    A = xp.contiguous(xp.solve_triangular(setup.root.T, K.T, upper=False).T)

    def back(iterates: Iterates) -> Iterates:
        for beta in iterates:
            yield xp.solve_triangular(setup.root, beta, upper=True)

    step = n / largest(A)
    yield "NYTRO GD", "", back(descent(lambda b: A.T @ (A @ b - y) / n, step, m))
    best = min(STEPS, key=lambda times: after(back(stochastic(A, y, times, np.zeros_like)), 10))
    yield "NYTRO SGD", f"step {best:g}", back(stochastic(A, y, best, np.zeros_like))
    yield "NYTRO CG", "", back(conjugate(A, y))


def curve(setup: Setup, iterates: Iterates, most: int) -> dict[int, float]:
    """Return the test error at each number of iterations that is looked at."""
    found = {}
    for iteration, coef in enumerate(iterates, 1):
        if iteration in LOOKS:
            found[iteration] = setup.error(coef)
        if iteration >= most:
            break
    return found


def needed(curves: dict[str, dict[int, float]]) -> Iterator[Row]:
    """Yield how many iterations each method needs."""
    reference = curves["FALKON"][100]
    for name, errors in curves.items():
        row: Row = {"method": name, "least error": min(errors.values())}
        for times in WITHIN:
            enough = [i for i, error in sorted(errors.items()) if error <= times * reference]
            row[f"within {times:g}"] = enough[0] if enough else "-"
        yield row


def plot(tables: Tables) -> None:
    """Draw test error against iterations, a picture for each set."""
    sets = list(dict.fromkeys(row["set"] for row in tables[ITERATIONS]))
    figure, axes = plots.subplots(1, len(sets), width=3.7 * len(sets), height=3.4)
    for axis, name in zip(np.atleast_1d(axes), sets, strict=True):
        rows = [row for row in tables[ITERATIONS] if row["set"] == name]
        least = min(float(row[str(i)]) for row in rows for i in LOOKS)
        for row in rows:
            errors = [float(row[str(i)]) for i in LOOKS]
            axis.plot(LOOKS, errors, color=COLORS[row["method"]], label=row["method"])
        axis.set(xscale="log", title=name, xlabel="iterations, or passes")
        axis.set_ylim(0.98 * least, min(1.4 * least, max(float(row["1"]) for row in rows)))
    np.atleast_1d(axes)[0].set_ylabel("test RMSE")
    lines = np.atleast_1d(axes)[0].get_lines()
    figure.legend(handles=lines, loc="outside right upper", fontsize=8)
    plots.save(figure, PLOT)


def main(options: argparse.Namespace) -> None:
    tables = Tables("iterations", (NEEDED, ITERATIONS), NOTES, options)
    n, m, most = (1000, 50, LOOKS[5]) if options.quick else (ROWS, LANDMARKS, LOOKS[-1])
    for name in SETS:
        if tables.has(ITERATIONS, set=name) or not asked({"set": name}, options.only):
            continue
        if (path := data_set(options.data, name)) is None:
            return
        setup, curves = Setup.of(path, n, m), {}
        for method, chosen, iterates in methods(setup):
            curves[method] = curve(setup, iterates, most)
            errors = {str(i): error for i, error in curves[method].items()}
            tables.add(ITERATIONS, {"set": name, "method": method, "chosen": chosen} | errors)
        if not options.quick:
            tables.add(NEEDED, *({"set": name} | row for row in needed(curves)))
    if not options.quick:
        plot(tables)
