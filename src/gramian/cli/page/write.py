"""Sections of the report page: text, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ..._messages.display import without_secrets
from ...scoring.table import CONSTANT_OF_TASK
from ..outputs.report import lines_of
from . import pictures
from .html import Section, page, readable
from .measurements import Measurements
from .pictures import draw_picture


def name_of(path: Path) -> str:
    """Return the name of a file or of an address, without secrets."""
    return Path(without_secrets(path)).name


def write_page(study: Measurements) -> str:
    """Render the page as HTML."""
    name = study.truth.name
    title = f"{name}, predicted by {study.path.name}"
    foot = (
        f"Written by gramian {__version__} from {study.path.name} and {name_of(study.data)}. "
        "All pictures are embedded: the page loads nothing from a network."
    )
    return page(title, _lead(study), _sections(study), foot)


def _sections(study: Measurements) -> Iterator[Section]:
    yield _errors(study)
    yield _classes(study) if study.classes else _predictions(study)
    yield _intervals(study)
    yield _importances(study)
    yield _landmarks(study)
    yield _dimension(study)
    yield _certificate(study)
    yield _settings(study)


def _lead(study: Measurements) -> str:
    metric, constant = study.metric, CONSTANT_OF_TASK[study.answers.task]
    own, of_constant = study.errors[metric], study.errors[f"{metric}_of_{constant}"]
    return (
        f"On {len(study.truth.y):,} rows of {name_of(study.data)}, the {study.title} of "
        f"the model is {readable(own)}. For a constant prediction, the {constant} of the training "
        f"target, it is {readable(of_constant)}."
    )


def _errors(study: Measurements) -> Section:
    constant = CONSTANT_OF_TASK[study.answers.task]
    rows = [
        [name.replace("_", " "), readable(value), _beside(study.errors, name, constant)]
        for name, value in study.errors.items()
        if isinstance(value, float) and f"_of_{constant}" not in name
    ]
    text = [_how_compared(study)]
    if study.errors.get("remark"):
        text.append(str(study.errors["remark"]))
    draw = partial(pictures.errors, beside=_contenders(study), what=study.title)
    return Section(
        "Errors, compared with simple predictions",
        text,
        [(["", "the model", f"the {constant}"], rows)],
        [draw_picture(draw, 6.0, 2.2)],
    )


def _beside(errors: Mapping[str, Any], name: str, constant: str) -> str:
    value = errors.get(f"{name}_of_{constant}")
    return "" if value is None else readable(value)


def _contenders(study: Measurements) -> dict[str, float]:
    """Return the test errors of the model, a linear ridge and a constant."""
    constant = CONSTANT_OF_TASK[study.answers.task]
    return {
        "the model": study.own_on_sample,
        "linear ridge": study.linear,
        f"the {constant}": study.error_of_constant,
    }


def _how_compared(study: Measurements) -> str:
    learn, test = (len(sample.y) for sample in study.samples)
    if study.train is not None:
        return (
            "The table uses all rows. In the picture, linear ridge regression is fitted to "
            f"{learn:,} rows of {name_of(study.train)}, and all errors are on {test:,} rows of "
            f"{name_of(study.data)}."
        )
    return (
        f"The table uses all rows. In the picture, linear ridge regression is fitted to {learn:,} "
        f"rows of {name_of(study.data)}, because no training table was given (--train), and all "
        f"errors are on the other {test:,} rows."
    )


def _predictions(study: Measurements) -> Section:
    answers = study.answers
    return Section(
        "Predictions and residuals",
        ["Points on the line are exact. Where the medians differ from zero, the model is biased."],
        pictures=[
            draw_picture(partial(draw, answers=answers))
            for draw in (pictures.parity, pictures.residuals, pictures.histogram)
        ],
    )


def _classes(study: Measurements) -> Section:
    draws = (pictures.confusion, pictures.reliability)
    return Section(
        "Confusion of classes and calibration",
        [
            "Left: the predictions of each true class, as shares. Right: the share of correct "
            "predictions at each predicted probability; on the diagonal, probabilities are "
            "calibrated."
        ],
        pictures=[draw_picture(partial(draw, answers=study.answers), 4.2, 4.0) for draw in draws],
    )


def _intervals(study: Measurements) -> Section:
    title = "Sets of classes" if study.classes else "Intervals"
    if not study.coverage:
        what = "sets of classes" if study.classes else "intervals"
        reason = f"This model has no {what}: calibrate them with `gramian fit --conformal split`."
        return Section(title, [reason])
    ((name, values),) = study.coverage.items()
    level = name.rsplit("_", 1)[1]
    text = [f"A share of {level} of new rows should be inside, if they resemble the training rows."]
    rows = [[key.replace("_", " "), readable(value)] for key, value in values.items()]
    drawn_ends = [] if study.ends is None else [
        draw_picture(partial(pictures.intervals, y=study.truth.y, ends=study.ends), 6.0, 3.3)
    ]  # fmt: skip
    return Section(title, text, [((), rows)], drawn_ends)


def _importances(study: Measurements) -> Section:
    title = "Feature importances"
    if not study.importances:
        return Section(title, ["Importances require a kernel with gradients, and dense rows."])
    draw = partial(pictures.importances, shares=study.importances)
    return Section(
        title,
        ["Shares in the variation of predictions. They describe the model, not causes."],
        pictures=[draw_picture(draw, 6.0, 0.8 + 0.27 * len(study.importances))],
    )


def _landmarks(study: Measurements) -> Section:
    curve = study.curve
    baselines = {
        "linear ridge": study.linear,
        "this model": study.own_on_sample,
    }
    draw = partial(
        pictures.learning_curve,
        curve=curve,
        what=study.title,
        others=baselines,
    )
    return Section(
        "Errors by number of landmarks",
        [
            "Fits of the same kernel with m random landmarks, at a penalty of "
            f"{curve.penalty:.3g}, to the training rows of linear ridge. If the curve still falls "
            "at its end, more landmarks, or all rows as centers, would reduce the error."
        ],
        pictures=[draw_picture(draw, 6.0, 3.6)],
    )


def _dimension(study: Measurements) -> Section:
    count = len(study.spectrum.eigenvalues)
    text = [
        f"Of the kernel on {count:,} rows. The effective dimension is the number of parameters "
        "that the data determine at a given penalty; a model needs a small multiple of this number "
        "of landmarks. Near the number of rows, the model interpolates each row."
    ]
    if study.penalty is None:
        text.append("The model file does not record the penalty.")
    draws = (pictures.effective_dimension, pictures.spectrum_of)
    return Section(
        "Effective dimension",
        text,
        pictures=[
            draw_picture(partial(draw, spectrum=study.spectrum, penalty=study.penalty))
            for draw in draws
        ],
    )


def _certificate(study: Measurements) -> Section:
    certificate, reason = study.certificate, study.model.info.get("stop_reason")
    text = []
    if reason == "searched":
        text.append("The model was chosen by a search.")
    elif reason is not None:
        text.append(f"Stop reason of the fit: {str(reason).replace('_', ' ')}.")
    if certificate.residual is None or study.learned_from is None:
        text.append(f"Residual: {certificate.reason}.")
    else:
        text.append(
            "Relative residual of the equations of the fit, recomputed in float64 from the model "
            f"file and the {len(study.learned_from.y):,} training rows: "
            f"{certificate.residual:.2e}. The exact solution has the residual zero."
        )
    return Section("Residual of the fit", text)


def _settings(study: Measurements) -> Section:
    return Section("Settings", tables=[((), [list(line) for line in lines_of(study.about)])])
