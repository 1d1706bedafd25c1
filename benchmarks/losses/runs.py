"""Runs: one method on one problem, with steps, kernel evaluations and CPU seconds."""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
)

from gramian import _arrays as xp
from gramian.losses import Loss
from gramian.solvers import Newton, max_iterations, solve, tolerance

from ..lib.timing import clock
from . import dense
from .cases import Case, Found, of_coef, of_features

TOLERANCE = 1e-4
"""That of the estimators."""

THEIRS, MOST = 1e-8, 2000
"""Tolerance and iterations of scikit-learn's."""


@dataclass
class Run:
    """The result of a method: a function, its steps, passes over n m pairs and seconds."""

    found: Found
    steps: int
    passes: float
    cpu: float


@dataclass(frozen=True)
class Asked:
    """A problem to be minimised: a loss of targets, with a penalty."""

    case: Case
    loss: Loss
    y: np.ndarray
    penalty: float

    @property
    def outputs(self) -> int:
        return self.loss.outputs(self.y.shape[1])

    @property
    def inverse(self) -> float:
        """C of scikit-learn."""
        return 1 / (self.case.total * self.penalty)

    @property
    def labels(self) -> np.ndarray:
        """Classes by number."""
        column = (
            xp.cast(self.y[:, 0] > 0, np.int64) if self.y.shape[1] == 1 else self.y.argmax(axis=1)
        )
        return column


Method = Callable[[Asked], Run]


def ours(dtype: np.dtype) -> Method:
    """Return Newton's method with rows of that type."""

    def run(asked: Asked) -> Run:
        problem = asked.case.problem(asked.loss, asked.y, asked.penalty, dtype)
        with clock() as took:
            found = solve(problem, Newton(), stop=[tolerance(TOLERANCE), max_iterations(100)])
        n, m = problem.K.shape
        passes = found.history[-1]["kernel_evaluations"] / (n * m)
        return Run(of_coef(asked.case, found.state.coef), found.state.iteration, passes, took.cpu)

    return run


def newton(asked: Asked) -> Run:
    """Run dense Newton steps on features."""
    case, w = asked.case, asked.case.weights
    with clock() as took:
        found = dense.newton(
            case.features.F, asked.loss, asked.y, asked.penalty, asked.outputs,
            None if w is None else w,
        )  # fmt: skip
    return Run(of_features(case, found.b), found.steps, 1, took.cpu + case.features.cpu)


def interior(asked: Asked) -> Run:
    """Run the interior point on features, level by level."""
    levels: tuple[float, ...] = asked.loss.levels  # type: ignore[attr-defined]
    case = asked.case
    with clock() as took:
        found = [
            dense.quantile(case.features.F, asked.y[:, 0], level, asked.penalty) for level in levels
        ]
    b = np.stack([each.b for each in found], axis=1)
    return Run(
        of_features(case, b), sum(each.steps for each in found), 1, took.cpu + case.features.cpu
    )


def _fitted(asked: Asked, model: Any, y: np.ndarray) -> Run:
    """Fit a linear model of scikit-learn on features."""
    F, w = asked.case.features.F, asked.case.weights
    with warnings.catch_warnings(), clock() as took:
        warnings.simplefilter("ignore")
        model.fit(F, y, sample_weight=w)
    b = xp.to_float64(np.atleast_2d(model.coef_)).T
    steps = int(np.max(model.n_iter_))
    return Run(of_features(asked.case, b), steps, 1, took.cpu + asked.case.features.cpu)


def logistic_regression(solver: str) -> Method:
    """Return scikit-learn's."""

    def run(asked: Asked) -> Run:
        model = LogisticRegression(
            C=asked.inverse, fit_intercept=False, solver=solver, tol=THEIRS, max_iter=MOST
        )
        return _fitted(asked, model, asked.labels)

    return run


def generalized(kind: type[PoissonRegressor] | type[GammaRegressor], solver: str) -> Method:
    """Return scikit-learn's regression with a log link."""

    def run(asked: Asked) -> Run:
        model = kind(
            alpha=asked.penalty, fit_intercept=False, solver=solver, tol=THEIRS, max_iter=MOST
        )
        return _fitted(asked, model, asked.y[:, 0])

    return run


EPSILON = 1.35


def huber_scale(case: Case, y: np.ndarray, alpha: float) -> tuple[Run, float]:
    """Return scikit-learn's Huber regression, and the deviation of errors that it chose."""
    model = HuberRegressor(
        epsilon=EPSILON, alpha=alpha, fit_intercept=False, tol=THEIRS, max_iter=10 * MOST
    )
    asked = Asked(case, None, y, 0.0)  # type: ignore[arg-type]
    run = _fitted(asked, model, y[:, 0])
    return run, float(model.scale_)


def has_falkon() -> bool:
    """Return whether falkon is installed."""
    return importlib.util.find_spec("falkon") is not None


def falkon(dtype: np.dtype, last: int, iterations: int) -> Method:
    """Return falkon's LogisticFalkon: a path of penalties, then `last` steps at the one asked.

    Parameters
    ----------
    dtype : torch.dtype
    last : int
        Newton steps with the penalty that is asked.
    iterations : int
        Of conjugate gradient in each of them; three in the others.
    """

    def run(asked: Asked) -> Run:
        return _falkon(asked, dtype, last, iterations)

    return run


def _falkon(asked: Asked, dtype: np.dtype, last: int, iterations: int) -> Run:
    flk = importlib.import_module("falkon")
    case, m = asked.case, asked.case.m
    X, y = xp.cast(case.split.X, dtype), xp.cast(asked.y, dtype)
    options = flk.FalkonOptions(use_cpu=True, keops_active="no")
    kernel = flk.kernels.GaussianKernel(case.lengthscale, opt=options)
    pairs = _counted(kernel)
    path = [mu for mu in (1e-2, 1e-4, 1e-6, 1e-8) if mu > asked.penalty]
    model = flk.LogisticFalkon(
        kernel=kernel,
        penalty_list=path + [asked.penalty] * last,
        iter_list=[3] * len(path) + [iterations] * last,
        loss=flk.gsc_losses.LogisticLoss(kernel),
        M=m,
        center_selection=flk.center_selection.FixedSelector(xp.copy(X[:m]), xp.copy(y[:m])),
        options=options,
    )
    with contextlib.redirect_stdout(io.StringIO()), clock() as took:
        model.fit(X, y)
    return Run(of_coef(case, model.alpha_), len(path) + last, sum(pairs) / (len(X) * m), took.cpu)


def _counted(kernel: Any) -> list[int]:
    """Return a list to which the pairs of each product with the kernel are added."""
    pairs: list[int] = []
    plain = kernel.mmv

    def counted(X1: np.ndarray, X2: np.ndarray, *others: Any, **options: Any) -> np.ndarray:
        pairs.append(len(X1) * len(X2))
        return plain(X1, X2, *others, **options)

    kernel.mmv = counted
    return pairs
