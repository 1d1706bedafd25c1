"""Minima: the objective that each method reaches on the same landmarks, kernel and penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor

from gramian import _arrays as xp
from gramian.losses import Expectile, Gamma, Huber, Logistic, Loss, Poisson, Quantile, Softmax

from ..lib.results import Row
from ..lib.sets import data_set
from . import runs
from .cases import Case, objective
from .runs import Asked, Method, Run

LOGISTIC, CLASSES, REGRESSION = "Two classes", "Several classes and weights", "Losses of numbers"
F32, F64 = np.float32, np.float64
PENALTIES, ENDS = (1e-3, 1e-5, 1e-7, 1e-9), (1e-5, 1e-9)
LEVELS = (0.1, 0.5, 0.9)
SMALL = 8_000

OURS: dict[str, Method] = {"gramian": runs.ours(F64), "gramian float32": runs.ours(F32)}
THEIRS: dict[str, Method] = {
    "sklearn lbfgs": runs.logistic_regression("lbfgs"),
    "sklearn newton-cholesky": runs.logistic_regression("newton-cholesky"),
}
FALKON: dict[str, Method] = {
    "falkon float32": runs.falkon(F32, 3, 8),
    "falkon": runs.falkon(F64, 3, 8),
    "falkon longer": runs.falkon(F64, 10, 20),
}
DENSE: dict[str, Method] = {"dense Newton": runs.newton}
METHODS = (*OURS, *DENSE, "interior point", *THEIRS, "sklearn", *FALKON)
"""In the order of their columns."""


@dataclass(frozen=True)
class Fit:
    """A problem, and the methods that solve it; the constant is zero everywhere.

    Attributes
    ----------
    name : str
        Of the set, with what is particular.
    asked : Asked
    y_test : Tensor
    methods : dict
    found : dict
        Runs that were needed to know what is asked.
    """

    name: str
    asked: Asked
    y_test: np.ndarray
    methods: dict[str, Method]
    found: dict[str, Run]

    @property
    def key(self) -> Row:
        case, loss = self.asked.case, type(self.asked.loss).__name__.lower()
        row: Row = {"set": self.name, "loss": loss, "rows": len(case.split.X), "m": case.m}
        return row | {"penalty": f"{self.asked.penalty:.3g}"}

    def measured(self, known: set[str]) -> Iterator[Row]:
        """Run the methods that are not known yet, and yield a row for each."""
        asked, case = self.asked, self.asked.case
        for name in (*self.methods, *self.found):
            if name in known:
                continue
            run = self.found[name] if name in self.found else self.methods[name](asked)
            row = self.key | {"method": name}
            row["objective"] = objective(case, asked.loss, asked.y, asked.penalty, run.found)
            row |= {"steps": run.steps, "passes": run.passes, "cpu_s": run.cpu}
            yield row | self._held_out(run.found.f_test)

    def _held_out(self, f: np.ndarray) -> Row:
        row = {"test loss": float(self.asked.loss.values(f, self.y_test).sum(axis=1).mean())}
        if not self.asked.loss.of_classes:
            return row
        right = (f > 0) == (self.y_test > 0)
        if f.shape[1] > 1:
            right = f.argmax(axis=1) == self.y_test.argmax(axis=1)
        return row | {"error": float(xp.to_float64(~right).mean())}


def codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return codes of classes: -1 and 1 of two, else a column for each."""
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)[:, None]
    return (y[:, None] == classes).astype(np.float64)


def _classified(case: Case, penalty: float, methods: dict[str, Method], name: str) -> Fit:
    classes = np.unique(case.split.y)
    y, y_test = codes(case.split.y, classes), codes(case.split.y_test, classes)
    loss = Logistic() if len(classes) == 2 else Softmax()
    return Fit(name, Asked(case, loss, y, penalty), y_test, methods, {})


def _case(folder: str, name: str, rows: int, m: int, scale: float, quick: bool) -> Case | None:
    path = data_set(folder, name)
    if path is None:
        return None
    return Case.read(path, 1000, 50, scale) if quick else Case.read(path, rows, m, scale)


