"""`gramian report`: measure a model on a table, and write the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files.atomic import write_atomically
from ..._messages.checks import as_bytes
from ...model import load_model
from ...plots._drawing import check_matplotlib
from ...scoring.predictions import Predictions
from ...scoring.quantiles import LEVELS_KEY
from ..inputs.training_digest import training_remark
from ..inputs.truth import Truth, truth_of
from ..outputs.files import check_outputs
from ..outputs.intervals import REPORTED_LEVEL, conformal_of
from ..outputs.messages import remark as show_remark
from ..outputs.report import Report
from .measurements import Measurements
from .write import write_page


def report(
    model: Path,
    data: Path,
    target: str | None,
    out: Path,
    train: Path | None,
    memory_limit: str,
    engine: str,
) -> Report:
    """Write the page, and return its numbers."""
    measurements = _measure(model, data, target, out, train, memory_limit, engine)
    text = write_page(measurements)
    write_atomically(out, lambda part: _write(part, text))
    return {"report": out, **numbers(measurements)}


def _write(part: Path, text: str) -> None:
    part.write_text(text, encoding="utf-8")


def numbers(study: Measurements) -> dict[str, Any]:
    """Return the numbers of the page."""
    penalty = study.penalty
    dimension = None if penalty is None else study.spectrum.effective_dimension(penalty)
    return {
        "rows": len(study.truth.y),
        "target": study.truth.name,
        **{name: value for name, value in study.errors.items() if isinstance(value, float)},
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


def _measure(
    model: Path,
    data: Path,
    target: str | None,
    out: Path,
    train: Path | None,
    memory_limit: str,
    engine: str,
) -> Measurements:
    """Check all arguments, and predict."""
    check_outputs({"out": out}, [model, data, *([] if train is None else [train])])
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out} must end in .html")
    try:
        check_matplotlib("gramian report")
    except ImportError as error:
        raise ValueError(str(error)) from error
    # Output, matplotlib and model are checked before the table is read.
    loaded = load_model(model)
    memory = as_bytes(memory_limit)
    settings: dict[str, Any] = {"engine": engine, "memory_bytes": memory}
    if loaded.info.get(LEVELS_KEY) or (loaded.classes is None and loaded.outputs > 1):
        raise ValueError(
            f"a report requires a model of one output, but {model} predicts {loaded.outputs} per "
            "row; `gramian evaluate` reports the errors of quantiles"
        )
    truth = truth_of(loaded, model, data, target)
    _check_rows(truth, data)
    show_remark(training_remark(loaded, truth.table, truth.y))
    training_truth = None if train is None else truth_of(loaded, model, train, truth.name)
    values = loaded.predict(truth.rows, **settings).numpy()
    chances = None if loaded.classes is None else loaded.class_map
    answers = Predictions.of(truth.y, values, loaded.classes, chances)
    ends = None
    if loaded.conformal is not None and loaded.classes is None:
        ends = (
            conformal_of(loaded)
            .intervals(loaded, truth.rows, REPORTED_LEVEL, **settings)
            .numpy()[:, 0]
        )
    return Measurements(model, data, train, loaded, truth, training_truth, answers, ends, settings)


LEAST_ROWS = 20


def _check_rows(truth: Truth, data: Path) -> None:
    """Raise ValueError for a table that is too short, or with a constant target."""
    if len(truth.y) < LEAST_ROWS:
        raise ValueError(
            f"{data} must have at least {LEAST_ROWS} rows for a report, not {len(truth.y)}"
        )
    if truth.y.dtype.kind != "U" and truth.y.min() == truth.y.max():
        raise ValueError(
            f"all rows of {data} have the same value of {truth.name}, which leaves no errors to "
            "compare; give another table"
        )
