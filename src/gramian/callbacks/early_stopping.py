"""Errors on held-out rows during a fit, the best state, and a rule for early stopping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import as_count
from ..data import as_rows
from ..engines import choose_within_memory
from ..model.uncertainty.probabilities import likeliest
from ..problems import Problem
from ..scoring.table import METRIC_TABLE
from ..solvers import State, StopReason
from ..solvers.loop.loop import Row
from ..solvers.loop.state import VALID_ERROR, VALID_RMSE
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
    >>> from gramian.solvers import Falkon
    >>> X, y = load_diabetes(return_X_y=True)
    >>> keep = KeepBest(patience=3)
    >>> watch = [Validate(X[300:], y[300:]), keep]
    >>> est = KernelRidge("gaussian", lengthscale=3.0, penalty=1e-6, landmarks=100, random_state=0)
    >>> est = est.set_params(callbacks=watch, solver=Falkon("landmarks")).fit(X[:300], y[:300])
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
        if not math.isfinite(state.metrics.get(VALID_RMSE, math.nan)):
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


def _error(state: State) -> tuple[float, float]:
    return state.metrics.get(VALID_ERROR, 0.0), state.metrics[VALID_RMSE]


@dataclass(frozen=True)
class Validate:
    """Add ``valid_rmse``, and ``valid_error`` for class codes, to the metrics of a state.

    Use it to observe the error on rows of your choice after each iteration.

    Parameters
    ----------
    X : RowSource, or anything `as_rows` takes
        Held-out rows, prepared like the training rows.
    y : array of shape (n,) or (n, t)
        Targets of these rows; in the ``callbacks`` of a classifier, their labels.
    every : int, default=1
        Iterations between two validations.
    coded : bool, default=False
        Whether `y` contains class codes: ``valid_error`` is then the fraction of rows whose largest
        value belongs to the wrong class, or whose sign is wrong if there is one target.
    scale : float or Array of shape (t,), default=1
        Units of standardised targets, by which errors are multiplied.
    weights : Array of shape (n,), optional
        Weights of the rows, in the mean of the squares and in the fraction of wrong classes.

    Notes
    -----
    Cost: one prediction each time; neither its time nor its kernel evaluations are counted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import Validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> watch = Validate(X[300:], y[300:])
    >>> est = KernelRidge(landmarks=100, callbacks=[watch], random_state=0).fit(X[:300], y[:300])
    >>> bool(est.history_[-1]["valid_rmse"] < 60)
    True
    """

    X: Any
    y: Any
    every: int = 1
    coded: bool = False
    scale: Any = 1.0
    weights: Float[Array, " _"] | None = None

    def __post_init__(self) -> None:
        as_count(self.every, "every")

    def __call__(self, problem: Problem, state: State) -> None:
        """Predict and compare in every `every`-th iteration."""
        if state.iteration % self.every:
            return
        predicted, y = self.predict_state(problem, state)
        weights = None if self.weights is None else xp.cast(xp.to_host(self.weights), xp.float64)
        # The solver sees scaled targets: `scale` brings errors back to the units of the user.
        truth, values = ((part * self.scale).reshape(-1) for part in (y, predicted))
        of_entries = None if weights is None else xp.repeat(weights, y.shape[1])
        state.metrics[VALID_RMSE] = float(METRIC_TABLE["rmse"](truth, values, of_entries))
        if self.coded:
            # Codes are compared by the class that they stand for: their squared error says little
            # about wrong labels.
            truth, labels = (likeliest(part) for part in (y, predicted))
            of_rows = None if weights is None else weights
            state.metrics[VALID_ERROR] = float(METRIC_TABLE["error"](truth, labels, of_rows))

    def predict_state(
        self, problem: Problem, state: State
    ) -> tuple[Float[Array, "n t"], Float[Array, "n t"]]:
        """Return the predictions of a state, and the targets.

        Raises
        ------
        ValueError
            If the targets have another number of values.
        """
        K = problem.K
        model, rows = problem.model(state.coef), as_rows(self.X)
        # Held-out rows may have another dtype than the centers, for which the engine may have no
        # tiles.
        dtype = xp.promote_types(rows.dtype, model.centers.dtype)
        engine, memory = choose_within_memory(
            K.engine, model.kernel, K.host_bytes, dtype=dtype, sparse=rows.sparse
        )
        predicted = xp.to_host(model.predict(rows, engine=engine, memory_bytes=memory))
        y = xp.asarray(self.y, dtype=xp.float64)
        # Targets of shape (n,) are accepted for a model of shape (n, 1).
        if xp.size(y) != xp.size(predicted):
            raise ValueError(
                f"y of Validate must have shape {tuple(predicted.shape)}, rows by targets, not "
                f"{tuple(y.shape)}"
            )
        return predicted, y.reshape(predicted.shape)

    def with_targets(self, y: Float[Array, "n t"], coded: bool) -> Validate:
        """Return this callback with the targets of an estimator, in its scale or code."""
        return replace(self, y=y, coded=coded)
