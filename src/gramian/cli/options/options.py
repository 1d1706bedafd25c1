"""Options of a fit and of a search.

Each field of a class is an option of its commands. `gramian._parameters.fit_parameters` declares
the options that set a parameter of a fit. `FitSettings` receives the given ones and defaults the
rest.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any

from typer import Option
from typer.models import OptionInfo

from ..._parameters.fit_parameters import (
    COMPUTATION_PANEL,
    FIT_PANEL,
    MODEL_PANEL,
    Parameter,
    option_parameters,
)
from . import parsing
from .reading import READING_OPTIONS, ReadingOptions

DATA, SEARCH = "Data", "Search"
SEARCH_PARAMETERS = frozenset(("engine", "memory_limit"))
"""Parameters of a fit that a search also has."""


class Task(StrEnum):
    """The kind of the target; AUTO infers it from the values."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


def _option(panel: str, help: str, *names: str) -> OptionInfo:
    option: OptionInfo = Option(*names, help=help, rich_help_panel=panel)
    return option


DropMissing = Annotated[
    bool,
    _option(DATA, "Leave out rows without a target.", "--drop-missing-target"),
]


def one_or_several(names: str | Sequence[str]) -> Any:
    """Return a single name as a text, several as a tuple; ValueError for a repeated one."""
    several = (names,) if isinstance(names, str) else tuple(names)
    twice = next((name for name in several if several.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--target {twice} is given twice; name each column once")
    return several[0] if len(several) == 1 else several


@dataclass(frozen=True)
class TuneOptions(ReadingOptions):
    """Options of `gramian tune`, a search.

    - `parameters`: given parameters of the fit by name, with the values of their options.
    - `given_names`: names of the given parameters of the command; not an option.
    """

    target: Annotated[
        list[str],
        _option(DATA, "Column to predict: a name, or a number in .npy; repeatable."),
    ]
    features: Annotated[
        list[str] | None,
        _option(
            DATA,
            "Columns to learn from, as a,b,c or @FILE with a name a line; repeat the option for "
            "names with commas. All others by default.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _option(DATA, "Columns to leave out, as a,b,c.", "--drop", "--ignore"),
    ] = None
    strict: Annotated[
        bool,
        _option(
            DATA,
            "Refuse text files with values that are not of the type of their column, instead of "
            "reading them as missing.",
            "--strict",
        ),
    ] = False
    weight: Annotated[str | None, _option(DATA, "Column with the weights of the rows.")] = None
    drop_missing_target: DropMissing = False
    task: Annotated[
        Task, _option(DATA, "auto: classification if the target is text or boolean.")
    ] = Task.AUTO
    validation: Annotated[
        str | None,
        _option(
            DATA,
            "Rows held out to measure the error: a fraction of DATA, or another file. They affect "
            "no choice of a search.",
        ),
    ] = None
    metric: Annotated[
        str | None,
        _option(
            DATA,
            "Metric on these rows, such as mae, smape, balanced_accuracy or auc; or a scorer of "
            "scikit-learn.",
        ),
    ] = None
    scoring: Annotated[
        str | None,
        _option(
            SEARCH,
            "Score that compares fits: a metric, such as mae, smape or auc, or a scorer of "
            "scikit-learn, such as neg_mean_absolute_percentage_error; the squared error by "
            "default.",
        ),
    ] = None
    budget: Annotated[
        str,
        _option(
            SEARCH,
            "Time for a search, as '30 s', '2 min' or '30 cpu s', or kernel evaluations, as 1e9; "
            "auto: all its steps, up to a minute or two.",
        ),
    ] = "auto"
    blend: Annotated[
        str | None,
        _option(
            SEARCH,
            "lightgbm: average the result with boosted trees, by held-out rows. Needs "
            "gramian[trees].",
        ),
    ] = None
    groups: Annotated[
        str | None,
        _option(
            SEARCH,
            "Column whose values are groups: rows of a group are in one fold. It is no feature.",
        ),
    ] = None
    order: Annotated[
        str | None,
        _option(
            SEARCH,
            "Column of the order of the rows, such as a day: each fold is predicted from the rows "
            "before it.",
        ),
    ] = None
    folds: Annotated[
        str | None,
        _option(
            SEARCH,
            "Number of folds, or the column of the fold of each row, -1 for rows in none, which is "
            "no feature; by default rows are held out, and groups have up to five.",
        ),
    ] = None
    seed: Annotated[int, _option(COMPUTATION_PANEL, "For random landmarks and held-out rows.")] = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    given_names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", one_or_several(self.target))

    @property
    def of_fit(self) -> FitOptions:
        """The same options for a fit that searches."""
        return FitOptions(**asdict(self))


@dataclass(frozen=True)
class FitOptions(TuneOptions):
    """Options of `gramian fit` and `gramian plan`, which may describe a model or search for one."""

    learn_metric: Annotated[
        bool,
        _option(MODEL_PANEL, "Learn first, on a sample, which features and directions matter."),
    ] = False
    metric_rounds: Annotated[
        int | None, _option(MODEL_PANEL, "Rounds of --learn-metric, at most; each is tried.")
    ] = None
    metric_power: Annotated[
        float | None,
        _option(MODEL_PANEL, "Power of the learned matrix, up to 1; 0.5 and 0.25 are tried."),
    ] = None
    metric_kernel: Annotated[
        str | None, _option(MODEL_PANEL, "Kernel of --learn-metric; --kernel by default.")
    ] = None
    dask: Annotated[
        str | None,
        _option(
            FIT_PANEL,
            "Dask cluster that reads the files of DATA, a folder of Parquet: address of a "
            "scheduler, as tls://scheduler:8786, or local:4 for four processes on this machine.",
        ),
    ] = None
    dask_patience: Annotated[
        str | None,
        _option(
            FIT_PANEL, "Longest time without a worker of --dask before giving up; default 5min."
        ),
    ] = None
    dask_keep: Annotated[
        bool,
        _option(FIT_PANEL, "Keep the rows in the memory of the workers of --dask between passes."),
    ] = False

    @property
    def fold_count(self) -> int | None:
        """Number of folds of a search, if one is given."""
        return None if self.folds is None or self.fold_column is not None else int(self.folds)

    @property
    def fold_column(self) -> str | None:
        """Column of the fold of each row, if one is given instead of a number."""
        is_number = self.folds is None or re.fullmatch(r"[+-]?\d+", self.folds) is not None
        return None if is_number else self.folds

    @property
    def of_a_model(self) -> tuple[str, ...]:
        """The given options that describe a model or its fit, which a search would choose."""
        names = {option.name for option in fields(self)} - OPTIONS_OF_SEARCH
        names |= {option.name for option in option_parameters()} - SEARCH_PARAMETERS
        if not {"budget", "blend"} & self.given_names:  # a search also takes a checkpoint
            names |= {"checkpoint", "checkpoint_every"}
        return tuple(f"--{name.replace('_', '-')}" for name in sorted(names & self.given_names))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_together()
        # Parsed only for its errors, before any data are read; `settings_of` parses again.
        for name, value in self.parameters.items():
            parsing.read(name, value)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed must be at least 0 and below 2**32, not {self.seed}")

    def _check_together(self) -> None:
        if self.parameters.get("cells") is not None and self.validation is not None:
            raise ValueError(
                "--cells and --validation cannot be combined: each cell has a solver of its own; "
                "leave one of them out, and measure the error with `gramian evaluate`"
            )
        if self.features is not None and self.drop is not None:
            raise ValueError("--features and --drop cannot be combined; give one of them")
        of_search = {
            "--budget limits": self.budget != "auto",
            "--scoring compares the fits of": self.scoring is not None,
            "--blend adds trees to": self.blend is not None,
            "--groups divides the rows of": self.groups is not None,
            "--order divides the rows of": self.order is not None,
            "--folds divides the rows of": self.folds is not None,
        }
        what = next((text for text, is_given in of_search.items() if is_given), None)
        if what is not None and self.of_a_model:
            raise ValueError(
                f"{what.split()[0]} and {self.of_a_model[0]} cannot be combined: {what} a search, "
                f"{self.of_a_model[0]} requests a single fit"
            )
        self._check_metric()

    def _check_metric(self) -> None:
        for name in ("metric_rounds", "metric_power", "metric_kernel"):
            if getattr(self, name) is not None and not self.learn_metric:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} requires --learn-metric; give both")
        if self.metric_rounds is not None and self.metric_rounds < 1:
            raise ValueError(f"--metric-rounds must be at least 1, not {self.metric_rounds}")
        if self.metric_power is not None and not 0 < self.metric_power <= 1:
            raise ValueError(
                f"--metric-power must be above 0 and at most 1, not {self.metric_power:g}"
            )


OPTIONS_OF_SEARCH = frozenset(option.name for option in fields(TuneOptions))
"""Options that do not describe the model."""


def parameters_of(options: type) -> tuple[Parameter, ...]:
    """Return the parameters of a fit that are options of the commands of a class."""
    return tuple(
        parameter
        for parameter in option_parameters()
        if options is FitOptions or (options is TuneOptions and parameter.name in SEARCH_PARAMETERS)
    )


def typer_parameters(options: type) -> Iterator[inspect.Parameter]:
    """Yield the options of a class as function parameters for typer."""
    arguments = inspect.signature(options, eval_str=True).parameters
    # Panels of the help are in the order of their first option: the seed is below the options of a
    # fit, and above these of reading.
    for name in sorted(arguments, key=lambda name: (name in READING_OPTIONS, name == "seed")):
        if name not in ("parameters", "given_names"):
            yield arguments[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for parameter in parameters_of(options):
        flag = parameter.kind is bool
        shown: str | bool = False if flag or parameter.default is None else str(parameter.default)
        option = Option(help=parameter.help, rich_help_panel=parameter.panel, show_default=shown)
        yield inspect.Parameter(
            parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if flag else None,
            annotation=Annotated[bool if flag else parameter.kind | None, option],
        )
