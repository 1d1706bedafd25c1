"""KeepBest: the state with the smallest error on held-out rows, and a rule for early stopping."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._messages.checks import as_count
from ..problems import Problem
from ..solvers import State, StopReason
from ..solvers.loop.metrics import VALID_ERROR, VALID_RMSE
from ..solvers.loop.stopping import Row
from .checkpoint import Checkpoint


class KeepBest:
    """Keep the coefficients with the smallest error on held-out rows: early stopping.

    Use it as a callback after a `Validate`, and its `rule` as a stopping rule::

        keep = KeepBest(patience=5)
        solve(problem, solver, callbacks=[Validate(X, y), keep], stop=[keep.rule])
        model = problem.model(keep.best.coef)

    States are compared by ``valid_rmse``; for class codes by ``valid_error``, and by
    ``valid_rmse`` if it ties. The first of equal states is kept.

    Use it with `gramian.solvers.solve`; estimators have ``early_stopping=True``.

    Parameters
    ----------
    patience : int, default=5
        Consecutive validations without a new minimum after which `rule` stops, as
        "early_stopping".
    every : int, default=1
        Iterations between two validations, as in `Validate`.
    checkpoints : sequence of Checkpoint, default=()
        Checkpoints that save the best state with the last one. A run that resumes from such a file
        has the same best state and the same remaining patience. List them after this callback.

    Attributes
    ----------
    best : State or None
        Iteration, coefficients and metrics; None before the first validation.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import KeepBest, Validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> keep = KeepBest(patience=3)
    >>> watch = [Validate(X[300:], y[300:]), keep]
    >>> est = KernelRidge("gaussian", lengthscale=3.0, penalty=1e-6, landmarks=100, random_state=0)
    >>> est = est.set_params(callbacks=watch).fit(X[:300], y[:300])
    >>> keep.best.iteration < est.n_iter_
    True
    """

    def __init__(
        self, patience: int = 5, every: int = 1, checkpoints: Sequence[Checkpoint] = ()
    ) -> None:
        self.patience, self.every = as_count(patience, "patience"), as_count(every, "every")
        self.checkpoints = tuple(checkpoints)
        # A resumed run starts from the best state of its file, or its patience would start again.
        restored = (checkpoint.best for checkpoint in self.checkpoints)
        self.best: State | None = next((best for best in restored if best is not None), None)

    def __call__(self, problem: Problem, state: State) -> None:
        """Keep the state if it was validated and no earlier one had a smaller error."""
        if not _is_looked_at(state):
            return
        if self.best is None or _error(state) < _error(self.best):
            # No solver writes to coefficients that it has yielded, so they need no copy.
            self.best = State(state.iteration, state.coef, dict(state.metrics))
        for checkpoint in self.checkpoints:
            checkpoint.best = self.best

    def finish(self) -> None:
        """Remove the best state from the checkpoints, which have written it."""
        for checkpoint in self.checkpoints:
            checkpoint.best = None

    def rule(self, history: Sequence[Row]) -> StopReason | None:
        """Stop as "early_stopping" after `patience` validations without a new minimum."""
        if self.best is None:
            return None
        # Iterations since the best state, counted in validations: states in between have no
        # error.
        since = int(history[-1]["iteration"]) - self.best.iteration
        return "early_stopping" if since // self.every >= self.patience else None


def _is_looked_at(state: State) -> bool:
    return math.isfinite(state.metrics.get(VALID_RMSE, math.nan))


def _error(state: State) -> tuple[float, float]:
    return state.metrics.get(VALID_ERROR, 0.0), state.metrics[VALID_RMSE]
