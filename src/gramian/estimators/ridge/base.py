"""Base class of the ridge estimators, with the methods of a fitted model."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import data, fitting
from ..._arrays import Array, RandomStream
from ..._arrays.random import seeded_words
from ..._messages.checks import as_bytes
from ..._parallel.machine import machine_memory
from ..._parameters.types import (
    EngineLike,
    Inputs,
    KernelLike,
    MemoryLimit,
    MetricLike,
    RandomState,
)
from ...conformal import ConformalMethod
from ...data import RowNumbers, RowSource
from ...engines import Engine
from ...fitting import FitSettings, Fitted, Generators, TrainingData
from ...fitting.inputs.kernel_matrix import PRECOMPUTED_NAME as PRECOMPUTED
from ...fitting.inputs.scaling import PathRow
from ...kernels import Kernel
from ...metric import Metric
from ...model import BlendModel, Model
from ...solvers import Solver, StopReason
from ...solvers.base import solvers
from .. import tables, validation
from ..base import (
    check_names,
    describe_kernel,
    has_features,
    is_function,
    is_matrix,
    one_or_all,
    set_parameters,
    squeeze_coef,
)
from ..types import Columns, Groups, Read, RowsLike, TargetsLike, Weights
from .prediction import feature_importances, prediction_engine

BLOCK_BYTES = 1 << 30
"""Default memory for blocks of predictions."""

TRAINING_ATTRIBUTES = ("_training", "_loo")
"""Attributes with training rows."""


class KernelRidgeModel(BaseEstimator):
    """Base of the estimators that fit or search a kernel ridge regression."""

    kernel: KernelLike
    standardize: Inputs
    metric: MetricLike
    engine: EngineLike
    memory_limit: MemoryLimit
    conformal: str | ConformalMethod | None
    conformal_groups: str | int | None
    random_state: RandomState

    model_: Model
    landmark_index_: np.ndarray | None
    solver_: Solver[Any, Any]
    solver_settings_: dict[str, Any]
    engine_: Engine
    objects_: list[Any]
    classes_: np.ndarray
    penalty_: float | np.ndarray
    path_: list[PathRow] | None
    kernel_: KernelLike | tuple[Kernel, ...]
    n_iter_: int
    stop_reason_: StopReason
    history_: list[dict[str, Any]]
    best_iteration_: int | None
    validation_error_: float | None
    metric_history_: list[dict[str, Any]] | None
    _fitted: Fitted
    _by_name: bool
    _one_dimensional: bool
    _training: TrainingData | None = None
    """Rows of the last fit in this process; neither copies nor files contain them."""
    _loo: tuple[TrainingData, fitting.LeftOut] | None = None
    """Cached leave-one-out results of the rows of the last fit."""
    _importances: tuple[Model, np.ndarray] | None = None

    def __new__(cls: type[Estimator], *_args: object, **params: object) -> Estimator:
        """Raise an error for unknown parameters before `__init__`, with the names in gramian."""
        check_names(cls, params, TypeError)
        estimator: Estimator = super().__new__(cls)
        return estimator

    def set_params(self: Estimator, **params: Any) -> Estimator:
        """Set parameters, and parameters of kernel objects, as in ``kernel__lengthscale``."""
        set_parameters(self, params)
        return self

    def __sklearn_tags__(self) -> Tags:
        """Accept sparse rows if no map fills their zeros; split a kernel matrix in both dimensions.

        A matrix as the metric refuses sparse rows in the fit.
        """
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_matrix(self.kernel)
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    @property
    def _accepts_sparse(self) -> bool:
        quantiles = isinstance(self.standardize, str) and self.standardize != "auto"
        return not (is_matrix(self.kernel) or quantiles or isinstance(self.metric, str | Metric))

    def __dir__(self) -> list[str]:
        """Return the names of attributes and properties, without computing properties.

        scikit-learn reads each value, and completion in a notebook would then factorise the matrix
        of all rows for `log_marginal_likelihood_`.
        """
        return [
            name
            for name in object.__dir__(self)
            if isinstance(inspect.getattr_static(self, name, None), property) or hasattr(self, name)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except training rows, for copies and pickles."""
        state = super().__getstate__()
        return {name: state[name] for name in state if name not in TRAINING_ATTRIBUTES}

    # --- the model -----------------------------------------------------------------------------

    def with_model(self: Estimator, model: Model) -> Estimator:
        """Set the attributes of the estimator from a fitted model.

        Parameters
        ----------
        model : KernelModel or AverageModel
            A model. For an average, `kernel_` and `dual_coef_` are tuples with an item for each
            member.

        Returns
        -------
        KernelRidge or KernelRidgeClassifier
            Itself, which can predict, score and save, but not `partial_fit`.

        Raises
        ------
        ValueError
            If the model is for the other task.
        """
        if (model.classes is None) is is_classifier(self):
            kinds = ("a regression", "a classification")
            of_model, of_estimator = kinds if model.classes is None else kinds[::-1]
            raise ValueError(
                f"the model must be {of_estimator} for {type(self).__name__}, not {of_model}"
            )
        # Attributes of an earlier fit, such as its history, do not describe the new model.
        private = ("_fitted", *TRAINING_ATTRIBUTES)
        for name in [name for name in vars(self) if name.endswith("_") or name in private]:
            delattr(self, name)
        names = model.feature_names if model.encoding is None else model.encoding.names
        self._set_model(model)
        self.n_features_in_ = model.features if names is None else len(names)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._by_name, self._one_dimensional = names is not None, model.outputs == 1
        if model.classes is not None:
            self.classes_ = np.asarray(model.classes)
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to a file for `gramian.load`; see `Model.save`.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self)
        if is_function(self.kernel):
            raise ValueError(
                "a model file cannot contain a Python function as kernel, or its objects; pickle "
                "the estimator, or fit the kernel matrix with kernel='precomputed'"
            )
        facts = {name: value for name, value in self._facts().items() if value is not None}
        replace(self.model_, info={**facts, **self.model_.info}).save(path)

    def _facts(self) -> dict[str, Any]:
        """Return facts about the fit, for the model file."""
        # A loaded estimator has them in `model_.info`, and has no solver.
        if not hasattr(self, "solver_"):
            return {}
        index, training = self.landmark_index_, self._training
        return {
            "method": "one fit",
            "rows": None if training is None else len(training.rows),
            "landmarks": None if index is None else len(index),
            "penalty": self.penalty_ if isinstance(self.penalty_, float) else None,
            "solver": solvers.name_of(self.solver_),
        }

    def _set_model(self, model: Model) -> None:
        self.model_ = model
        self.kernel_ = one_or_all(part.kernel for part in model.parts)
        self.dual_coef_ = one_or_all(squeeze_coef(part.coef) for part in model.parts)

    # --- predictions ---------------------------------------------------------------------------

    def _predict(self, X: RowsLike) -> np.ndarray:
        # scikit-learn asks for tags of the class first, which takes as long as a third of a row.
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        rows = validation.new_rows(self, X)
        engine = self._engine_of_prediction(rows)
        return self.model_.predict(rows, engine=engine, memory_bytes=self._block_bytes())

    def _engine_of_prediction(self, rows: RowSource) -> str | Engine:
        engine = getattr(self, "engine_", self.engine)  # a loaded model has none
        return prediction_engine(engine, self.model_, rows, is_auto=self.engine == "auto")

    def gradient(self, X: RowsLike) -> np.ndarray:
        """Return the gradients of the predictions or decision values.

        Parameters
        ----------
        X : as in `fit`
            Dense rows.

        Returns
        -------
        ndarray of shape (n, d) for one target, else (n, t, d)
            Gradients with respect to the features, in the units of X; for a table with encoded
            columns, with respect to the encoded features, named in
            ``model_.encoding.feature_names``.

        Raises
        ------
        ValueError
            If the kernel has no gradients, or the rows are sparse.

        Notes
        -----
        Cost: n m kernel evaluations and 2 n m t d operations. A constant feature has the gradient
        of its map, although no row shows its effect.
        """
        check_is_fitted(self)
        if not has_features(self.kernel):
            raise ValueError(
                "gradients require rows of features, which "
                f"{describe_kernel(self.kernel)} does not have"
            )
        rows = validation.new_rows(self, X)
        values = self.model_.gradient(
            rows, engine=self._engine_of_prediction(rows), memory_bytes=self._block_bytes()
        )
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def metric_(self) -> np.ndarray | tuple[np.ndarray | None, ...] | None:
        """The map of the features: a matrix of shape (d, k), scales of shape (d,), or None."""
        check_is_fitted(self)
        return one_or_all(
            None if part.metric is None else part.metric.array for part in self.model_.parts
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares of the features, or of the columns of a table, in the variation of predictions."""
        check_is_fitted(self)
        if not has_features(self.kernel):
            raise AttributeError(
                "feature_importances_ requires rows of features, which "
                f"{describe_kernel(self.kernel)} does not have"
            )
        # The cache belongs to one model object: each fit makes a new one.
        if self._importances is None or self._importances[0] is not self.model_:
            names = getattr(self, "feature_names_in_", None)
            shares = feature_importances(self.model_, names, self._block_bytes())
            self._importances = (self.model_, shares)
        return self._importances[1]

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _limit(self) -> int | None:
        return None if self.memory_limit is None else as_bytes(self.memory_limit)

    def _block_bytes(self) -> int:
        return self._limit() or BLOCK_BYTES

    def _memory_bytes(self) -> int:
        return self._limit() or machine_memory()

    # --- leave-one-out -------------------------------------------------------------------------

    @property
    def loo_predictions_(self) -> np.ndarray:
        """Leave-one-out predictions of the training rows, (n,) or (n, t).

        The kernel, N times the penalty and all maps of features and targets are fixed; a row is
        left out with its whole weight. Leaving out a row removes its landmark from the centers,
        unless another row equals it. Cost: see `gramian.fitting.uncertainty.closed_form`.
        """
        values = self._left_out().values
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def gcv_(self) -> float | np.ndarray:
        """Generalised cross-validation: the squared error, or an error per target, (t,)."""
        gcv = self._left_out().gcv
        return float(gcv[0]) if len(gcv) == 1 else gcv

    def _left_out(self) -> fitting.LeftOut:
        check_is_fitted(self)
        # The cache belongs to the training rows of one fit, compared by identity.
        if self._loo is None or self._loo[0] is not self._training:
            try:
                data, penalties = self._system("leave-one-out predictions")
                result = fitting.left_out(self.model_, data, penalties, self._limit())
            except ValueError as error:  # `hasattr` expects no other error
                raise AttributeError(f"there are no leave-one-out predictions: {error}") from error
            self._loo = (data, result)
        return self._loo[1]

    def _system(self, purpose: str) -> tuple[TrainingData, tuple[float, ...]]:
        """Return the data of the last fit, and the penalty of each model in it.

        Raise ValueError if the model does not solve a single system of these rows.
        """
        if self._training is None:
            raise ValueError(
                f"{purpose} require the training rows, which copies, loaded models, partial_fit "
                "and kernel='precomputed' do not keep; fit again, and compute them before saving"
            )
        if isinstance(self.model_, BlendModel):
            raise ValueError(f"{purpose} require a kernel model, but this is a blend with trees")
        if any(part.cells is not None for part in self.model_.parts):
            raise ValueError(f"{purpose} require a single system, but each cell has its own")
        return self._training, self._penalties()

    def _penalties(self) -> tuple[float, ...]:
        """Return the penalty of each model; raise ValueError without a closed form."""
        return self._fitted.closed_form()

    # --- training data -------------------------------------------------------------------------

    def _load_rows(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights,
        settings: FitSettings,
        rng: Generators,
        *,
        columns: Columns,
        drop_missing_target: bool,
        read: Read,
        groups: Groups = None,
        order: Groups = None,
    ) -> fitting.Whole:
        """Return all rows of a fit, before the calibration split."""
        X = tables.with_read_options(X, y, read)
        y = tables.named_targets(X, y)
        is_named = tables.is_by_name(X, y, columns, sample_weight, groups, order)
        self._by_name = is_named and not is_function(self.kernel)
        if self._by_name:
            roles = (sample_weight, groups)
            table = tables.open_training_table(self, X, y, columns, roles, drop_missing_target)
            table, weights = self._read_table(table, sample_weight)
            labels = self.classes_ if is_classifier(self) else None
            return fitting.whole_of(table, settings, rng, labels=labels, weights=weights)
        is_numeric = not is_classifier(self)
        rows, y = validation.training_rows(self, X, y, settings, y_numeric=is_numeric)
        training = self._read_rows(rows, y, sample_weight)
        medians = validation.medians_of(rows, self._names())
        return fitting.WholeRows(replace(training, medians=medians), settings)

    @abstractmethod
    def _read_table(self, table: data.TrainingTable, sample_weight: Weights) -> tuple[Any, Any]:
        """Return a table with checked targets, and the weights of its rows."""

    @abstractmethod
    def _read_rows(self, rows: RowSource, y: RowNumbers, sample_weight: Weights) -> TrainingData:
        """Return rows as training data, with targets of the kind of the estimator."""

    @abstractmethod
    def _encode_targets(self, y: Any, dtype: xp.DType) -> Array:
        """Return values of targets, such as of a `Validate` callback, as the fit takes them."""

    # --- refits --------------------------------------------------------------------------------

    def _settings(self) -> FitSettings:
        """Return the checked parameters of a fit."""
        # To the fit, a function of objects is a matrix whose entries are computed on demand.
        values = {field.name: getattr(self, field.name) for field in fields(FitSettings)}
        return FitSettings(**values | ({"kernel": PRECOMPUTED} if is_function(self.kernel) else {}))

    def _refit(self, data: TrainingData, rng: Generators) -> fitting.Refit:
        """Return a `Refit`, which repeats the last fit to `data` on other rows."""
        return fitting.Refit.of_fit(self.model_, self._fitted, self._settings(), data, rng)

    def _state(self) -> np.random.RandomState:
        seed = self.random_state
        if type(seed) is int and 0 <= seed < 1 << 32:
            return np.random.RandomState(seeded_words(seed))
        return check_random_state(seed)

    def _draws(self) -> RandomStream:
        return fitting.conformal_stream(self._state())


Estimator = TypeVar("Estimator", bound=KernelRidgeModel)
