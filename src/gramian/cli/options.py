"""Options of a fit and of a search: each field of a class is an option of its commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

from typer import Option

from . import parsing

DATA, SEARCH, WORK = "What to learn from", "The search", "The computation"
MODEL = "The model: each of these asks for one fit, without a search"
FIT = "The fit: so does each of these"


class Task(StrEnum):
    """The kind of the target: a number, a class, or whichever it looks like."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


def _option(panel: str, help: str, *names: str) -> Any:
    return Option(*names, help=help, rich_help_panel=panel)


Target = Annotated[str, _option(DATA, "Column to predict; in a .npy file, its number.")]
Features = Annotated[
    str | None, _option(DATA, "Columns to learn from, as a,b,c. All others by default.")
]
Drop = Annotated[str | None, _option(DATA, "Columns to leave out, as a,b,c.", "--drop", "--ignore")]
Kind = Annotated[Task, _option(DATA, "auto: classification if the target is text or boolean.")]
Validation = Annotated[
    str | None,
    _option(
        DATA,
        "Rows held out to measure the error: a fraction of DATA, or another file. A search does "
        "not choose by them.",
    ),
]
Metric = Annotated[
    str | None, _option(DATA, "What is measured on them, as mae, r2, balanced_accuracy or auc.")
]
Spent = Annotated[
    str,
    _option(
        SEARCH,
        "Time for a search, as '30 s' or '2 min', or kernel evaluations, as 1e9; auto: all its "
        "steps, up to a minute or two.",
    ),
]
Memory = Annotated[
    str | None, _option(WORK, "Memory for the fit beside data and libraries, as 500MB.")
]
Where = Annotated[str, _option(WORK, "auto, native, torch, triton, torch:cuda:1, triton:cuda:0,1.")]
Seed = Annotated[int, _option(WORK, "For random landmarks and held-out rows.")]


