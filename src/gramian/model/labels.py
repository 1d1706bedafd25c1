"""Labels of new tables in the type and spelling of the classes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BOOLEAN_VALUES = {"true": True, "false": False, "yes": True, "no": False, "y": True, "n": False,
                  "t": True, "f": False}  # fmt: skip
"""Values of texts that readers of tables may take for booleans, in letters of either case."""


def match_labels(y: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return labels in the type and spelling of classes, where another reader changed them.

    One reader makes a boolean of ``true`` or a number of ``01``, another one keeps the text.

    - `y`: of shape (n,).
    - `classes`: of shape (k,); texts, numbers or booleans.

    Return the same labels if all labels are classes, if a label has the value of no class, or if
    two classes have one value.
    """
    known_labels = np.asarray(classes)
    labels, index = np.unique(y, return_inverse=True)
    if labels.dtype.kind == known_labels.dtype.kind and set(labels.tolist()) <= set(
        known_labels.tolist()
    ):
        return y
    by_value = {_value_of(label): label for label in known_labels.tolist()}
    matched = [by_value.get(_value_of(label)) for label in labels.tolist()]
    if len(by_value) < len(known_labels) or any(label is None for label in matched):
        return y
    return np.asarray(matched, known_labels.dtype)[index.reshape(-1)]


def _value_of(label: Any) -> Any:
    """Return the boolean or the number that a text spells, else the label itself."""
    if not isinstance(label, str):
        return label
    text = label.strip()
    try:
        return BOOLEAN_VALUES[text.lower()] if text.lower() in BOOLEAN_VALUES else float(text)
    except ValueError:
        return text
