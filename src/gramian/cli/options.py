"""Options of a fit: each field of `FitOptions` is an option of `gramian fit` and `plan`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

from typer import Option

from . import parsing

DATA, MODEL, WORK = "What to learn from", "The model", "The computation"


class Task(StrEnum):
    """The kind of the target: a number, a class, or whichever it looks like."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


def _option(panel: str, help: str, *names: str) -> Any:
    return Option(*names, help=help, rich_help_panel=panel)


@dataclass(frozen=True)
class FitOptions:
    """Options of `gramian fit` and `gramian plan`."""

    target: Annotated[str, _option(DATA, "Column to predict; in a .npy file, its number.")]
    features: Annotated[
        str | None, _option(DATA, "Columns to learn from, as a,b,c. All others by default.")
    ] = None
    drop: Annotated[
        str | None, _option(DATA, "Columns to leave out, as a,b,c.", "--drop", "--ignore")
    ] = None
    task: Annotated[
        Task, _option(DATA, "auto: classification if the target is text or boolean.")
    ] = Task.AUTO
    validation: Annotated[
        str | None,
        _option(DATA, "Rows held out to measure the error: a fraction of DATA, or another file."),
    ] = None
    metric: Annotated[
        str | None,
        _option(
            DATA,
            "What is measured on them, as mae, r2, balanced_accuracy or auc.",
        ),
    ] = None
    kernel: Annotated[str, _option(MODEL, "Name of a kernel; `gramian info` lists them.")] = (
        "gaussian"
    )
    lengthscale: Annotated[
        str,
        _option(
            MODEL,
            "A number in units of the (standardised) features, one each, median, or 2 median.",
        ),
    ] = "median"
    penalty: Annotated[
        str,
        _option(
            MODEL,
            "Ridge per row, scikit-learn's alpha / n; auto: chosen on a path of penalties.",
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
    solver: Annotated[str, _option(WORK, "auto, or a name; `gramian info` lists them.")] = "auto"
    max_iter: Annotated[int, _option(WORK, "Iterations after which to stop.")] = 100
    tol: Annotated[float, _option(WORK, "Relative residual at which to stop.")] = 1e-6
    early_stopping: Annotated[
        bool,
        _option(
            WORK,
            "Stop when the error on held-out rows no longer falls, and keep the best iteration. "
            "The rows of --validation, else a random tenth.",
        ),
    ] = False
    patience: Annotated[
        int, _option(WORK, "Looks at these rows without a new minimum before that.")
    ] = 5
    time_limit: Annotated[
        str | None, _option(WORK, "Time after which to stop: seconds, or 10min, 1.5h.")
    ] = None
    memory_limit: Annotated[
        str | None, _option(WORK, "Memory for the fit beside data and libraries, as 500MB.")
    ] = None
    engine: Annotated[
        str, _option(WORK, "auto, native, torch, triton, torch:cuda:1, triton:cuda:0,1.")
    ] = "auto"
    seed: Annotated[int, _option(WORK, "For random landmarks and held-out rows.")] = 0

    def __post_init__(self) -> None:
        self._check_together()
        parsing.penalty(self.penalty)
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

    def _check_together(self) -> None:
        if self.features is not None and self.drop is not None:
            raise ValueError("--features and --drop are two ways to say the same: give one")
        if self.quantiles and not self.standardize:
            raise ValueError("--quantiles goes on from --standardize: leave --no-standardize out")


def options_from(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes the fields of a dataclass options of a command.

    The command gets one instance as the argument ``options``; its other parameters stay its own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            values = {f.name: given.pop(f.name) for f in fields(options)}
            command(options=options(**values), **given)

        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = [
            p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name])
            for p in own
            if p.name != "options"
        ]
        parameters += inspect.signature(options, eval_str=True).parameters.values()
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(kind=p.KEYWORD_ONLY) for p in parameters]
        )
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate
