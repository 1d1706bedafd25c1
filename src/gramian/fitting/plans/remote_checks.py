"""Checks of settings for remote rows, before any row is read."""

from __future__ import annotations

from ..._messages.errors import SETTING_FORM, ParameterError, Text, TextError
from ..._parameters.types import LandmarksLike
from ...callbacks import Checkpoint
from ...data import RowSource
from ...landmarks import Selector
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings
from . import solver_choice


def check_remote(settings: FitSettings, rows: RowSource) -> None:
    """Raise ValueError, with a remedy, if a fit would transfer remote rows to this machine."""
    if not rows.remote:
        return
    if settings.is_nonlinear:
        problem = "needs all rows on one machine, but these are on other machines"
        remedy = Text("use {loss='squared'} with {landmarks}")
        raise ParameterError("loss", settings.loss, problem, remedy, SETTING_FORM)
    if settings.cells is not None:
        _check_cells(settings)
        return
    # It raises the errors of solvers and selectors that cannot use remote rows.
    solver_choice.solver_and_size(landmark_settings.with_all_rows(settings, len(rows)), rows, 1)


def _check_cells(settings: FitSettings) -> None:
    """Raise ValueError for settings that a fit by cells of remote rows does not support."""
    if any(isinstance(callback, Checkpoint) for callback in settings.callbacks):
        raise TextError(
            "a fit by cells of rows on other machines has no checkpoint: leave {Checkpoint} or "
            "{cells} out"
        )


def check_remote_landmarks(given: LandmarksLike, rows: RowSource) -> None:
    """Raise ValueError if landmarks cannot be chosen by the workers that have remote rows."""
    if not rows.remote:
        return
    selector = landmark_settings.selector(given, len(rows))
    if selector is None:
        problem = "means all rows, which is not supported for rows on a cluster"
        remedy = "give a number of landmarks, or the name of a selector"
        raise ParameterError("landmarks", None, problem, remedy, SETTING_FORM)
    if isinstance(selector, Selector):
        selector.check_rows(rows)
