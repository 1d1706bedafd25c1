"""FitParameters: the parameters of a fit, each with its type, default and form as an option."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any

# These types import NumPy, for which the help of the command line does not wait.
if TYPE_CHECKING:
    from .types import (
        Callbacks,
        CellsLike,
        Count,
        EngineLike,
        FileLike,
        Flag,
        Folds,
        Inputs,
        KernelLike,
        LandmarksLike,
        Lengthscale,
        LossLike,
        MemoryLimit,
        MetricLike,
        Number,
        OptionalFlag,
        OptionalNumber,
        Penalty,
        SolverLike,
        Tolerance,
        Verbosity,
    )

TUNING_CRITERIA = ("likelihood", "leave_one_out")
"""Values of ``lengthscale`` that tune all hyper-parameters of the kernel."""

MODEL_PANEL = "Model (any of these replaces the search with one fit)"
FIT_PANEL = "Fit (any of these replaces the search with one fit)"
COMPUTATION_PANEL = "Computation"


@dataclass(frozen=True)
class Parameter:
    """Option of the command line that sets a parameter.

    - `panel`: heading of `gramian fit --help` under which the option is listed.
    - `kind`: ``int``, ``float`` or ``bool``; ``str`` for values with a syntax of their own, which
      `gramian.cli.options.parsing` reads.
    """

    name: str
    default: Any
    panel: str
    help: str
    kind: type = str


def _option(panel: str, help: str, kind: type = str) -> dict[str, Any]:
    """Return the metadata of a field that is an option of the command line."""
    return {"panel": panel, "help": help, "kind": kind}


# scikit-learn prints the estimators, and they are compared by identity: a
# generated `__eq__` would remove their hash.
@dataclass(eq=False, repr=False)
class FitParameters:
    """Parameters of a fit, in the order of the signatures of the estimators.

    `KernelRidge` and `KernelRidgeClassifier` inherit the fields, `FitSettings` checks their values,
    and `gramian fit` has an option for each field with metadata. Nothing else declares a default.
    """

    kernel: KernelLike = field(
        default="auto",
        metadata=_option(MODEL_PANEL, "Name of a kernel, or auto; `gramian info` lists them."),
    )
    # Only the kernel may be a positional argument of an estimator.
    _: KW_ONLY
    lengthscale: Lengthscale = field(
        default="auto",
        metadata=_option(
            MODEL_PANEL,
            "A number in units of the (standardised) features, or one for each, such as 1,2.5; "
            "median; 2 median; auto; likelihood.",
        ),
    )
    penalty: Penalty = field(
        default="auto",
        metadata=_option(
            MODEL_PANEL, "Ridge per row, scikit-learn's alpha / n; auto: chosen on held-out rows."
        ),
    )
    landmarks: LandmarksLike = field(
        default="auto",
        metadata=_option(
            MODEL_PANEL,
            "Number of centers; none: all rows; auto: all rows up to 30,000 (10,000 with a given "
            "penalty), then sqrt(n) log(n); or a selector, such as bless_r, or bless_r:1000 for "
            "1,000 centers. `gramian info` lists them.",
        ),
    )
    standardize: Inputs = field(
        default="auto",
        metadata=_option(
            MODEL_PANEL,
            "true: scale features, and the target of a regression, to mean 0 and standard "
            "deviation 1; false: leave them; quantile: map features to normal values, for long "
            "tails; auto: true, or quantile if that predicts held-out rows better.",
        ),
    )
    standardize_target: OptionalFlag = field(
        default=None,
        metadata=_option(MODEL_PANEL, "true or false: whether to scale the target; default as X."),
    )
    # A field without metadata, here and below, is no option of the command line.
    metric: MetricLike = None
    cells: CellsLike = field(
        default=None,
        metadata=_option(
            MODEL_PANEL,
            "Largest number of rows of a cell. Each cell has a fit of its own, with all its rows "
            "as centers; predictions are blended between cells.",
            int,
        ),
    )
    loss: LossLike = field(
        default="squared",
        metadata=_option(
            MODEL_PANEL,
            "squared; logistic (probabilities of classes); huber, or huber:0.5 in units of the "
            "target; quantile:0.1,0.5,0.9; expectile:0.8; poisson and gamma (positive targets).",
        ),
    )
    cv: Folds = field(
        default=None,
        metadata=_option(
            MODEL_PANEL,
            "Number of folds for --penalty auto; by default a fifth of the rows is held out.",
            int,
        ),
    )
    solver: SolverLike = field(
        default="auto",
        metadata=_option(FIT_PANEL, "auto, or a name; `gramian info` lists them."),
    )
    max_iter: Count = field(
        default=100, metadata=_option(FIT_PANEL, "Maximum number of iterations.", int)
    )
    tol: Tolerance = field(
        default="auto",
        metadata=_option(
            FIT_PANEL,
            "Estimated error of predictions at which to stop, divided by the standard deviation of "
            "the target; or auto.",
        ),
    )
    engine: EngineLike = field(
        default="auto",
        metadata=_option(
            COMPUTATION_PANEL, "auto, native, numpy, triton, torch:cuda:1, triton:cuda:0,1."
        ),
    )
    memory_limit: MemoryLimit = field(
        default=None,
        metadata=_option(
            COMPUTATION_PANEL, "Memory for the fit, without data and libraries, such as 500MB."
        ),
    )
    callbacks: Callbacks = ()
    verbose: Verbosity = 0
    warm_start: Flag = False
    centers_file: FileLike = None
    early_stopping: Flag = field(
        default=False,
        metadata=_option(
            FIT_PANEL,
            "Stop when the error on held-out rows no longer falls, and keep the best iteration. "
            "Held-out rows: --validation, or a random tenth.",
            bool,
        ),
    )
    validation_fraction: Number = 0.1
    patience: Count = field(
        default=5,
        metadata=_option(FIT_PANEL, "Validations without a new minimum after which to stop.", int),
    )
    time_limit: OptionalNumber = field(
        default=None,
        metadata=_option(FIT_PANEL, "Time after which to stop: seconds, or 10min, 1.5h."),
    )


def option_parameters() -> Iterator[Parameter]:
    """Yield the parameters that the command line sets."""
    for parameter in fields(FitParameters):
        if parameter.metadata:
            yield Parameter(parameter.name, parameter.default, **parameter.metadata)
