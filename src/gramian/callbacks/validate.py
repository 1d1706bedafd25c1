"""Validate: the error on held-out rows after an iteration."""

from __future__ import annotations

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
from ..solvers import State
from ..solvers.loop.metrics import VALID_ERROR, VALID_RMSE


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
