"""Checks of the parameters of a fit: the loss, folds, tolerance, flags, callbacks and cells."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import TypeGuard

import numpy as np

from ... import losses
from ..._files.atomic import check_output
from ..._messages.checks import did_you_mean, is_real
from ..._messages.errors import SETTING_FORM, UNKNOWN_FORM, ParameterError, Text, TextError
from ..._parameters.fit_parameters import FitParameters
from ..._parameters.types import Indices, LossLike, Splitter
from ...callbacks import Checkpoint, Validate
from ...solvers import Falkon, Newton

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


def is_auto(given: object) -> bool:
    """Return whether a value is the text "auto"."""
    # The type comes first, because the comparison with an array would be an array.
    return isinstance(given, str) and given == "auto"


def check_tolerance(given: object) -> None:
    """Raise ValueError unless a tolerance is "auto" or a number of at least 0."""
    if not (is_auto(given) or (is_real(given) and 0 <= float(given) < math.inf)):
        raise ParameterError("tol", given, "a finite number of at least 0, or 'auto'")


def check_flag(name: str, given: object, known: str = "True or False") -> None:
    """Raise ValueError, about the parameter `name`, unless its value is a boolean."""
    if not isinstance(given, bool | np.bool_):
        raise ParameterError(name, given, known)


def check_callbacks(given: object) -> None:
    """Raise ValueError unless callbacks are a list of callables, OSError for a bad checkpoint."""
    if not isinstance(given, Sequence) or not all(map(callable, given)):
        expected = "a list of callables, such as [Validate(X, y)]"
        raise ParameterError("callbacks", given, expected)
    for callback in given:
        if isinstance(callback, Checkpoint):
            check_output(callback.path)


def check_path(settings: FitParameters) -> None:
    """Raise ValueError for settings that exclude a path of penalties."""
    if not (isinstance(settings.solver, Falkon) or settings.solver in ("auto", "falkon")):
        problem = Text("follows a path that needs {solver='falkon'}, not {!r}", settings.solver)
        remedy = Text("leave {solver} out, or give a number")
        raise ParameterError("penalty", "auto", problem, remedy, SETTING_FORM)
    if settings.warm_start:
        raise ParameterError(
            "penalty",
            "auto",
            "chooses new landmarks, but warm_start=True continues with the last landmarks",
            "give penalty=est.penalty_ to continue, or warm_start=False",
            SETTING_FORM,
        )


def check_cells(settings: FitParameters) -> None:
    """Raise ValueError for settings that exclude cells."""
    if not (settings.landmarks is None or is_auto(settings.landmarks)):
        problem = Text("cannot be combined with {cells}, which have all their rows as centers")
        remedy = "leave one of them out"
        raise ParameterError("landmarks", settings.landmarks, problem, remedy, SETTING_FORM)
    for name in ("early_stopping", "warm_start"):
        if getattr(settings, name):
            problem, remedy = Text("cannot be combined with {cells}"), "leave one of them out"
            raise ParameterError(name, True, problem, remedy, SETTING_FORM)
    if not all(
        isinstance(callback, Checkpoint) or callable(getattr(callback, "stage", None))
        for callback in settings.callbacks
    ):
        raise ValueError(
            "callbacks see the iterations of one solver, but each cell has its own; leave out "
            "all except Checkpoint and callbacks with a method stage"
        )
