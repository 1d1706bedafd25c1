"""What the two estimators share: from validated rows to a problem, a solver and a model."""

from __future__ import annotations

import logging
import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .. import solvers
from .._checks import as_count
from ..callbacks import Checkpoint, Validate
from ..data import RowSource, Subset, as_rows
from ..landmarks import Landmarks, Selector
from ..landmarks.bless import SMALLEST
from ..operators import KernelOperator, choose_engine
from ..problems import FullProblem, NystromProblem, Problem
from ..solvers import Solver, State, max_iterations, solve, tolerance
from . import choices, held_back, inputs, penalty_path
from .plan import (
    ASSUMED_ITERATIONS,
    Plan,
    Size,
    calibrated_seconds,
    dense_bytes,
    evaluations,
    split_memory,
)
from .shared import RowsEstimator, as_numpy, given_points, squeezed

logger = logging.getLogger("gramian")


@dataclass(frozen=True)
class Data:
    """Validated training data: rows, targets (n, t) and weights."""

    rows: RowSource
    targets: Tensor
    weights: Tensor | None

    @classmethod
    def build(cls, rows: RowSource, targets: Tensor, weights: Tensor | None) -> Data:
        """Leave out rows of weight zero: they carry no information, not even as landmarks."""
        if weights is None or bool((weights > 0).all()):
            return cls(rows, targets, weights)
        keep = weights.nonzero()[:, 0]
        return cls(Subset(rows, keep), targets[keep], weights[keep])


@dataclass(frozen=True)
class _Begin:
    """What a fit to all rows begins with; `path` is None if the penalty was given."""

    K: KernelOperator
    landmarks: Landmarks | None
    penalty: float
    solver: Solver[Any, Any]
    state: State | None = None
    path: list[dict[str, Any]] | None = None


