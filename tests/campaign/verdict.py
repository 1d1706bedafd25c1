"""What a fit may be off by, and how it ended.

A fit may be off by what follows from its precision, from the problem's conditioning and from what
the solver reported, and by no more:

    10 · (change of the answer when kernel entries change by rounding) + 30 · gain · residual
    + a floor of 1e-7 (float64) or 1e-3 (float32)

in units of the root mean square of the targets, where gain is what a residual of one can do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import dense
import numpy as np
from configuration import Configuration

RIGHT, WARNED, REFUSED, LOOSE, WRONG = "right", "warned", "refused", "loose", "WRONG"

NOISE = {"float32": 1e-6, "float64": 1e-15}
"""Errors of kernel entries: engines allow 6e-6 for distances in float32, at worst."""

FLOOR = {"float32": 1e-3, "float64": 1e-7}

LARGE = 0.01
"""A tolerance beyond says little: what is off by more than this is called loose, not right."""

RESIDUAL = 30.0
"""Over the reported residual, for preconditioned coordinates and residuals that lag behind."""


@dataclass(frozen=True)
class Verdict:
    """How a configuration ended: the error, what was allowed, and in words why."""

    status: str
    error: float = 0.0
    allowed: float = 0.0
    note: str = ""


def precision(c: Configuration) -> str:
    """Return the dtype in which the library computes kernel entries."""
    return "float64" if c.container in ("list", "whole") else c.dtype


def compared(
    c: Configuration,
    y: np.ndarray,
    values: np.ndarray,
    answer: dense.Answer,
    reported: float,
    reason: str,
    said: list[str],
    claimed: float = 0.0,
) -> Verdict:
    """Compare values with the dense answer; the solver has claimed an error of `claimed`."""
    name = precision(c)
    allowed = 10 * answer.blurred + FLOOR[name] + RESIDUAL * answer.gain * reported
    error = dense.relative(values - answer.values, y)
    note = (
        f"{reason}, residual {reported:.1e} x gain {answer.gain:.1e}, rounding {answer.blurred:.1e}"
        f"; {' | '.join(said)}"
    )
    if not np.isfinite(values).all():
        return Verdict(WRONG, np.inf, allowed, note)
    if error <= min(allowed, LARGE):
        return Verdict(RIGHT, error, allowed, note)
    # zero coefficients have a residual of 1: above, only a warning that states the error is honest
    honest = error <= allowed and (reported <= 2 or (bool(said) and claimed >= error / 10))
    return Verdict((WARNED if said else LOOSE) if honest else WRONG, error, allowed, note)


def early(
    c: Configuration,
    y: np.ndarray,
    fitted: np.ndarray,
    answer: dense.Answer,
    said: list[str],
) -> Verdict:
    """Judge what is stopped early by what is left of the targets of training.

    It should be no more than half of them, or three times what the dense answer leaves; at 1
    nothing was learned.
    """
    left = dense.relative(fitted - y, y)
    possible = dense.relative(answer.fitted - y, y)
    least = 0.5 if c.penalty > 1e-3 else 0.1
    allowed = max(min(3 * possible, 0.9), 1.5 * possible, least)
    note = f"left of the targets: {left:.2g}, dense {possible:.2g}; {' | '.join(said)}"
    if not np.isfinite(fitted).all() or left > 2:
        return Verdict(WRONG, left, allowed, note)
    if left <= allowed:
        return Verdict(RIGHT, left, allowed, note)
    return Verdict(WARNED if said else WRONG, left, allowed, note)


def within(error: float, allowed: float) -> Callable[[list[str]], Verdict]:
    status = RIGHT if error <= allowed else WRONG
    return lambda said: Verdict(status, float(error), float(allowed), " | ".join(said))
