"""Choose kernel, lengthscale and penalty, if they are "auto", by the errors of held-out rows."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import cast

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ...callbacks import announce, stages
from ...data import LinearMap, RowSource
from ...kernels import Kernel
from ...model import Shares
from ...paths.work import Work
from ...search import L1_KERNEL, RADIAL_KERNELS
from ...search.recipe import FIRST_MULTIPLES
from ...solvers import ProblemSize
from ..held_out.splits import count_of, search_splits
from ..inputs.training_data import TrainingData
from ..result import Fitted
from ..settings import resolve
from ..settings.settings import FitSettings
from .comparison import Comparison, Scored, best_of, has_scale
from .held_out import HeldOutChoice, held_out_work
from .leave_one_out import LeaveOneOut, all_rows_work
from .loss_penalty import loss_work
from .tuning import criterion_of, tune, tuning_work

logger = logging.getLogger("gramian")

FEW_ROWS = 1000
"""Number of rows up to which each row is left out once, in closed form."""

MOST_ROWS = 8_000
"""Largest sample of rows for the choice."""

MOST_SPARSE = 4_000
"""Largest sample of sparse rows, which become dense."""

LEAST_ROWS = 50
"""Smallest sample, for any memory limit."""

LEAST_MEMORY = 1 << 30
"""Memory limit below which the choice leaves out single rows of a small sample."""

BYTES_PER_PAIR = 100
"""Bytes of a pair of rows in leave-one-out: entries, eigenvectors and LAPACK's workspace."""

QUANTILE_BYTES = 1000
"""Bytes that could be moved while a number is mapped to the normal score of its quantile."""

NOISY_TOLERANCE = 5e-3
"""Relative residual below which the error of a noisy target no longer falls."""

TOLERANCE_OF_LOSS = 0.05
"""Largest relative residual of a target with little noise, relative to the root of the loss."""

USUAL_TOLERANCE = 1e-6
"""``tol="auto"`` for a penalty that was given."""


@dataclass(frozen=True)
class Chosen:
    """Settings chosen by the errors of held-out rows.

    - `settings`: settings with values in place of "auto".
    - `shares`: the map to probabilities of classes, fitted to the held-out rows; None for a
      regression, or if the settings leave nothing open.
    """

    settings: FitSettings
    shares: Shares | None = None


def choose(
    settings: FitSettings,
    data: TrainingData,
    *,
    landmarks: int | None,
    rng: RandomStream,
    ends: float = math.inf,
    mapped: LinearMap | None = None,
    before: Fitted | None = None,
) -> Chosen:
    """Choose kernel, lengthscale, penalty, inputs and tolerance where the settings are "auto".

    - `settings`: settings; values other than "auto" stay.
    - `data`: data as the fit sees them: scaled, mapped, without rows held out for early stopping.
    - `landmarks`: number of landmarks of the fit; None if all rows are centers.
    - `rng`: generator for the sample, its division, and centers; needed if something is chosen.
    - `ends`: the time of `time.monotonic` at which the fit must end.
    - `mapped`: the metric. Mixed features exclude kernels of the l1 distance.
    - `before`: an earlier fit that this fit continues, with the same choices.

    Cost: up to 1,000 rows, and with a memory limit below 1 GiB, some twenty eigenvalue problems of
    250 rows, ten Cholesky factors of 500 rows and six of n rows with their inverses. Beyond, a
    screen of kernels with 500 landmarks, and some four fits to 10,000 rows with all penalties at
    once: about as much as a fit to 20,000 rows. With more than eight classes, one more of these
    fits, at one penalty.
    """
    if before is not None:
        settings = _as_before(settings, before)
    if settings.tunes:
        settings = _tune_settings(settings, data, rng, mapped)
    if not settings.chooses:
        return Chosen(_with_tolerance(settings, None))
    announce(settings.callbacks, stages.COMPARING_STAGE)
    best_scored, comparison = compare_recipes(
        settings, data, landmarks=landmarks, rng=rng, ends=ends, mapped=mapped
    )
    logger.info(
        "chosen: kernel %r, penalty %.3g; mean squared error on held-out rows: %.3g",
        best_scored.kernel, best_scored.penalty, best_scored.loss,
    )  # fmt: skip
    # The kernel object has its own lengthscale: the setting next to it has no effect any more.
    picked = settings.with_values(kernel=best_scored.kernel, lengthscale="median")
    if settings.chooses_penalty:
        picked = picked.with_values(penalty=best_scored.penalty)
    if settings.chooses_inputs:
        picked = picked.with_values(
            standardize="quantile" if best_scored.inputs == "quantile" else True
        )
    picked = _with_tolerance(picked, best_scored.loss if settings.chooses_penalty else None)
    # Only classes have probabilities, which these predictions of held-out rows calibrate.
    held_values = comparison.of_all_targets(best_scored) if data.coded else None
    return Chosen(picked, None if held_values is None else held_values.shares())


