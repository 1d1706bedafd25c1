"""Checks of the contents of a file before they are used."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array

Text = TypeVar("Text", bound=str)
LARGEST_FLOAT = sys.float_info.max


class Saved:
    """Fields and tensors of one encoding, each of which is read once.

    Each method raises ValueError if a field is missing or not valid.
    """

    def __init__(self, fields: Any, tensors: Mapping[str, Array]) -> None:
        if not isinstance(fields, dict):
            raise ValueError(f"an encoding must be an object, not {fields!r:.40}")
        # Copies, from which each part is removed when it is asked for: the rest is unknown.
        self._fields, self._tensors = dict(fields), dict(tensors)

    def _pop(self, key: str, kind: type | None = None, words: str = "") -> Any:
        """Return a field; raise ValueError unless it is of a type, which is described in words."""
        if key not in self._fields:
            raise ValueError(f"an encoding must have {key}, which is missing")
        value = self._fields.pop(key)
        if kind is not None and not isinstance(value, kind):
            raise ValueError(f"{key} of an encoding must be {words}, not {value!r:.40}")
        return value

    def has(self, key: str) -> bool:
        """Return whether there is a field, which files of earlier versions may lack."""
        return key in self._fields

    def text(self, key: str) -> str:
        """Return a text."""
        return str(self._pop(key, str, "a text"))

    def one_of(self, key: str, known: Sequence[Text]) -> Text:
        """Return a text; raise ValueError unless it is one of the known texts."""
        value = self.text(key)
        for text in known:
            if text == value:
                return text
        raise ValueError(f"{key} of an encoding must be one of {', '.join(known)}, not {value:.40}")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; raise ValueError unless all differ."""
        value = self._pop(key)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"{key} of an encoding must be a list of texts, not {value!r:.40}")
        if len(set(value)) < len(value):
            raise ValueError(f"{key} of an encoding must be distinct texts, got a text twice")
        return tuple(value)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        return bool(self._pop(key, bool, "true or false"))

    def count(self, key: str) -> int:
        """Return a whole number that is not negative."""
        value = self._pop(key)
        # In Python true is the integer 1.
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{key} of an encoding must be a whole number, not {value!r:.40}")
        return value

    def number(self, key: str, *, positive: bool = False) -> float:
        """Return a finite number."""
        return _finite(key, self._pop(key), positive)

    def numbers(self, key: str, *, positive: bool = False) -> tuple[float, ...]:
        """Return finite numbers."""
        value = self._pop(key, list, "a list of numbers")
        return tuple(_finite(key, number, positive) for number in value)

    def tensor(self, key: str, dtype: xp.DType, shape: tuple[int | None, ...]) -> Array:
        """Return a tensor of finite numbers; None in its shape stands for any length."""
        if key not in self._tensors:
            raise ValueError(f"an encoding must have the tensor {key}, which is missing")
        value = self._tensors.pop(key)
        same = len(value.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, value.shape, strict=True)
        )
        if value.dtype != dtype or not same:
            raise ValueError(
                f"the tensor {key} of an encoding must be {dtype} of shape {shape}, not "
                f"{value.dtype} of {tuple(value.shape)}"
            )
        if not bool(np.isfinite(value).all()):
            raise ValueError(f"the tensor {key} of an encoding holds numbers that are not finite")
        return value

    def finish(self) -> None:
        """Raise ValueError if there are fields or tensors that were not read."""
        more = [*self._fields, *self._tensors]
        if more:
            raise ValueError(f"an encoding has the unknown parts {', '.join(map(str, more))}")


def _finite(key: str, value: Any, positive: bool) -> float:
    # A whole number of JSON may be too large for a float, and NaN fails the comparison as well.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) <= LARGEST_FLOAT or (positive and value <= 0):
        word = "positive numbers" if positive else "finite numbers"
        raise ValueError(f"{key} of an encoding must be {word}, not {value!r:.40}")
    return float(value)
