"""Recognition of ``cv`` that defines folds: splitters of scikit-learn, or pairs of row numbers."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TypeGuard

from ..._parameters.types import Indices, Splitter


def is_splitter(cv: object) -> TypeGuard[Splitter]:
    """Return whether a value has the methods of scikit-learn's splitters."""
    return callable(getattr(cv, "split", None)) and callable(getattr(cv, "get_n_splits", None))


def is_pairs(cv: object) -> TypeGuard[Sequence[tuple[Indices, Indices]]]:
    """Return whether a value is a sequence of pairs; `folds_of` checks their row numbers."""
    # Texts are sequences, whose characters are sequences again.
    if isinstance(cv, str | bytes) or not isinstance(cv, Sequence) or not cv:
        return False
    return all(not isinstance(pair, str) and length(pair) == 2 for pair in cv)


def length(value: object) -> int:
    """Return the length of a value; -1 for a value without a length."""
    try:
        return len(value) if isinstance(value, Sized) else -1
    # NumPy's arrays without axes have `__len__`, but raise.
    except TypeError:
        return -1
