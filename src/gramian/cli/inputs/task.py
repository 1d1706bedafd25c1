"""Choice between regression and classification, and its explanation."""

from __future__ import annotations

import numpy as np

from ...data import RowNumbers, Table, TrainingTable, as_columns
from ...data.formats.csv.columns.marks import are_marked_numbers
from ...data.tables.target import describe_odd_text
from ...scoring.truth import kind_of
from ..options.options import FitOptions, Task

FEW_LABELS = 20
"""Most distinct whole numbers that may be codes of classes."""

AT_ONCE = 1 << 16
"""Targets in a batch."""


def is_classification(source: TrainingTable, options: FitOptions) -> bool:
    """Return whether to classify: as the option requires, or for text and booleans."""
    y = source.y
    texts = as_columns(y).texts
    if options.task is Task.REGRESSION and texts is not None:
        raise ValueError(
            f"the target {options.target!r} is text, such as {str(texts[0])!r}, but a regression "
            "predicts numbers; leave --task out, or give another --target"
        )
    if options.task is Task.AUTO:
        if texts is not None:
            _check_labels(source.table, texts, str(options.target))
        return kind_of(y) in "Ub"
    return options.task is Task.CLASSIFICATION


def _check_labels(table: Table, texts: np.ndarray, target: str) -> None:
    """Raise an error for unlikely labels: texts that mostly differ, or numbers with a mark."""
    what, labels, rows = None, np.unique(texts), len(table)
    if len(labels) > 2 and 2 * len(labels) > rows:
        what = f"{len(labels):,} different texts in {rows:,} rows"
    elif are_marked_numbers(labels.tolist()):
        what = "numbers that are not written alike"
    if what is not None:
        shown = describe_odd_text(table, texts)
        raise ValueError(
            f"{table.where}: the target {target!r} has {what}, such as {shown}: neither numbers "
            "nor classes; correct the texts that are no numbers, choose another --target, or give "
            "--task classification"
        )


def reason(y: RowNumbers, options: FitOptions) -> str | None:
    """Explain the chosen task in one line if it may surprise; None otherwise.

    With ``--task``, or with numbers of many distinct values, the choice needs no explanation.
    """
    if options.task is not Task.AUTO:
        return None
    if kind_of(y) in "Ub":
        kind = "text" if kind_of(y) == "U" else "true or false"
        return f"the target {options.target!r} is {kind}: this is a classification"
    labels = possible_labels(y)
    if labels is None:
        return None
    shown = ", ".join(f"{label:g}" for label in labels[:5].tolist())
    more = ", ..." if len(labels) > 5 else ""
    return (
        f"the target {options.target!r} is numeric, so this is a regression; it has only "
        f"{len(labels)} distinct values ({shown}{more}): if they are classes, give "
        "--task classification"
    )


def possible_labels(y: RowNumbers) -> np.ndarray | None:
    """Return the distinct values of numbers that may be codes of classes; None otherwise.

    Codes are two numbers of any kind, or at most 20 whole numbers, with two rows each on average.
    Reading stops once there are too many values, usually within a few thousand rows.
    """
    values = as_columns(y).distinct(FEW_LABELS, AT_ONCE)
    if values is None:
        return None
    are_whole = bool((values == np.floor(values)).all())
    are_few = 2 <= len(values) <= (FEW_LABELS if are_whole else 2)
    return values if are_few and 2 * len(values) <= len(y) else None
