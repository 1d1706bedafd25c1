"""Seen: the settings and data of a fit as its kernel sees them, with what was left open chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..data import decoded_once
from ..kernels import Kernel
from ..model import Probabilities
from .data import TrainingData
from .defaults import chosen
from .fitted import Fitted
from .generators import Generators
from .memory import FitSize
from .scaling import Scaling
from .settings import FitSettings


@dataclass(frozen=True)
class Seen:
    """The settings of a fit with values, and its data as the kernel sees them."""

    scaling: Scaling
    settings: FitSettings
    data: TrainingData
    size: FitSize
    probabilities: Probabilities | None


def as_seen(
    given: FitSettings,
    raw: TrainingData,
    size: FitSize,
    kernel: Kernel,
    rng: Generators,
    ends: float,
    before: Fitted | None,
) -> Seen:
    """Scale the data, and choose what the settings leave open; a file is decoded once."""
    raw = raw if size.full else replace(raw, rows=decoded_once(raw.rows))
    earlier = None if before is None else before.model
    scaling = Scaling.of(given, raw, earlier, kernel=kernel, rng=rng.maps)
    settings, data = scaling.apply(given, raw)
    size = replace(size, d=data.rows.width)
    choice = chosen(
        settings,
        data,
        landmarks=None if size.full else size.m,
        rng=rng.choice,
        ends=ends,
        mapped=scaling.features.metric,
        before=before,
    )
    settings = choice.settings
    if settings.uses_quantiles and not given.uses_quantiles:
        scaling = scaling.with_quantiles(raw, rng.maps)
        settings, data = scaling.apply(settings.with_points_of(given), raw)
    known = choice.shares if earlier is None else earlier.probabilities
    return Seen(scaling, settings, data, size, known)