def _tune_settings(
    settings: FitSettings,
    data: TrainingData,
    rng: RandomStream,
    mapped: LinearMap | None,
) -> FitSettings:
    """Return settings with a tuned kernel, and the penalty of the tuned noise if it is "auto"."""
    announce(settings.callbacks, stages.COMPARING_STAGE)
    penalty_given = None if isinstance(settings.penalty, str) else settings.one_penalty
    total = data.total
    noise = None if penalty_given is None else penalty_given * total
    criterion = criterion_of(data, str(settings.lengthscale), rng)
    resolve.check_features(resolve.kernel(settings.kernel, "median"), data.rows)
    starts = candidates(
        settings.with_values(lengthscale="median"), sparse=data.rows.sparse, mapped=mapped
    )
    tuned = [tune(criterion, kernel.resolve(criterion.X), noise) for kernel in starts]
    best = min(tuned, key=lambda one: one.value)
    settings = settings.with_values(kernel=best.kernel, lengthscale="median")
    # A path of landmarks chooses its penalty itself.
    if settings.chooses_penalty:
        settings = settings.with_values(penalty=best.noise / total)
    return settings


def compare_recipes(
    settings: FitSettings,
    data: TrainingData,
    *,
    landmarks: int | None,
    rng: RandomStream,
    ends: float = math.inf,
    mapped: LinearMap | None = None,
) -> tuple[Scored, Comparison]:
    """Return the best kernel, lengthscale and penalty, and the comparison that found them.

    Parameters as in `choose`.
    """
    tried = candidates(settings, sparse=data.rows.sparse, mapped=mapped)
    # One of the kernels stands for all: they have the same engine and number of features.
    by = _comparisons(settings, data, landmarks, rng, ends, tried[0], mapped)
    resolve.check_features(tried[0], data.rows)
    best, comparison, screened = best_of(tried, by)
    moves = settings.chooses_lengthscale and has_scale(best)
    # The screen has compared kernels; the search now compares lengthscales of the best one.
    return comparison.search(best, screened, moves=moves), comparison


def _as_before(settings: FitSettings, before: Fitted) -> FitSettings:
    """Return settings whose "auto" values are replaced by the choices of an earlier fit."""
    if settings.chooses_kernel or settings.chooses_lengthscale or settings.tunes:
        settings = settings.with_values(kernel=before.model.kernel, lengthscale="median")
    if settings.chooses_penalty:
        settings = settings.with_values(penalty=before.penalty)
    return settings


def _with_tolerance(settings: FitSettings, loss: float | None) -> FitSettings:
    """Return settings with a numeric tolerance, which is small compared with the held-out error."""
    if not isinstance(settings.tol, str):
        return settings
    if loss is None or not math.isfinite(loss):
        return settings.with_values(tol=USUAL_TOLERANCE)
    # The loss is an error of predictions, so its root bounds the accuracy that pays.
    aim = min(NOISY_TOLERANCE, TOLERANCE_OF_LOSS * math.sqrt(loss))
    return settings.with_values(tol=max(USUAL_TOLERANCE, aim))


