"""One fit and prediction, each in a process of its own, so that its memory can be told apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Uniform
from gramian.operators import KernelOperator
from gramian.preconditioners import FalkonFactor
from gramian.problems import NystromProblem

from ..lib.process import bytes_before_work, peak_bytes
from ..lib.sets import Split, errors, load
from ..lib.timing import clock


@dataclass(frozen=True)
class Task:
    """A set and what is to be fitted to it."""

    path: Path
    m: int
    lengthscale: float
    penalty: float
    seed: int = 0
    threads: int = 2
    dtype: str = "float32"
    rows: int | None = None
    max_iter: int = 20

    def split(self) -> Split:
        split = load(self.path, self.dtype)
        return Split(split.X[: self.rows], split.y[: self.rows], split.X_test, split.y_test)


def gramian(task: Task) -> dict[str, Any]:
    set_blas_threads(task.threads)
    split, before = task.split(), bytes_before_work()
    est = KernelRidge(
        standardize=False,
        lengthscale=task.lengthscale,
        penalty=task.penalty,
        landmarks=task.m,
        max_iter=task.max_iter,
        random_state=task.seed,
    )
    with threadpool_limits(task.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with clock() as fit:
            est.fit(split.X, split.y)
        with clock() as predict:
            prediction = est.predict(split.X_test)
    result = _result(split, prediction, fit, predict, before)
    last = est.history_[-1]
    result |= {"iterations": est.n_iter_, "residual": last["rel_residual"]}
    return result | {"index": est.landmark_index_, "prediction": prediction}


def scikit_learn(task: Task, index: np.ndarray) -> dict[str, Any]:
    """Fit the same function: features k(x, Z) K_mm^(-1/2), then a linear ridge."""
    split, before = task.split(), bytes_before_work()
    features = Nystroem(
        kernel="rbf", gamma=0.5 / task.lengthscale**2, n_components=task.m, random_state=0
    )
    ridge = Ridge(alpha=len(split.X) * task.penalty, fit_intercept=False)
    with threadpool_limits(task.threads):
        with clock() as fit:
            features.fit(split.X[index])
            ridge.fit(features.transform(split.X), split.y)
        with clock() as predict:
            prediction = ridge.predict(features.transform(split.X_test))
    return _result(split, prediction, fit, predict, before) | {"prediction": prediction}


def _result(split: Split, prediction: np.ndarray, fit, predict, before: int) -> dict[str, Any]:
    rmse, mae = errors(prediction, split.y_test)
    return {
        "RMSE": rmse,
        "MAE": mae,
        "wall": fit.wall + predict.wall,
        "cpu": fit.cpu + predict.cpu,
        "cpu_fit": fit.cpu,
        "before": before / 1e6,
        "peak": peak_bytes() / 1e6,
    }


def stages(task: Task) -> dict[str, float]:
    """Return the CPU and wall seconds of each step of a fit, done by hand."""
    set_blas_threads(task.threads)
    split, seconds = task.split(), {}
    rows, y = as_rows(split.X), split.y[:, None]
    K = KernelOperator(kernels.Gaussian(task.lengthscale), rows, rows)
    with clock() as seconds["selection"]:
        chosen = Uniform(task.m).select(K, rng=RandomStream(task.seed))
    problem = NystromProblem(K.against(chosen.points), y, task.penalty, None, chosen.weight)
    with clock() as seconds["K_mm"]:
        xp.to_float64(problem.K_mm).dense()
    with clock() as seconds["K_mm and factors"]:
        B = FalkonFactor.build(problem)
    with clock() as seconds["right-hand side"]:
        b = problem.rhs
    with clock() as seconds["one pass"]:
        problem.K.normal(b)
    with clock() as seconds["one application of the factors"]:
        B.solve_At(B.solve_Tt(B.solve_T(B.solve_A(b))))
    model = problem.model(b)
    with clock() as seconds["prediction"]:
        model.predict(split.X_test)
    return {name: (took.cpu, took.wall) for name, took in seconds.items()}
