"""Writing of a report: measure a model, fill the template, and write the page."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._files.atomic import check_output, write_atomically
from .._messages.checks import as_bytes
from .._messages.display import without_secrets
from .._messages.errors import ParameterError, TextError
from ..explain.columns import resolve_model
from ..model import Model
from ..plots._drawing import check_installed
from ..scoring.coverage import LEVELS_KEY, REPORTED_LEVEL
from ..scoring.predictions import Predictions
from ..scoring.truth import Truth, truth_of
from . import pictures
from .drawing import as_image, readable
from .measurements import Measurements

LEAST_ROWS = 20
"""Least rows of a report."""


def write_report(
    model: Any,
    data: Any,
    out: str | Path,
    *,
    target: str | None = None,
    train: Any = None,
    groups: str | None = None,
    read: Mapping[str, Any] | None = None,
    drop_missing_target: bool = False,
    memory_limit: int | str = "1GB",
    engine: str = "auto",
) -> dict[str, Any]:
    """Write the performance of a model on a table as one HTML page.

    Parameters
    ----------
    model : estimator, Model, or path
        Fitted `KernelRidge`, `KernelRidgeClassifier` or one of their searches, its ``model_``, or
        the file of a model of one output.
    data : path or table
        Table with the columns of the training and the target, of at least 20 rows, which the fit
        should not have used.
    out : str or Path
        File of the page, ``.html``.
    target : str, optional
        Column with the true values; by default the target of the training.
    train : path or table, optional
        Training table, for fits of linear ridge and of other numbers of landmarks, and for the
        residual of the model. Without it, these fits use rows of `data`.
    groups : str, optional
        Column by whose values errors are divided; by default up to three categorical columns of
        the model.
    read : mapping, optional
        Options for reading text files that differ from the training, as in `KernelRidge.fit`.
    drop_missing_target : bool, default=False
        Whether to leave out rows without a target, with a warning, instead of refusing them.
    memory_limit : int or str, default="1GB"
        Bytes for blocks of predictions.
    engine : str, default="auto"
        See `gramian.operators.choose_engine`.

    Returns
    -------
    dict
        The numbers that the page shows.

    Raises
    ------
    ValueError
        If the file or the table cannot be used, or the model has several outputs.
    ImportError
        If matplotlib or jinja2 is not installed.

    Notes
    -----
    Cost: predictions for all rows, fits of up to 10,000 rows, and the eigenvalues of a kernel
    matrix of 2,000 rows: about half a minute.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.report import write_report
    >>> x = np.linspace(0, 6, 200)
    >>> table = pd.DataFrame({"x": x, "y": np.sin(x)})
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6).fit(table[::2], "y")
    >>> numbers = write_report(est, table[1::2], "page.html")  # doctest: +SKIP
    """
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("out", str(out), "a file that ends in .html")
    check_output(path)
    check_installed("a report", "matplotlib.figure", "jinja2")
    # Output, packages and model are checked before the table is read.
    loaded = resolve_model(model)
    _check_model(loaded, name_of(model))
    read_truth = partial(
        truth_of, loaded, name_of(model), read=read,
        complete_targets=() if drop_missing_target else None,
    )  # fmt: skip
    truth = read_truth(data, target)
    _check_rows(truth, name_of(data, "the table"))
    trained = None if train is None else read_truth(train, truth.name)
    settings: dict[str, Any] = {"engine": engine, "memory_bytes": as_bytes(memory_limit)}
    names = {"model": name_of(model), "data": name_of(data, "the table"),
             "train": name_of(train, "the training table")}  # fmt: skip
    study = Measurements(
        names, loaded, truth, trained, groups, *_predict(loaded, truth, settings), settings
    )
    # Rows of the training are found before the fits of the report.
    if study.training_warning is not None:
        logging.getLogger("gramian").info(study.training_warning)
    text = fill_template(study)
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))
    return {"report": path, **numbers_of(study)}


def name_of(source: object, other: str | None = None) -> str:
    """Return the name of a file or of an address, without secrets; of an object, its class."""
    if isinstance(source, str | Path):
        return Path(without_secrets(source)).name
    return other or type(source).__name__


def numbers_of(study: Measurements) -> dict[str, Any]:
    """Return the numbers that the page shows."""
    penalty = study.penalty
    dimension = None if penalty is None else study.spectrum.effective_dimension(penalty)
    return {
        "rows": len(study.truth.y),
        "target": study.truth.name,
        "remark": study.training_warning,
        **{name: value for name, value in study.errors.items() if isinstance(value, float)},
        "groups": {
            group.column: dict(zip(group.names, group.values, strict=True))
            for group in study.group_errors
        },
        "compared_on_rows": len(study.samples[1].y),
        f"{study.metric}_there": study.own_on_sample,
        f"{study.metric}_of_constant_there": study.error_of_constant,
        f"{study.metric}_of_linear_ridge": study.linear,
        "learning_curve": [
            {"landmarks": m, study.metric: error}
            for m, error in zip(study.curve.landmarks, study.curve.errors, strict=True)
        ],
        **study.coverage,
        "importances": study.importances,
        "effective_dimension": dimension,
        "rel_residual": study.certificate.residual,
    }


def _check_model(model: Model, name: str) -> None:
    if model.info.get(LEVELS_KEY) or (model.classes is None and model.outputs > 1):
        raise ValueError(
            f"a report requires a model of one output, but {name} predicts {model.outputs} per "
            "row; `gramian evaluate` reports the errors of quantiles"
        )


def _check_rows(truth: Truth, name: str) -> None:
    """Raise ValueError for a table that is too short, or with a constant target."""
    if len(truth.y) < LEAST_ROWS:
        raise ValueError(
            f"{name} must have at least {LEAST_ROWS} rows for a report, not {len(truth.y)}"
        )
    if truth.y.dtype.kind != "U" and truth.y.min() == truth.y.max():
        raise TextError(
            "all rows of {} have the same value of {}, which leaves no errors to compare; give "
            "another table",
            name,
            truth.name,
        )


def _predict(
    model: Model, truth: Truth, settings: Mapping[str, Any]
) -> tuple[Predictions, np.ndarray | None]:
    """Return the predictions of all rows, and the ends of their intervals if there are any."""
    values = model.predict(truth.rows, **settings)
    chances = None if model.classes is None else model.class_map
    predictions = Predictions.of(truth.y, values, model.classes, chances)
    if model.conformal is None or model.classes is not None:
        return predictions, None
    ends = model.conformal.intervals(model, truth.rows, REPORTED_LEVEL, **settings)
    return predictions, ends[:, 0]


def fill_template(study: Measurements) -> str:
    """Return the HTML of the page; all texts are escaped."""
    # Optional, and imported only to write: other commands work without it.
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def code(text: object) -> Markup:
        """Return the HTML of a text, with parts between backticks as code."""
        # Escaped first: only the tags of code are HTML, never the text of a user.
        return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))

    def draw(picture: Callable[..., object], alt: str, *more: Any, height: float = 3.2) -> Markup:
        source = as_image(lambda ax: picture(ax, study, *more), height)
        return Markup('<figure><img alt="{}" src="{}"></figure>').format(alt, source)

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": readable, "code": code}
    template = environment.from_string(Path(__file__).with_name("page.html").read_text("utf-8"))
    return template.render(study=study, draw=draw, pictures=pictures, version=__version__)
