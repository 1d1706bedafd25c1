"""What the two estimators share: from validated rows to a problem, a solver and a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .. import solvers
from ..callbacks import Validate
from ..data import RowSource
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..landmarks.bless import SMALLEST
from ..model import KernelModel
from ..operators import Engine, KernelOperator, choose_engine
from ..problems import FullProblem, NystromProblem, Problem
from ..solvers import Solver, State, max_iterations, solve, tolerance
from . import choices, held_back, inputs, penalty_path
from .memory import Size
from .planned import Planned
from .shared import as_numpy, given_points, host_centers, kept_in_file, squeezed
from .task import Data, Task
from .warm import WarmStarted


@dataclass(frozen=True)
class _Begin:
    """What a fit to all rows begins with; `path` is None if the penalty was given."""

    task: Task
    landmarks: Landmarks | None
    penalty: float
    solver: Solver[Any, Any]
    state: State | None = None
    path: list[dict[str, Any]] | None = None


class KernelRidgeBase(WarmStarted, Planned):
    """Kernel ridge regression with any solver; subclasses say what targets and outputs are."""

    # scikit-learn asks that any value be accepted here, and refused in `fit`
    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        lengthscale: Any = "median",
        penalty: Any = 1e-6,
        landmarks: Any = None,
        cv: Any = None,
        solver: Any = "auto",
        max_iter: Any = 100,
        tol: Any = 1e-6,
        engine: Any = "auto",
        memory_limit: Any = None,
        callbacks: Any = (),
        warm_start: Any = False,
        centers_file: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.penalty = penalty
        self.landmarks = landmarks
        self.cv = cv
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.memory_limit = memory_limit
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.centers_file = centers_file
        self.random_state = random_state

    # --- fitting -------------------------------------------------------------------------------

    def _fit(self, data: Data, encode: Callable[[Any], Tensor], **model_parts: Any) -> None:
        """Solve and set the fitted attributes, all at once at the end."""
        choices.check_settings(self)
        for_kernel, for_landmarks, for_solver, for_folds = inputs.generators(self.random_state, 4)
        solver, size = self._chosen(data.rows, data.targets.shape[1])
        kernel = self._resolved_kernel(data.rows, for_kernel)
        task = self._task(data, kernel, solver, size)
        begin = self._begin(task, for_landmarks, for_folds)
        task, K = begin.task, begin.task.K
        chosen = kept_in_file(begin.landmarks, self.centers_file)
        problem = self._problem(K, task.data, chosen, begin.penalty)
        callbacks = [self._bound(callback, encode) for callback in self.callbacks]
        result = solve(
            problem,
            begin.solver,
            stop=self._stop(begin.solver, len(data.targets)),
            callbacks=callbacks,
            state=self._restored(callbacks, problem, solver) or begin.state,
            rng=for_solver,
        )
        self._warn(result, solver)
        centers = host_centers(chosen, data.rows)
        model = KernelModel(K.kernel, centers, result.state.coef.cpu(), **model_parts)
        self._adopt(model, result, solver, K)
        self.landmark_index_ = as_numpy(None if begin.landmarks is None else begin.landmarks.index)
        self.penalty_, self.path_ = begin.penalty, begin.path
        self._landmarks_chosen = self.landmarks

    def _adopt(
        self,
        model: KernelModel,
        result: solvers.Result,
        solver: Solver[Any, Any],
        K: KernelOperator,
    ) -> None:
        """Set what each call that fits leaves behind."""
        self.model_, self.dual_coef_ = model, squeezed(model.coef)
        self.n_iter_ = max(result.state.iteration, 1)
        self.stop_reason_, self.history_ = result.reason, result.history
        self.solver_, self.engine_, self.kernel_ = solver, K.engine, K.kernel
        self.solver_settings_ = dict(getattr(result.state, "settings", {}))

    def _task(self, data: Data, kernel: Kernel, solver: Solver[Any, Any], size: Size) -> Task:
        sparse = data.rows.sparse
        engine = choose_engine(self.engine, dtype=data.rows.dtype, kernel=kernel, sparse=sparse)
        return Task.place(data, kernel, engine, solver, size, self._limit())

    def _begin(
        self, task: Task, for_landmarks: torch.Generator, for_folds: torch.Generator
    ) -> _Begin:
        """Return what to fit to all rows: landmarks and penalty, and what is known already."""
        if isinstance(self.penalty, str):
            return self._best_level(task, for_landmarks, for_folds)
        chosen = self._landmarks(task.K, for_landmarks)
        task = task.with_landmarks(0 if chosen is None else len(chosen.weight))
        return _Begin(task, chosen, float(self.penalty), task.solver)

    def _best_level(
        self, task: Task, for_landmarks: torch.Generator, for_folds: torch.Generator
    ) -> _Begin:
        n, coded = task.K.shape[0], hasattr(self, "decision_function")
        solver: Any = task.solver
        classes = held_back.labels(task.data.targets).cpu() if coded else None
        folds = held_back.folds(n, self.cv, for_folds, classes)
        selector: Any = choices.selector(self.landmarks, n)
        levels = selector.select_path(task.K, rng=for_landmarks)
        task = task.with_landmarks(penalty_path.largest(levels))

        def problem(landmarks: Landmarks, penalty: float) -> Any:
            return self._problem(task.K, task.data, landmarks, penalty)

        # with a number of landmarks the path goes on until it is no use
        smallest = math.inf if selector.m is None else SMALLEST
        search = penalty_path.Search(
            task.K, problem, solver, self._stop(solver, n), folds, coded, smallest
        )
        best, path = penalty_path.search(search, levels)
        if best.row is path[-1]:
            penalty_path.warn_of_the_end(best)
        start = best.start(len(folds))
        return _Begin(task, best.function.landmarks, best.penalty, best.solver, start, path)

    def _stop(self, solver: Solver[Any, Any], n: int) -> list[solvers.Stop]:
        most = math.ceil(self.max_iter * solver.iterations_per_pass(n))
        return [tolerance(float(self.tol)), max_iterations(most)]

    def _landmarks(self, K: KernelOperator, rng: torch.Generator) -> Landmarks | None:
        if self._warm() and self.landmarks is not None:
            return self._last_landmarks(K)
        sequential = not K.rows.random_access
        selector = choices.selector(self.landmarks, K.shape[0], sequential)
        if isinstance(selector, RowSource):
            return given_points(selector, K)
        return None if selector is None else selector.select(K, rng=rng)

    def _problem(
        self, K: KernelOperator, data: Data, chosen: Landmarks | None, penalty: float
    ) -> Problem:
        if chosen is None:
            return FullProblem(K, data.targets, penalty, data.weights)
        weight = chosen.weight
        if data.weights is not None and chosen.index is not None:
            weight = weight * (data.weights[chosen.index] / data.weights.mean()).cpu()
        coverage = chosen.info.get("coverage", -1.0)
        centers = K.against(K.on_device(chosen.points))
        return NystromProblem(
            centers, data.targets, penalty, data.weights, weight, coverage, chosen.index
        )

    def _bound(self, callback: Any, encode: Callable[[Any], Tensor]) -> Any:
        if not isinstance(callback, Validate):
            return callback
        return callback.with_targets(encode(callback.y), coded=hasattr(self, "decision_function"))

    def _warn(self, result: solvers.Result, solver: Solver[Any, Any]) -> None:
        if result.reason == "diverged":
            raise FloatingPointError(
                f"the solver diverged at iteration {result.state.iteration}; raise the penalty, "
                "use float64 data, or rescale targets whose squares overflow"
            )
        last = result.history[-1]
        reached = last.get("rel_residual", math.nan)
        if result.reason == "no_progress" and "batch_mse" not in last:
            warnings.warn(
                f"stopped at iteration {result.state.iteration} with a relative residual of "
                f"{reached:.1e}, above tol={self.tol:.1e}: rounding leaves no direction to go on "
                "in. Raise the penalty or the lengthscale, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif result.reason == "no_progress":
            warnings.warn(
                f"stopped at iteration {result.state.iteration}: the error of the batches is no "
                "lower than at the start. Where the fit began with zero, the model predicts no "
                "better than zero: check the lengthscale, or use solver='falkon'; where it began "
                "with coefficients, they may be as good as they get",
                ConvergenceWarning,
                stacklevel=4,
            )
        early = not solver.solves_exactly or self.penalty == 0  # the number of epochs is a choice
        if result.reason == "max_iterations" and not early:
            warnings.warn(
                f"stopped after max_iter={self.max_iter} iterations with a relative residual of "
                f"{reached:.1e}, above tol={self.tol:.1e}. This often costs little accuracy: check "
                "it on held-out rows. To converge: raise max_iter, penalty or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = inputs.new_rows(self, X)
        limit = self._limit() or 1 << 30
        engine = self._engine_of_prediction(rows)
        values = self.model_.predict(rows, engine=engine, memory_bytes=limit)
        return values.numpy()

    def _engine_of_prediction(self, rows: RowSource) -> str | Engine:
        """Return the engine of the fit, or "auto" if that chose it and these rows need another."""
        engine: str | Engine = self.engine_
        if self.engine != "auto" or isinstance(engine, str):
            return engine
        dtype = torch.promote_types(rows.dtype, self.model_.centers.dtype)
        covered = engine.covers(self.kernel_, dtype=dtype, sparse=rows.sparse)
        return engine if covered else "auto"
