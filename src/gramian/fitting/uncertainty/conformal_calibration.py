"""Conformal calibration: hold rows out before a fit, and score them after the fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arrays import RandomStream
from ..._messages.checks import did_you_mean
from ..._messages.errors import SETTING_FORM, ParameterError, Text
from ...conformal import ConformalMethod, ConformalPredictor
from ...conformal.base import methods
from ...conformal.groups import GroupColumn
from ...model import Model
from ..inputs.training_data import TrainingData
from ..settings.generators import Generators
from .refit import Refit
from .whole_rows import DividedRows, Whole

CONFORMAL_MASK = 0x636F6E66
"""Mask that turns the seed of a fit into the seed of the calibration split."""

DEFAULT_METHOD = "split"
"""Method of a model that was fitted without one."""


def resolve_method(given: str | ConformalMethod | None, *, classes: bool) -> ConformalMethod | None:
    """Return the conformal method that a parameter names; None for None.

    Raise ValueError if there is no such method, or the method makes no sets of classes for
    `classes`.
    """
    if given is None:
        return None
    method = methods.make(str(given)) if given in methods else given
    if not isinstance(method, ConformalMethod):
        names = [repr(name) for name in methods.names()]
        hint = did_you_mean(given, methods.names()) if isinstance(given, str) else ""
        allowed = f"None, {', '.join(names[:-1])} or {names[-1]}"
        raise ParameterError("conformal", given, allowed, hint.removeprefix("; "))
    if classes and not method.supports_classes:
        remedy = Text("choose {conformal='split'} or {conformal='cv+'}")
        raise ParameterError("conformal", given, "makes no sets of classes", remedy, SETTING_FORM)
    return method


def conformal_stream(state: np.random.RandomState) -> RandomStream:
    """Return the generator that divides the rows, from one draw of a state."""
    # The mask separates this seed from the same draw of a fit.
    return RandomStream(int(state.randint(2**31 - 1)) ^ CONFORMAL_MASK)


def divide_calibration(
    dataset: Whole,
    given: str | ConformalMethod | None,
    groups: str | int | None,
    new_draws: Callable[[], RandomStream],
) -> DividedRows:
    """Split the rows of a fit into training and calibration rows.

    - `groups`: column whose values are groups, see `GroupColumn.find`.
    - `new_draws`: returns the generator that divides the rows.

    Raise ValueError if there is no such method or column, or there are too few rows.
    """
    classes = dataset.classes if given is not None else None
    method = resolve_method(given, classes=classes is not None)
    index = None if method is None else method.divide(dataset.count, new_draws, classes)
    divided = dataset.without(index)
    if groups is not None:
        find_groups(groups, divided.train, is_held_out=index is not None)
    return divided


def find_groups(groups: str | int, data: TrainingData, *, is_held_out: bool) -> GroupColumn:
    """Return the column of groups of the rows of a fit.

    `is_held_out` says whether other rows than `data` are held out for the calibration.
    """
    names = data.feature_names or data.rows.feature_names
    return GroupColumn.find(groups, data.rows, names, data.encoding, is_held_out)


def calibrate_model(
    given: str | ConformalMethod | None,
    groups: str | int | None,
    build_refit: Callable[[Generators], Refit],
    data: TrainingData,
    held_data: TrainingData | None,
    state: Callable[[], np.random.RandomState],
) -> ConformalPredictor:
    """Return the calibration of intervals or sets of a model.

    - `given`: None: some rows of the fit are held out now, and the model is refitted to the others.
    - `groups`: as in `divide_calibration`.
    - `build_refit`: returns the refit of the model.
    - `data`: the training rows of the model, without rows of weight zero.
    - `held_data`: the rows that were held out before the fit.
    - `state`: returns the random state of the fit, as it was at its start if it has a seed.

    Raise ValueError if the model has several outputs for a target, or there are too few rows.
    """
    seed = np.random.RandomState(int(state().randint(2**31 - 1)))
    refit = build_refit(Generators.from_random_state(seed))
    check_outputs(refit.model, data)
    method = resolve_method(DEFAULT_METHOD if given is None else given, classes=data.coded)
    assert method is not None
    learn_groups = None
    if groups is not None:
        learn_groups = find_groups(groups, data, is_held_out=held_data is not None).learn
    scored = method.calibrate(refit, data, held_data, lambda: conformal_stream(state()))
    return ConformalPredictor.from_scores(method, scored, learn_groups)


def check_outputs(model: Model, data: TrainingData) -> None:
    """Raise ValueError if a model has several outputs per target, such as several quantiles."""
    if model.outputs != data.targets.shape[1]:
        raise ValueError(
            f"a model of {model.outputs} outputs for {data.targets.shape[1]} target has no "
            "conformal intervals: its quantiles are intervals already; give one level"
        )
