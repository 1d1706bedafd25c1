"""Check that a loss is known, and compatible with the other settings."""

from __future__ import annotations

from ... import losses
from ..._messages.checks import did_you_mean
from ..._messages.errors import SETTING_FORM, UNKNOWN_FORM, ParameterError, Text, TextError
from ..._parameters.fit_parameters import FitParameters
from ..._parameters.types import LossLike
from ...callbacks import Validate
from ...solvers import Newton

SQUARED_LOSS = "squared"
"""The loss of kernel ridge regression, for which fits are linear systems."""


def is_squared(given: LossLike) -> bool:
    """Return whether a loss is the square."""
    return isinstance(given, str) and given == SQUARED_LOSS


def check_loss(settings: FitParameters, *, searches_penalty: bool) -> None:
    """Raise ValueError for an unknown loss, or settings that exclude it."""
    loss = settings.loss
    is_newton = isinstance(settings.solver, Newton) or settings.solver == "newton"
    if is_squared(loss):
        if is_newton:
            raise ParameterError(
                "solver",
                settings.solver,
                "minimises only losses other than the square",
                Text("choose another loss, or {solver='auto'}"),
                SETTING_FORM,
            )
        return
    _check_known(loss)
    if not (is_newton or settings.solver == "auto"):
        problem = Text("is minimised by {solver='newton'}, not {!r}", settings.solver)
        raise ParameterError("loss", loss, problem, form=SETTING_FORM)
    if searches_penalty:
        raise ParameterError(
            "loss",
            loss,
            "supports no path of penalties and landmarks",
            "give a penalty, or a number of landmarks",
            SETTING_FORM,
        )
    for name, unused in (("early_stopping", False), ("warm_start", False), ("cells", None)):
        if getattr(settings, name) != unused:
            problem = Text("cannot be combined with {loss=}", loss)
            value, remedy = getattr(settings, name), "leave one of them out"
            raise ParameterError(name, value, problem, remedy, SETTING_FORM)
    if any(isinstance(callback, Validate) for callback in settings.callbacks):
        raise TextError("Validate measures squared errors, not {loss=}; leave Validate out", loss)


def _check_known(given: LossLike) -> None:
    names = [SQUARED_LOSS, *losses.names()]
    if isinstance(given, str) and given not in names:
        known_losses = f"{', '.join(names)}, or an object of gramian.losses"
        hint = did_you_mean(given, names).removeprefix("; ")
        raise ParameterError("loss", given, known_losses, hint, UNKNOWN_FORM)
    if not isinstance(given, str | losses.Loss):
        raise ParameterError(
            "loss",
            given,
            f"is neither a name ({', '.join(names)}) nor an object of gramian.losses",
            form=SETTING_FORM,
        )
