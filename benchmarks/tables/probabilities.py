"""Probabilities of classes on seven tables: log loss, Brier score, calibration error, AUC."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..lib.results import Row
from ..lib.tables import Tables, asked
from .accuracy_fit import Job, in_own_process
from .accuracy_sets import CAP, path_of

SETS = {
    "magic": 2, "higgs_11k": 2, "adult_a9a": 2, "usps": 10, "skin": 2, "kddcup": 23,
    "fashion_mnist": 10,
}  # fmt: skip
"""Sets, and how many classes they have."""

CAPS = {"svc": 5_000}
"""Training rows of contenders that cannot take more."""

CONTENDERS = (
    "gramian cv 10 s", "gramian default", "gramian logistic", "gramian softmax", "lightgbm_1000",
    "svc", "catboost",
)  # fmt: skip
TWO, SEVERAL = ("gramian logistic",), ("gramian softmax",)
"""Contenders for two classes, and for more."""

LOSS, BRIER, CALIBRATION = "log loss", "Brier score", "calibration error"
AUC, SECONDS, ERROR = "AUC", "CPU seconds", "error"
COLUMN = {
    LOSS: "log loss", BRIER: "brier", CALIBRATION: "calibration", AUC: "auc", SECONDS: "cpu_s",
    ERROR: "error",
}  # fmt: skip
FITS = "Each fit"
QUICK = {"set": "magic", "contender": "gramian default", "cap": 500}

NOTES = f"""\
Of the whole test part, after fits to at most {CAP:,} random training rows (seed 0), of svc to
{CAPS["svc"]:,}. Each fit is a process of its own with one thread; seconds are those of the fit,
searches included.

- gramian cv 10 s: `KernelRidgeClassifierCV(budget="10 s")`, in CPU seconds; default:
  `KernelRidgeClassifier()`; logistic and softmax: the same with that loss.
- lightgbm_1000: at most 1,000 trees, stopped 50 after the least loss on a fifth of the rows;
  catboost: default settings; svc: `SVC(probability=True)` on standardized columns.
- Brier: of the second of two classes (half the sum over both), else the sum over all.
- Calibration error: of the class that is predicted, in 15 bins of equal width.
- AUC: of several classes the mean of each against the others, of those in the test part.
- kddcup has classes of few rows: a class that a contender has not seen has probability 0, which
  counts as 1e-6 in the log loss."""


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Return the fits that are asked for, contender after contender, small sets first."""
    for contender in CONTENDERS:
        for name, classes in SETS.items():
            row = {"set": name, "contender": contender}
            unfit = contender in (SEVERAL if classes == 2 else TWO)
            if unfit or not asked(row, options.only):
                continue
            if options.quick and not row.items() <= QUICK.items():
                continue
            cap = QUICK["cap"] if options.quick else CAPS.get(contender, CAP)
            if (path := path_of(options.data, name)) is not None:
                yield Job(str(path), contender, options.seed, int(cap))


def measured(job: Job, limit: int) -> Row:
    """Return the row of a fit, with what its probabilities are worth."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept.npz"
        row = in_own_process(replace(job, kept=str(kept)), limit)
        if "failed" in row:
            return row
        with np.load(kept) as found:
            return row | scores(found["prediction"], found["truth"])


def scores(chances: np.ndarray, y: np.ndarray) -> Row:
    """Return Brier score, calibration error and AUC of probabilities of classes 0 to k - 1."""
    from gramian.scoring.predictions import Predictions
    from gramian.scoring.table import METRIC_TABLE

    classes = tuple(range(chances.shape[1]))
    decision = chances[:, 1:] if len(classes) == 2 else chances
    found = Predictions(y, chances.argmax(axis=1), decision, classes, chances)
    names = {"brier": "brier", "calibration": "calibration_error", "auc": "auc"}
    return {column: found.measure(METRIC_TABLE[name]) for column, name in names.items()}


def side_by_side(rows: list[Row], column: str) -> list[Row]:
    """Return one figure of all contenders, a set in each row."""
    found: list[Row] = []
    for name in SETS:
        some = {row["contender"]: row for row in rows if row["set"] == name}
        if some:
            shown = {who: _text(some[who], column) for who in CONTENDERS if who in some}
            found.append({"set": name} | shown)
    return found


def _text(row: Row, column: str) -> str:
    return "failed" if "failed" in row else f"{row[column]:.4g}"


def report(tables: Tables) -> None:
    """Set the tables that follow from the fits."""
    for title, column in COLUMN.items():
        tables.rows[title] = side_by_side(tables[FITS], column)
    tables.save()


def main(options: argparse.Namespace) -> None:
    tables = Tables("probabilities", (*COLUMN, FITS), NOTES, options)
    for job in jobs(options):
        if not tables.has(FITS, **job.key):
            tables.add(FITS, measured(job, options.limit))
            report(tables)
    report(tables)
