"""prepare: settings and data of a fit in which all is chosen that does not depend on landmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ...data import Targets, decoded_once
from ...kernels import Kernel
from ...model import Probabilities
from ...operators import Engine
from ...solvers import Solver
from ..diagnosis import long_fit, warn
from ..held_out.early_stopping import looking_at
from ..inputs.scaling import Scaling
from ..inputs.training_data import HeldOut, TrainingData
from ..plans.memory import FitSize
from ..result import Fitted
from ..settings import resolve
from ..settings.generators import Generators
from ..settings.loss import SQUARED
from ..settings.settings import FitSettings
from .choose import choose


@dataclass(frozen=True)
class Prepared:
    """A fit in which all is chosen but landmarks, and the penalty of a path.

    Attributes
    ----------
    settings : FitSettings
        With values in place of "auto".
    data : TrainingData
        As the kernel sees them.
    scaling : Scaling
        Maps of features and targets to `data`.
    kernel : Kernel
    engine : Engine
    solver : Solver
    size : FitSize
    probabilities : Probabilities or None
        The map to probabilities of classes, if the choice gave one.
    """

    settings: FitSettings
    data: TrainingData
    scaling: Scaling
    kernel: Kernel
    engine: Engine
    solver: Solver[Any, Any]
    size: FitSize
    probabilities: Probabilities | None


def prepare(
    settings: FitSettings,
    data: TrainingData,
    rng: Generators,
    *,
    ends: float = math.inf,
    held_out: HeldOut | None = None,
    before: Fitted | None = None,
    surrogate: Targets | None = None,
    is_single_pass: bool = False,
) -> Prepared:
    """Scale the data, and choose what the settings leave open.

    Parameters
    ----------
    settings : FitSettings
    data : TrainingData
        Of positive weights.
    rng : Generators
    ends : float, default=inf
        The time of `time.monotonic` at which the fit is to end.
    held_out : HeldOut, optional
        Rows by which the fit stops early.
    before : Fitted, optional
        An earlier fit. Its scaling and its choices stay.
    surrogate : Tensor or RemoteColumns of shape (n, t), optional
        Targets by whose squared errors another loss chooses.
    is_single_pass : bool, default=False
        Whether the solver passes over the rows once. Then files are not decoded, and an earlier
        fit's kernel stays.

    Raises
    ------
    ValueError
        If the settings do not suit the data.
    """
    given = settings
    settings = resolve.automatic(settings, len(data.rows))
    solver, size = resolve.solver_and_size(settings, data.rows, data.targets.shape[1])
    if settings.is_nonlinear:  # kernel, lengthscale and scales are chosen by squared errors
        settings = replace(settings, loss=SQUARED, solver="auto")
    elif not is_single_pass:
        warn(long_fit(settings, data.rows, solver, size))
        settings = looking_at(settings, held_out, solver, len(data.rows))
    if not size.full and not is_single_pass:
        data = replace(data, rows=decoded_once(data.rows))
    raw = data if surrogate is None else replace(data, targets=surrogate)
    earlier = None if before is None else before.model
    kernel = resolve.kernel(settings.kernel, settings.lengthscale)
    scaling = Scaling.of(settings, raw, earlier, kernel=kernel, rng=rng.maps)
    opened, (settings, data) = settings, scaling.apply(settings, raw)
    size = replace(size, d=data.rows.width)
    choice = choose(
        settings,
        data,
        landmarks=None if size.full else size.m,
        rng=rng.choice,
        ends=ends,
        mapped=scaling.features.metric,
        before=before,
    )
    settings = choice.settings
    if settings.uses_quantiles and not opened.uses_quantiles:
        scaling = scaling.with_quantiles(raw, rng.maps)
        settings, data = scaling.apply(settings.with_points_of(opened), raw)
    if earlier is not None and is_single_pass:
        kernel = earlier.kernel
    else:
        kernel = resolve.kernel(settings.kernel, settings.lengthscale)
        kernel = resolve.kernel_for(kernel, data.rows, rng.kernel)
    if not given.is_nonlinear:
        solver = resolve.solver_for(settings, given, size)
    engine = resolve.engine_for(settings, data.rows, kernel)
    probabilities = choice.shares if earlier is None else earlier.probabilities
    return Prepared(settings, data, scaling, kernel, engine, solver, size, probabilities)