class KernelRidgeBase(RowsEstimator):
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
        self.random_state = random_state

    # --- fitting -------------------------------------------------------------------------------

    def _fit(self, data: Data, encode: Callable[[Any], Tensor], **model_parts: Any) -> None:
        """Solve and set the fitted attributes, all at once at the end."""
        choices.check_settings(self)
        for_kernel, for_landmarks, for_solver, for_folds = inputs.generators(self.random_state, 4)
        solver, size = self._chosen(data.rows, data.targets.shape[1])
        memory = split_memory(self._limit(), solver, size)
        kernel = self._resolved_kernel(data.rows, for_kernel)
        K = KernelOperator(kernel, data.rows, data.rows, self.engine, memory)
        begin = self._begin(K, data, solver, size, for_landmarks, for_folds)
        problem = self._problem(begin.K, data, begin.landmarks, begin.penalty)
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
        self.model_ = replace(problem.model(result.state.coef), **model_parts)
        self.dual_coef_ = squeezed(result.state.coef)
        self.landmark_index_ = as_numpy(None if begin.landmarks is None else begin.landmarks.index)
        self.n_iter_ = max(result.state.iteration, 1)
        self.penalty_, self.path_ = begin.penalty, begin.path
        self.stop_reason_ = result.reason
        self.history_ = result.history
        self.solver_, self.engine_, self.kernel_ = solver, K.engine, kernel
        self.solver_settings_ = dict(getattr(result.state, "settings", {}))
        self._landmarks_chosen = self.landmarks

    def _chosen(self, rows: RowSource, targets: int) -> tuple[Solver[Any, Any], Size]:
        n, d = rows.shape
        selector = choices.selector(self.landmarks, n, not rows.random_access)
        # a selector that is given a penalty says how many once it has selected: see _within_limit
        m = n if selector is None else choices.count(selector, n) or 1
        fits = penalty_path.fits(self.cv) if isinstance(self.penalty, str) else 0.0
        once = rows.random_access and not rows.sparse
        size = Size(n, d, targets, m, rows.dtype.itemsize, selector is None, fits, once)
        solver = choices.solver(self.solver, size, self._limit())
        solver.check_type(FullProblem if size.full else NystromProblem)
        if not isinstance(self.penalty, str):
            solver.check_penalty(self.penalty)
        return solver, size

    def _begin(
        self,
        K: KernelOperator,
        data: Data,
        solver: Solver[Any, Any],
        size: Size,
        for_landmarks: torch.Generator,
        for_folds: torch.Generator,
    ) -> _Begin:
        """Return what to fit to all rows: landmarks and penalty, and what is known already."""
        if isinstance(self.penalty, str):
            return self._best_level(K, data, solver, size, for_landmarks, for_folds)
        chosen = self._landmarks(K, for_landmarks)
        K = self._within_limit(K, solver, size, 0 if chosen is None else len(chosen.weight))
        return _Begin(K, chosen, float(self.penalty), solver)

    def _best_level(
        self,
        K: KernelOperator,
        data: Data,
        solver: Any,
        size: Size,
        for_landmarks: torch.Generator,
        for_folds: torch.Generator,
    ) -> _Begin:
        n, coded = K.shape[0], hasattr(self, "decision_function")
        classes = held_back.labels(data.targets) if coded else None
        folds = held_back.folds(n, self.cv, for_folds, classes)
        selector: Any = choices.selector(self.landmarks, n)
        levels = selector.select_path(K, rng=for_landmarks)
        K = self._within_limit(K, solver, size, penalty_path.largest(levels))

        def problem(landmarks: Landmarks, penalty: float) -> Any:
            return self._problem(K, data, landmarks, penalty)

        # with a number of landmarks the path goes on until it is no use
        smallest = math.inf if selector.m is None else SMALLEST
        task = penalty_path.Search(
            K, problem, solver, self._stop(solver, n), folds, coded, smallest
        )
        best, path = penalty_path.search(task, levels)
        if best.row is path[-1]:
            penalty_path.warn_of_the_end(best)
        start = best.start(len(folds))
        return _Begin(K, best.function.landmarks, best.penalty, best.solver, start, path)

    def _within_limit(
        self, K: KernelOperator, solver: Solver[Any, Any], size: Size, m: int
    ) -> KernelOperator:
        """Return the operator with the memory that more landmarks than were foreseen leave it."""
        if m <= size.m:
            return K
        return replace(K, memory_bytes=split_memory(self._limit(), solver, replace(size, m=m)))

    def _stop(self, solver: Solver[Any, Any], n: int) -> list[solvers.Stop]:
        most = math.ceil(self.max_iter * solver.iterations_per_pass(n))
        return [tolerance(float(self.tol)), max_iterations(most)]

    def _landmarks(self, K: KernelOperator, rng: torch.Generator) -> Landmarks | None:
        if self._warm() and self.landmarks is not None:
            return self._last_landmarks(K.rows)
        sequential = not K.rows.random_access
        selector = choices.selector(self.landmarks, K.shape[0], sequential)
        if isinstance(selector, Tensor):
            return given_points(selector, K)
        return None if selector is None else selector.select(K, rng=rng)

    def _last_landmarks(self, rows: RowSource) -> Landmarks:
        """Return those of the last fit, with their row numbers if these are the same rows."""
        m = len(self.model_.centers)
        points = self.model_.centers.take(torch.arange(m))
        index = None if self.landmark_index_ is None else torch.from_numpy(self.landmark_index_)
        if index is not None and not _are_rows(points, rows, index):
            index = None
        return Landmarks(points, torch.ones(m, dtype=torch.float64), index)

    def _problem(
        self, K: KernelOperator, data: Data, chosen: Landmarks | None, penalty: float
    ) -> Problem:
        if chosen is None:
            return FullProblem(K, data.targets, penalty, data.weights)
        weight = chosen.weight
        if data.weights is not None and chosen.index is not None:
            weight = weight * data.weights[chosen.index] / data.weights.mean()
        coverage = chosen.info.get("coverage", -1.0)
        centers = K.against(chosen.points)
        return NystromProblem(
            centers, data.targets, penalty, data.weights, weight, coverage, chosen.index
        )

    def _bound(self, callback: Any, encode: Callable[[Any], Tensor]) -> Any:
        if not isinstance(callback, Validate):
            return callback
        return callback.with_targets(encode(callback.y), coded=hasattr(self, "decision_function"))

    def _restored(self, callbacks: list[Any], problem: Problem, solver: Any) -> State | None:
        for callback in callbacks:
            if isinstance(callback, Checkpoint):
                state = callback.restore(problem, solver)
                if state is not None:
                    logger.info("going on from %s, iteration %d", callback.path, state.iteration)
                    return state
        fits = (problem.K.shape[1], problem.targets.shape[1])
        if self._warm() and self.model_.coef.shape == fits:
            return State(0, self.model_.coef)
        return None

    def _warm(self) -> bool:
        """Whether to start from the last fit: its landmarks and its coefficients."""
        return (
            self.warm_start
            and hasattr(self, "model_")
            and self.model_.centers.shape[1] == self.n_features_in_
            and _same_choice(self.landmarks, self._landmarks_chosen)
        )

    def _warn(self, result: solvers.Result, solver: Solver[Any, Any]) -> None:
        if result.reason == "diverged":
            raise FloatingPointError(
                f"the solver diverged at iteration {result.state.iteration}; raise the penalty, "
                "use float64 data, or rescale targets whose squares overflow"
            )
        early = not solver.solves_exactly or self.penalty == 0  # the number of epochs is a choice
        if result.reason == "max_iterations" and not early:
            reached = result.history[-1].get("rel_residual", math.nan)
            warnings.warn(
                f"stopped after max_iter={self.max_iter} iterations with a relative residual of "
                f"{reached:.1e}, above tol={self.tol:.1e}. This often costs little accuracy: check "
                "it on held-out rows. To converge: raise max_iter, penalty or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    # --- planning and predicting -----------------------------------------------------------------

    def plan(self, X: Any, *, targets: int = 1) -> Plan:
        """Say what a fit will need, before anything is computed.

        Parameters
        ----------
        X : as in `fit`
        targets : int, default=1
            Number of targets: outputs of a regression, classes of a classifier beyond two.

        Returns
        -------
        Plan
            Solver, landmarks, peak memory, kernel evaluations and seconds on this machine.

        Raises
        ------
        ValueError
            If it does not fit in ``memory_limit``; the message says what would. If the number of
            landmarks is not known before they are selected, as with ``Bless(penalty=1e-6)``.

        Notes
        -----
        ``penalty="auto"``: kernel evaluations and seconds are an estimate for the whole path, if
        it does not end early: that the number of landmarks grows with the inverse of the square
        root of the penalty. Memory is for the last level.

        Takes about half a second, to measure the speed of this machine.
        """
        choices.check_settings(self)
        rows = as_rows(X)
        choices.require_count(self.landmarks, rows.shape[0])
        solver, size = self._chosen(rows, as_count(targets, "targets"))
        dense = dense_bytes(solver, size)
        blocks = split_memory(self._limit(), solver, size)
        count = min(self.max_iter, ASSUMED_ITERATIONS)
        iterations = 1 if isinstance(solver, solvers.Direct) else count
        rng = torch.Generator().manual_seed(0)
        kernel = choices.kernel(self.kernel, self.lengthscale)
        kernel = kernel.resolve(torch.randn(50, rows.shape[1], generator=rng))
        engine = choose_engine(self.engine, dtype=rows.dtype)
        used = engine.workspace_bytes(size.m, size.d, size.t, size.itemsize)
        used += engine.row_bytes(size.d, size.t, size.itemsize) * min(size.n, 1 << 16)
        return Plan(
            solver=solvers.name_of(solver),
            landmarks=None if size.full else size.m,
            memory_bytes=dense + min(blocks, used),
            kernel_evaluations=evaluations(solver, size, iterations),
            seconds=calibrated_seconds(solver, size, iterations, kernel, engine, rows.dtype),
            iterations=iterations,
        )

    def check_memory(self, X: Any, *, targets: int = 1) -> None:
        """Refuse what does not fit in ``memory_limit``, without reading or measuring anything.

        Parameters are those of `plan`, which refuses the same and says what is needed; a fit does
        so once it has looked for missing values.

        Raises
        ------
        ValueError
            The message says what would fit.
        """
        choices.check_settings(self)
        split_memory(self._limit(), *self._chosen(as_rows(X), as_count(targets, "targets")))

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = inputs.new_rows(self, X)
        limit = self._limit() or 1 << 30
        values = self.model_.predict(rows, engine=self.engine_, memory_bytes=limit)
        return values.numpy()


def _are_rows(points: Tensor, rows: RowSource, index: Tensor) -> bool:
    if int(index.max()) >= len(rows):
        return False
    taken = rows.take(index)
    return taken.dtype == points.dtype and torch.equal(taken.to_dense(), points.to_dense())


def _same_choice(a: Any, b: Any) -> bool:
    comparable = all(isinstance(v, numbers.Integral | str | Selector) for v in (a, b))
    return a is b or (comparable and a == b)
