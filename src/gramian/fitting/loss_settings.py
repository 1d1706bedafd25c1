"""check_loss: whether a loss is one, and goes with the other settings of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import losses
from .._checks import did_you_mean
from .._parameter_types import LossLike
from ..callbacks import Validate
from ..solvers import Newton

if TYPE_CHECKING:
    from .settings import FitSettings

SQUARED = "squared"
"""The loss of kernel ridge regression, for which fits are linear systems."""


def is_squared(given: LossLike) -> bool:
    """Return whether a loss is the square."""
    return isinstance(given, str) and given == SQUARED


def check_loss(settings: FitSettings) -> None:
    """Raise ValueError for a loss that is unknown, or settings that do not go with it."""
    given = settings.loss
    is_newton = isinstance(settings.solver, Newton) or settings.solver == "newton"
    if is_squared(given):
        if is_newton:
            raise ValueError(
                f"solver={settings.solver!r} is for other losses than the square: choose one of "
                "these, or solver='auto'"
            )
        return
    _check_known(given)
    what = f"loss={given!r}"
    if not (is_newton or settings.solver == "auto"):
        raise ValueError(f"{what} is minimised by solver='newton', not {settings.solver!r}")
    if settings.searches_penalty:
        raise ValueError(f"{what} has no path of landmarks; give a penalty, or their number")
    for name, unused in (("early_stopping", False), ("warm_start", False), ("cells", None)):
        if getattr(settings, name) != unused:
            raise ValueError(
                f"{name}={getattr(settings, name)!r} does not go with {what}; leave one of them out"
            )
    if any(isinstance(callback, Validate) for callback in settings.callbacks):
        raise ValueError(f"Validate measures squared errors, and not {what}; leave it out")


def _check_known(given: LossLike) -> None:
    names = [SQUARED, *losses.names()]
    if isinstance(given, str) and given not in names:
        hint = did_you_mean(given, names)
        raise ValueError(
            f"unknown loss {given!r}; known: {', '.join(names)}, or an object of "
            f"gramian.losses{hint}"
        )
    if not isinstance(given, str | losses.Loss):
        raise ValueError(
            f"loss={given!r} is neither a name ({', '.join(names)}) nor an object of gramian.losses"
        )
