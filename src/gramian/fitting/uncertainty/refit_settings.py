"""Settings, landmarks and centers of a refit, in which nothing is "auto"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from ... import _arrays as xp
from ..._parameters.types import LandmarksLike
from ...data import ArrayRows, RowSource
from ...model import KernelPart
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings

REFIT_TOLERANCE = 1e-4
"""Relative residual of iterative fits, where none was given."""


def settle_settings(
    settings: FitSettings, part: KernelPart, penalty: float | Literal["auto"], whole: int
) -> FitSettings:
    """Return settings of a fit to prepared rows, with values in place of "auto"."""
    landmarks: Any = None
    if part.cells is None and len(part.centers) < whole:
        landmarks = next(part.centers.blocks(len(part.centers)))[1]
        # A tensor is taken as points; sparse centers keep their source.
        landmarks = landmarks if not xp.is_sparse(landmarks) else part.centers
    cells = None if part.cells is None else int(xp.diff(part.cells.starts).max())
    return replace(
        settings,
        kernel=part.kernel,
        lengthscale="median",
        penalty=penalty,
        landmarks=landmarks,
        standardize=False,
        # The rows are mapped already; targets are scaled by their own mean and deviation.
        standardize_target=True,
        metric=None,
        cells=cells,
        cv=None,
        tol=REFIT_TOLERANCE if isinstance(settings.tol, str) else settings.tol,
        callbacks=(),
        warm_start=False,
        centers_file=None,
        early_stopping=False,
        time_limit=None,
    )


def landmarks_again(settings: FitSettings, part: KernelPart, n: int) -> LandmarksLike:
    """Return ``landmarks`` for a refit, which are the centers if the user gave points."""
    landmarks, m = settings.landmarks, min(len(part.centers), n)
    if landmark_settings.are_points(landmarks):
        points: RowSource = part.centers
        return points
    # A number or a name selects again; along a path, only the number that was chosen is left.
    named = not (landmarks is None or (isinstance(landmarks, str) and landmarks == "auto"))
    return landmarks if named and not settings.searches_penalty and m < n else m


def same_centers(part: KernelPart, found: KernelPart) -> bool:
    """Return whether two models have equal centers, which a file then stores once."""
    a, b = part.centers, found.centers
    if a.shape != b.shape or not (isinstance(a, ArrayRows) and isinstance(b, ArrayRows)):
        return False
    return all(
        xp.array_equal(xp.cast(x, y.dtype), y)
        for (_, x), (_, y) in zip(a.blocks(1 << 16), b.blocks(1 << 16), strict=True)
    )
