"""Parse the options that accept several kinds of value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..._messages.checks import did_you_mean
from ..._parameters.fit_parameters import TUNING_CRITERIA

if TYPE_CHECKING:
    from ...landmarks import Selector
    from ...losses import Loss

LEAST_BUDGET = 1e4
"""Least number of kernel evaluations; a smaller budget is a time that lacks its unit."""

SECONDS_OF_UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


OF_LOSS = {"huber": "delta", "quantile": "levels", "expectile": "level"}
"""The parameter of each loss that ``--loss NAME:NUMBERS`` sets."""


def names(text: str) -> tuple[str, ...]:
    """Split a text at its commas into names; raise ValueError for a repeated name."""
    parsed_names = tuple(name for part in text.split(",") if (name := part.strip()))
    twice = next((name for name in parsed_names if parsed_names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the column {twice} is named twice in {text}")
    return parsed_names


def lengthscale(text: str) -> str | float | tuple[float, ...]:
    """Read ``--lengthscale``: a name, "median" or a multiple, a number, or numbers with commas."""
    if text in ("auto", *TUNING_CRITERIA):
        return text
    if text.endswith("median"):
        return _medians(text)
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            "--lengthscale must be a number, one number per feature separated by commas, auto, "
            "likelihood, leave_one_out, median, or a multiple such as "
            f"'2 median', not {text}"
        ) from None
    if not all(0 < value < math.inf for value in values):
        raise ValueError(f"--lengthscale must be positive and finite, not {text}")
    return values[0] if len(values) == 1 else values


def _medians(text: str) -> str:
    # Imported only for this value: --help starts without NumPy.
    from ...kernels import medians

    factor = medians(text)
    if factor is None or not 0 < factor < math.inf:
        raise ValueError(f"--lengthscale must be a multiple such as '2 median', not {text!r}")
    return text


def penalty(text: str) -> float | Literal["auto"]:
    """Read ``--penalty``: "auto" or a number."""
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"--penalty must be a number or auto, not {text}") from None
    if not 0 <= value < math.inf:
        raise ValueError(f"--penalty must be finite and at least 0, not {text}")
    return value


def seconds(text: str, option: str = "--time-limit") -> float:
    """Read ``--time-limit`` and others: seconds, or a number with s, min, h or d."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|min|h|d)?\s*", text)
    value = 0.0 if match is None else float(match[1]) * SECONDS_OF_UNIT[match[2] or "s"]
    if not value > 0:
        raise ValueError(f"{option} must be a positive time in seconds or as 10min, not {text}")
    return value


def budget(text: str) -> str | float:
    """Read ``--budget``: a number of kernel evaluations, else the text of a time or "auto"."""
    try:
        count = float(text)
    except ValueError:
        return text
    if not LEAST_BUDGET <= count < math.inf:
        raise ValueError(
            f"--budget without a unit must be at least {LEAST_BUDGET:,.0f} kernel evaluations, not "
            f"{text}; for a time, give a unit, such as '{text} s'"
        )
    return count


def landmarks(text: str) -> str | int | Selector | None:
    """Read ``--landmarks``: "auto", "none", a number, a selector, or selector:number."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    if text[:1].isalpha():
        return _selector(text)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            "--landmarks must be a whole number above 0, auto, none, or a selector such as bless_r "
            f"or bless_r:1000, not {text}"
        )
    return int(text)


def loss(text: str) -> str | Loss:
    """Read ``--loss``: a name, or name:numbers."""
    if text == "squared":
        return text
    from ... import losses  # --help starts without NumPy

    name, colon, numbers = text.partition(":")
    names = ("squared", *losses.names())
    if name not in names:
        raise ValueError(
            f"unknown --loss {text!r}; known: {', '.join(names)}{did_you_mean(name, names)}"
        )
    if not colon:
        return name
    if name not in OF_LOSS:
        raise ValueError(f"--loss {name} takes no numbers, but {numbers!r} was given")
    try:
        values = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        raise ValueError(
            f"--loss {name}:NUMBERS must have numbers separated by commas, not {numbers!r}"
        ) from None
    return losses.make(name, **{OF_LOSS[name]: values if len(values) > 1 else values[0]})


def _selector(text: str) -> str | Selector:
    from ...landmarks.base import selectors  # --help starts without NumPy

    name, colon, size = text.partition(":")
    if name not in selectors:
        names = sorted(selectors.names())
        raise ValueError(
            f"unknown --landmarks {text!r}; known: a number, auto, none, "
            f"{', '.join(names)}{did_you_mean(name, names)}"
        )
    if not colon:
        return name
    if not size.isdecimal() or int(size) < 1:
        raise ValueError(
            f"--landmarks {name}:NUMBER must have a whole number above 0, not {size!r}"
        )
    return selectors.make(name, m=int(size))


def standardize(text: str) -> bool | str:
    """Read ``--standardize``: true, false, quantile or auto."""
    return text if text in ("quantile", "auto") else flag(text, "--standardize", ", quantile, auto")


def flag(text: str, option: str = "--standardize-target", more: str = "") -> bool:
    """Read true or false."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{option} must be one of true, false{more}, not {text!r}")
    return text.lower() == "true"


def tolerance(text: str) -> float | Literal["auto"]:
    """Read ``--tol``: "auto" or a number."""
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--tol must be a number of at least 0, or auto, not {text!r}") from None


def folds(count: int) -> int:
    """Read ``--cv``: the number of folds."""
    if count < 2:
        raise ValueError(f"--cv must be a number of folds of at least 2, not {count}")
    return count


OPTION_READERS: dict[str, Callable[[Any], Any]] = {
    "lengthscale": lengthscale,
    "penalty": penalty,
    "landmarks": landmarks,
    "standardize": standardize,
    "standardize_target": flag,
    "loss": loss,
    "tol": tolerance,
    "cv": folds,
    "time_limit": seconds,
}
"""Functions that parse an option, by its parameter; other options need no parsing."""


def read(name: str, value: object) -> Any:
    """Convert the value of an option to the value of its parameter."""
    return OPTION_READERS[name](value) if name in OPTION_READERS else value


def validation(text: str) -> float | Path:
    """Read ``--validation``: a fraction between 0 and 1, or the path of a file."""
    try:
        fraction = float(text)
    except ValueError:
        return Path(text)
    if not 0 < fraction < 1:
        raise ValueError(f"--validation must be a fraction between 0 and 1, or a file, not {text}")
    return fraction
