"""The table of metrics: one entry for each measure of predictions.

Search, early stopping, ``score`` of remote rows, ``gramian evaluate`` and ``fit --metric``, the
report page and displays read it. To add a metric, add an entry to `METRIC_TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from pkgutil import resolve_name
from typing import Any, Literal

REGRESSION_TASK, CLASSIFICATION_TASK = "regression", "classification"

OutputKind = Literal["predictions", "decision", "probabilities", "estimator"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measure of predictions.

    - `name`: name in reports and on the command line.
    - `title`: name in sentences and on axes.
    - `task`: "regression" or "classification".
    - `function`: function of true values, output and ``sample_weight``, as scikit-learn's, or a
      class of `gramian.scoring.forms`. A text ``module:name`` is imported when it is called, which
      keeps the command line fast.
    - `output`: argument of the function: "predictions", which are numbers, or classes as numbers;
      "decision", the decision values of one class against the rest, whose mean over the classes is
      the metric; "probabilities" (n, k) of the classes 0 to k - 1, with ``labels``; or "estimator",
      for a scorer of scikit-learn.
    - `merge`: name of the form in `gramian.scoring.forms` that computes a function of scikit-learn
      block by block on a cluster. Without it, predictions are gathered. Metrics of labels and of
      decision values need none: counts of distinct rows take the place of the rows.
    - `scorer`: name of the scorer in scikit-learn, which stands for the same metric.
    - `needs_variation`: whether the metric is undefined if all true values are equal.
    - `options`: keyword arguments of the function.
    - `similar_names`: names elsewhere of this or a similar metric, for hints in errors.
    """

    name: str
    title: str
    task: str
    function: str | Callable[..., Any]
    output: OutputKind = "predictions"
    higher_is_better: bool = False
    merge: str = ""
    scorer: str = ""
    needs_variation: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    similar_names: tuple[str, ...] = ()

    @property
    def resolved_function(self) -> Callable[..., Any]:
        """The function, or the class of the form; imported if it is named."""
        return resolve_name(self.function) if isinstance(self.function, str) else self.function

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the metric, and name of the scorer in scikit-learn if it has one."""
        return (self.name, self.scorer) if self.scorer else (self.name,)

    @property
    def is_of_constants(self) -> bool:
        """Whether the metric is compared with a constant prediction, which has no probabilities."""
        return self.output != "probabilities"

    def __call__(self, y: Any, output: Any, weights: Any = None, **more: Any) -> Any:
        """Return the value of the function, for the weights of the rows."""
        function = self.resolved_function
        function = function() if isinstance(function, type) else function
        return function(y, output, sample_weight=weights, **self.options, **more)


def _regression(name: str, title: str, function: str, **more: Any) -> Metric:
    return Metric(name=name, title=title, task=REGRESSION_TASK, function=function, **more)


def _classification(name: str, title: str, function: str, **more: Any) -> Metric:
    return Metric(name=name, title=title, task=CLASSIFICATION_TASK, function=function, **more)


METRIC_TABLE: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        _regression(
            "rmse", "root mean squared error", "sklearn.metrics:root_mean_squared_error",
            merge="RootOfMean", scorer="neg_root_mean_squared_error",
            similar_names=("mse", "mean_squared_error"),
        ),
        _regression(
            "mae", "mean absolute error", "sklearn.metrics:mean_absolute_error",
            merge="MeanOfRows", scorer="neg_mean_absolute_error",
        ),
        _regression(
            "r2", "R2", "sklearn.metrics:r2_score", higher_is_better=True,
            merge="ExplainedVariance", scorer="r2", needs_variation=True, similar_names=("r^2",),
        ),
        _regression(
            "relative_error", "relative error", "gramian.scoring.forms:RelativeError",
            similar_names=("relative_l2_error",),
        ),
        _regression(
            "smape", "symmetric mean absolute percentage error",
            "gramian.scoring.forms:SymmetricPercentageError",
            similar_names=("symmetric_mean_absolute_percentage_error",),
        ),
        _classification(
            "error", "share of wrong labels", "sklearn.metrics:zero_one_loss",
            similar_names=("misclassification",),
        ),
        _classification(
            "accuracy", "accuracy", "sklearn.metrics:accuracy_score", higher_is_better=True,
            scorer="accuracy", similar_names=("acc",),
        ),
        _classification(
            "balanced_accuracy", "balanced accuracy", "sklearn.metrics:recall_score",
            higher_is_better=True, scorer="balanced_accuracy",
            similar_names=("balanced_accuracy_score",),
            options={"average": "macro", "zero_division": nan},  # of the classes that occur
        ),
        _classification(
            "macro_f1", "mean F1 of the classes", "sklearn.metrics:f1_score",
            higher_is_better=True, scorer="f1_macro", similar_names=("f1",),
            options={"average": "macro", "zero_division": 0.0},
        ),
        _classification(
            "auc", "area under the ROC curve", "sklearn.metrics:roc_auc_score", output="decision",
            higher_is_better=True, scorer="roc_auc",
        ),
        _classification(
            "average_precision", "average precision", "sklearn.metrics:average_precision_score",
            output="decision", higher_is_better=True, scorer="average_precision",
            similar_names=("ap", "pr_auc", "auprc"),
        ),
        _classification(
            "log_loss", "log loss", "sklearn.metrics:log_loss", output="probabilities",
            merge="MeanOfRows", scorer="neg_log_loss", similar_names=("logloss", "cross_entropy"),
        ),
        _classification(
            "brier", "Brier score", "gramian.scoring.forms:BrierScore",
            output="probabilities", scorer="neg_brier_score", similar_names=("brier_score_loss",),
        ),
        _classification(
            "calibration_error", "calibration error of the predicted class, in 15 bins",
            "gramian.scoring.forms:CalibrationError", output="probabilities",
            similar_names=("ece",),
        ),
    )
}  # fmt: skip
"""All metrics by name, in the order of reports."""

MAIN_METRIC = {REGRESSION_TASK: "rmse", CLASSIFICATION_TASK: "error"}
"""Name of the metric that stands for all, in sentences and pictures."""

CONSTANT_OF_TASK = {REGRESSION_TASK: "mean", CLASSIFICATION_TASK: "majority"}
"""Name of the constant prediction that each task is compared with."""


def task_of(classes: object) -> str:
    """Return the task of a model: classification if it has classes, or regression."""
    return CLASSIFICATION_TASK if classes else REGRESSION_TASK


def metrics_of(task: str) -> dict[str, Metric]:
    """Return the metrics of a task by name."""
    return {name: metric for name, metric in METRIC_TABLE.items() if metric.task == task}