def logistic(folder: str, quick: bool) -> Iterator[Fit]:
    """Yield the fits to two classes."""
    falkon = FALKON if runs.has_falkon() else {}
    for name, rows, m, penalties in (
        ("magic", SMALL, 300, PENALTIES), ("adult_a9a", SMALL, 300, ENDS),
        ("skin", SMALL, 300, ENDS), ("skin", 100_000, 500, (1e-7,)),
    ):  # fmt: skip
        case = _case(folder, name, rows, m, 0.5, quick)
        large = rows > SMALL  # the dense step is that of newton-cholesky
        methods = OURS | THEIRS | falkon | ({} if large else DENSE)
        for penalty in penalties if case is not None else ():
            yield _classified(case, penalty, methods, name)


def classes(folder: str, quick: bool) -> Iterator[Fit]:
    """Yield the fits to several classes, and to weighted rows."""
    for name, rows, m in (("usps", 5_000, 100), ("kddcup", 5_000, 60)):
        case = _case(folder, name, rows, m, 0.5, quick)
        for penalty in (1e-4, 1e-7) if case is not None else ():
            yield _classified(case, penalty, OURS | THEIRS | DENSE, name)
    case = _case(folder, "magic", SMALL, 300, 0.5, quick)
    if case is not None:
        w = np.random.default_rng(1).uniform(0.1, 1.9, len(case.split.X))
        case = replace(case, weights=w)
        for penalty in (1e-4, 1e-7):
            yield _classified(case, penalty, OURS | THEIRS | DENSE, "magic, weights")


def regression(folder: str, quick: bool) -> Iterator[Fit]:
    """Yield the fits to numbers."""
    makers: tuple[tuple[str, Callable[[Case, float], Fit]], ...] = (
        ("house_16h", _huber), ("house_16h", _quantile), ("house_16h", _expectile),
        ("beijing_pm25", _poisson), ("california_housing", _gamma),
    )  # fmt: skip
    for name, maker in makers:
        case = _case(folder, name, 5_000, 200, 0.5, quick)
        for penalty in (1e-3, 1e-5, 1e-7) if case is not None else ():
            yield maker(case, penalty)


def _units(case: Case, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Return targets less the best constant, in units of the loss."""
    y, y_test = (part[:, None] for part in (case.split.y, case.split.y_test))
    unit = loss.unit(y, xp.to_float64(np.ones(len(y), np.float32)))
    return (y - xp.median(y)) / unit, (y_test - xp.median(y)) / unit


def _huber(case: Case, penalty: float) -> Fit:
    """Return the fit that scikit-learn's is one of: it measures delta, and so the penalty."""
    y, y_test = _units(case, Huber())
    alpha = penalty * len(y)
    theirs, scale = runs.huber_scale(case, y, alpha)
    asked = Asked(case, Huber(runs.EPSILON * scale), y, penalty * scale)
    return Fit(case.name, asked, y_test, OURS | DENSE, {"sklearn": theirs})


def _quantile(case: Case, penalty: float) -> Fit:
    loss = Quantile(LEVELS)
    y, y_test = _units(case, loss)
    methods = OURS | {"interior point": runs.interior}
    return Fit(case.name, Asked(case, loss, y, penalty), y_test, methods, {})


def _expectile(case: Case, penalty: float) -> Fit:
    loss = Expectile(0.9)
    y, y_test = _units(case, loss)
    return Fit(case.name, Asked(case, loss, y, penalty), y_test, OURS | DENSE, {})


def _log_link(kind: type[PoissonRegressor] | type[GammaRegressor]) -> dict[str, Method]:
    return OURS | DENSE | {
        f"sklearn {solver}": runs.generalized(kind, solver)
        for solver in ("lbfgs", "newton-cholesky")
    }  # fmt: skip


def _means(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return positive targets in units of their mean, so that the best constant is zero."""
    y, y_test = (part[:, None] for part in (case.split.y, case.split.y_test))
    return y / y.mean(), y_test / y.mean()


def _poisson(case: Case, penalty: float) -> Fit:
    y, y_test = _means(case)
    asked = Asked(case, Poisson(), y, penalty)
    return Fit(case.name, asked, y_test, _log_link(PoissonRegressor), {})


def _gamma(case: Case, penalty: float) -> Fit:
    y, y_test = _means(case)
    asked = Asked(case, Gamma(), y, penalty)
    return Fit(case.name, asked, y_test, _log_link(GammaRegressor), {})
