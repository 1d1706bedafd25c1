"""Checks of settings for remote rows, before any row is read."""

from __future__ import annotations

from ..._messages.errors import SETTING_FORM, ParameterError, Text, TextError
from ..._parameters.types import LandmarksLike
from ...callbacks import Checkpoint
from ...data import RowSource
from ...landmarks import Selector
from ..settings import selection
from ..settings.settings import FitSettings
from . import solver_choice


def check_remote(settings: FitSettings, rows: RowSource) -> None:
    """Raise ValueError if a fit would bring remote rows here, and say what to use instead.

    Parameters
    ----------
    settings : FitSettings
    rows : RowSource
    """
    if not rows.remote:
        return
    if settings.is_nonlinear:
        problem = "is fitted to rows on one machine, and these are on others"
        remedy = Text("use {loss='squared'} with {landmarks}")
        raise ParameterError("loss", settings.loss, problem, remedy, SETTING_FORM)
    if settings.cells is not None:
        _check_cells(settings)
        return
    solver_choice.solver_and_size(selection.with_all_rows(settings, len(rows)), rows, 1)


def _check_cells(settings: FitSettings) -> None:
    """Raise ValueError for settings that a fit by cells of remote rows does not support."""
    if any(isinstance(callback, Checkpoint) for callback in settings.callbacks):
        raise TextError(
            "a fit by cells of rows on other machines has no checkpoint: leave {Checkpoint} "
            "out, or {cells}"
        )


def check_remote_landmarks(given: LandmarksLike, rows: RowSource) -> None:
    """Raise ValueError if landmarks cannot be chosen where remote rows are."""
    if not rows.remote:
        return
    selector = selection.selector(given, len(rows))
    if selector is None:
        problem = "means all rows, which rows on a cluster are not for"
        remedy = "give a number of landmarks, or the name of a selector"
        raise ParameterError("landmarks", None, problem, remedy, SETTING_FORM)
    if isinstance(selector, Selector):
        selector.check_rows(rows)