def _comparisons(
    settings: FitSettings,
    data: TrainingData,
    landmarks: int | None,
    rng: RandomStream,
    ends: float,
    kernel: Kernel,
    mapped: LinearMap | None,
) -> list[Comparison]:
    """Return a comparison of kernels on standardised, and if allowed on quantile-mapped, inputs."""
    engine = resolve.engine_for(settings, data.rows, kernel)
    penalty_given = None if isinstance(settings.penalty, str) else settings.one_penalty
    # A penalty of 0 is for solvers that stop early. Closed forms need
    # a positive one, and choose it freely.
    penalties = (penalty_given,) if penalty_given else None
    index = _sample_index(settings, data, rng)
    if settings.cv is None and (len(data.rows) <= FEW_ROWS or _tight(settings)):
        sampled_data = data if index is None else data.part(index)
        moves = settings.chooses_lengthscale
        return [LeaveOneOut.of(sampled_data, landmarks, engine, penalties, rng, moves=moves)]
    splits = None
    if settings.cv is not None:
        splits = search_splits(settings.cv, data if index is None else data.part(index), rng)
    plain = HeldOutChoice.of(data, index, landmarks, engine, penalties, splits, rng, ends)
    unscaled_features = kernel.unscaled_features(data.rows.shape[1])
    # Quantiles would change the units of the metric, fill sparse rows, or touch raw features.
    if not settings.chooses_inputs or mapped is not None or data.rows.sparse or unscaled_features:
        return [plain]
    return [plain, replace(plain, inputs="quantile")]


def candidates(settings: FitSettings, *, sparse: bool, mapped: LinearMap | None) -> list[Kernel]:
    """Return the kernels to compare, each with its first lengthscale."""
    kernel_given = settings.kernel
    if not settings.chooses_kernel:
        names = [kernel_given]
    else:
        # The l1 distance depends on the axes, which a matrix mixes; factors of features keep them.
        mixed = mapped is not None and mapped.matrix is not None
        names = [*RADIAL_KERNELS, *([] if sparse or mixed else [L1_KERNEL])]
    if not settings.chooses_lengthscale:
        return [resolve.kernel(name, settings.lengthscale) for name in names]
    if isinstance(kernel_given, Kernel):
        return [kernel_given]
    return [
        resolve.kernel(name, f"{FIRST_MULTIPLES.get(str(name), 1.0)!r} median") for name in names
    ]


def _tight(settings: FitSettings) -> bool:
    return settings.limit is not None and settings.limit < LEAST_MEMORY


def choice_work(settings: FitSettings, rows: RowSource, size: ProblemSize) -> Work:
    """Return the work of `choose` before a fit, where the data do not determine it.

    The number of lengthscales, and whether smaller penalties are tried, depend on the data; so do
    the rows that early stopping or conformal intervals hold out.
    """
    if not settings.chooses:
        return Work()
    n = min(size.n, _sample_limit(settings, sparse=rows.sparse))
    if settings.tunes:
        work = tuning_work(n)
    else:
        mapped = rows.sparse or settings.metric is not None
        kernels = len(candidates(settings, sparse=mapped, mapped=None))
        moves, has_path = settings.chooses_lengthscale, settings.penalty in ("auto", 0)
        if settings.cv is None and (size.n <= FEW_ROWS or _tight(settings)):
            work = all_rows_work(n, size, kernels, moves=moves, has_path=has_path)
        else:
            inputs = 2 if settings.chooses_inputs and not mapped else 1
            splits = _split_count(settings, size.n)
            work = held_out_work(
                n, size, kernels * inputs, moves=moves, has_path=has_path, splits=splits
            )
            work += Work(moved_bytes=QUANTILE_BYTES * float(n) * size.d * (inputs - 1))
    of_loss = settings.is_nonlinear and settings.chooses_penalty
    return work + loss_work(size) if of_loss else work


def _split_count(settings: FitSettings, n: int) -> int | None:
    """Return the number of splits; None for one random split."""
    if settings.names_folds:
        return max(2, round(count_of(settings.cv, n)))
    return None if settings.cv is None else int(cast("int", settings.cv))


def _sample_limit(settings: FitSettings, *, sparse: bool) -> int:
    """Return the largest number of rows used for the choice."""
    sample_limit = MOST_SPARSE if sparse else MOST_ROWS
    if settings.cv is None and _tight(settings):
        sample_limit = FEW_ROWS
    if settings.limit is not None:
        # Leave-one-out has memory for the square of the rows; below 50 rows, a choice is noise.
        sample_limit = max(
            LEAST_ROWS, min(sample_limit, math.isqrt(settings.limit // BYTES_PER_PAIR))
        )
    return sample_limit


def _sample_index(settings: FitSettings, data: TrainingData, rng: RandomStream) -> Array | None:
    """Return the increasing indices of the rows used for the choice; None for all rows."""
    n, sample_limit = len(data.rows), _sample_limit(settings, sparse=data.rows.sparse)
    if n <= sample_limit:
        return None
    return xp.sort(rng.sample(n, sample_limit))
