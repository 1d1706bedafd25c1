"""Options that may be several things: read from their text, or refused in words."""

from __future__ import annotations

import math
from pathlib import Path


def names(text: str) -> tuple[str, ...]:
    """Return the names in a text with commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def lengthscale(text: str) -> str | float | tuple[float, ...]:
    """Read ``--lengthscale``: "median", a number, or numbers with commas."""
    if text == "median":
        return text
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--lengthscale is a number, one number per feature with commas, or median, not {text}"
        ) from None
    if not all(0 < value < math.inf for value in values):
        raise ValueError(f"--lengthscale must be positive and finite, not {text}")
    return values[0] if len(values) == 1 else values


def landmarks(text: str) -> str | int | None:
    """Read ``--landmarks``: "auto", "none", or a number."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--landmarks is a whole number above 0, auto, or none, not {text}")
    return int(text)


def validation(text: str) -> float | Path:
    """Read ``--validation``: a fraction between 0 and 1, or else the path of a file."""
    try:
        fraction = float(text)
    except ValueError:
        return Path(text)
    if not 0 < fraction < 1:
        raise ValueError(f"--validation is a fraction between 0 and 1, or a file, not {text}")
    return fraction