@dataclass(frozen=True)
class FitOptions:
    """Options of `gramian fit` and `gramian plan`.

    Attributes
    ----------
    given : frozenset of str
        Which parameters of the command were given, whatever their values; no option.
    """

    target: Target
    features: Features = None
    drop: Drop = None
    task: Kind = Task.AUTO
    validation: Validation = None
    metric: Metric = None
    budget: Spent = "auto"
    kernel: Annotated[
        str, _option(MODEL, "Name of a kernel, or auto; `gramian info` lists them.")
    ] = "gaussian"
    lengthscale: Annotated[
        str,
        _option(
            MODEL,
            "A number in units of the (standardised) features, one each; median, 2 median, auto.",
        ),
    ] = "median"
    penalty: Annotated[
        str,
        _option(
            MODEL,
            "Ridge per row, scikit-learn's alpha / n; auto: chosen on held-out rows, as it is with "
            "another --loss where none is given.",
        ),
    ] = "1e-6"
    cv: Annotated[
        int | None,
        _option(MODEL, "Folds that --penalty auto tries penalties on, instead of a fifth."),
    ] = None
    landmarks: Annotated[
        str,
        _option(
            MODEL,
            "Number of centers; none: all rows; auto: all up to 10,000, then sqrt(n) log(n); or "
            "how to choose them: bless_r, or bless_r:1000 for so many. `gramian info` lists them.",
        ),
    ] = "auto"
    loss: Annotated[
        str,
        _option(
            MODEL,
            "squared; logistic (probabilities of classes); huber, or huber:0.5 in units of the "
            "target; quantile:0.1,0.5,0.9; expectile:0.8; poisson and gamma (positive targets).",
        ),
    ] = "squared"
    cells: Annotated[
        int | None,
        _option(
            MODEL,
            "Divide the rows into cells of at most so many, each a fit of its own with all its "
            "rows as centers; predictions are blended between them.",
        ),
    ] = None
    standardize: Annotated[
        bool,
        _option(MODEL, "Give features, and the target of a regression, mean 0 and deviation 1."),
    ] = True
    quantiles: Annotated[
        bool,
        _option(MODEL, "Make features normal by their quantiles then: for long tails."),
    ] = False
    learn_metric: Annotated[
        bool,
        _option(MODEL, "Learn first, on a sample, which features and directions matter."),
    ] = False
    standardize_target: Annotated[
        bool | None, _option(MODEL, "Do so with the target alone, or not; by default as above.")
    ] = None
    metric_rounds: Annotated[
        int | None, _option(MODEL, "Rounds of --learn-metric, at most; each is tried.")
    ] = None
    metric_power: Annotated[
        float | None,
        _option(MODEL, "Power of the matrix that is learned, up to 1; 0.5 and 0.25 are tried."),
    ] = None
    metric_kernel: Annotated[
        str | None, _option(MODEL, "Kernel that it is learned with; --kernel by default.")
    ] = None
    solver: Annotated[str, _option(FIT, "auto, or a name; `gramian info` lists them.")] = "auto"
    max_iter: Annotated[int, _option(FIT, "Iterations after which to stop.")] = 100
    tol: Annotated[
        float,
        _option(
            FIT,
            "Estimated error of predictions at which to stop, over the deviation of the target.",
        ),
    ] = 1e-6
    early_stopping: Annotated[
        bool,
        _option(
            FIT,
            "Stop when the error on held-out rows no longer falls, and keep the best iteration. "
            "The rows of --validation, else a random tenth.",
        ),
    ] = False
    patience: Annotated[
        int, _option(FIT, "Looks at these rows without a new minimum before that.")
    ] = 5
    time_limit: Annotated[
        str | None, _option(FIT, "Time after which to stop: seconds, or 10min, 1.5h.")
    ] = None
    dask: Annotated[
        str | None,
        _option(
            FIT,
            "Where the files of DATA, a folder of Parquet, are read: the scheduler of a Dask "
            "cluster, as tls://scheduler:8786, or local:4 for so many processes here.",
        ),
    ] = None
    dask_patience: Annotated[
        str | None,
        _option(FIT, "Time without any worker of --dask after which to give up; 5min by default."),
    ] = None
    dask_keep: Annotated[
        bool,
        _option(FIT, "Let the workers of --dask keep the rows in memory, not read them each pass."),
    ] = False
    memory_limit: Memory = None
    engine: Where = "auto"
    seed: Seed = 0
    given: frozenset[str] = frozenset()

    @property
    def of_a_model(self) -> tuple[str, ...]:
        """The options that were given and describe a model or its fit: a search has none."""
        named = [f.name for f in fields(self) if f.name not in SEARCHED]
        if "budget" not in self.given:  # a search has a checkpoint, too
            named += ["checkpoint", "checkpoint_every"]
        return tuple(f"--{name.replace('_', '-')}" for name in named if name in self.given)

    def __post_init__(self) -> None:
        self._check_together()
        parsing.penalty(self.penalty)
        parsing.loss(self.loss)
        if self.max_iter < 1:
            raise ValueError(f"--max-iter must be at least 1, not {self.max_iter}")
        if self.cv is not None and self.cv < 2:
            raise ValueError(f"--cv must be at least 2, not {self.cv}")
        if self.patience < 1:
            raise ValueError(f"--patience must be at least 1, not {self.patience}")
        if self.time_limit is not None:
            parsing.seconds(self.time_limit)
        if not self.tol >= 0:
            raise ValueError(f"--tol must be at least 0, not {self.tol:g}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed must be at least 0 and below 2**32, not {self.seed}")

    def _check_cells(self) -> None:
        if self.cells is None:
            return
        if self.cells < 1:
            raise ValueError(f"--cells must be at least 1, not {self.cells}")
        others = (
            (self.landmarks not in ("auto", "none"), f"--landmarks {self.landmarks}"),
            (self.early_stopping, "--early-stopping"),
            (self.validation is not None, "--validation"),
        )
        for is_given, option in others:
            if is_given:
                raise ValueError(
                    f"--cells has a solver for each cell, with which {option} does not go: leave "
                    "one of them out; `gramian evaluate` measures the error on other rows"
                )

    def _check_together(self) -> None:
        self._check_cells()
        if self.features is not None and self.drop is not None:
            raise ValueError("--features and --drop are two ways to say the same: give one")
        if self.quantiles and not self.standardize:
            raise ValueError("--quantiles goes on from --standardize: leave --no-standardize out")
        if self.budget != "auto" and self.of_a_model:
            raise ValueError(
                f"--budget is of a search, and {self.of_a_model[0]} asks for one fit without it: "
                "leave one of them out"
            )
        for name in ("metric_rounds", "metric_power", "metric_kernel"):
            if getattr(self, name) is not None and not self.learn_metric:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} says how to learn a metric: give --learn-metric, too")
        if self.metric_rounds is not None and self.metric_rounds < 1:
            raise ValueError(f"--metric-rounds must be at least 1, not {self.metric_rounds}")
        if self.metric_power is not None and not 0 < self.metric_power <= 1:
            raise ValueError(f"--metric-power is above 0 and at most 1, not {self.metric_power:g}")


@dataclass(frozen=True)
class TuneOptions:
    """Options of `gramian tune`, those of a search."""

    target: Target
    features: Features = None
    drop: Drop = None
    task: Kind = Task.AUTO
    validation: Validation = None
    metric: Metric = None
    budget: Spent = "auto"
    memory_limit: Memory = None
    engine: Where = "auto"
    seed: Seed = 0
    given: frozenset[str] = frozenset()

    @property
    def of_fit(self) -> FitOptions:
        """The same as options of a fit that searches."""
        return FitOptions(**asdict(self))


SEARCHED = frozenset(f.name for f in fields(TuneOptions))
"""Options that say nothing about the model."""
