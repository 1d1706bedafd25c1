"""conformal: held-back rows, the spread of errors, and the scores that make intervals and sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..._messages import checks as _checks
from ..._messages.errors import ParameterError
from ...data import as_rows
from ...model import KernelPart, Model
from ...model.uncertainty.conformal import Calibrated, Conformal, set_scores
from ..held_out.folds import labels
from ..inputs.training_data import TrainingData
from ..settings.generators import Generators
from .refit import Again, errors_of_halves, parts_of

CONFORMAL_MASK = 0x636F6E66
"""Mask that turns the seed of a fit into the seed of the calibration split."""

CONFORMAL_METHODS = ("split", "cv+")
CV_PLUS_FOLDS = 5
"""Folds of CV+."""

HELD_BACK, MOST_HELD_BACK = 5, 4000
"""The split holds out one row in five, and at most 4,000 rows."""

LEAST_ROWS = 20
"""Smallest number of rows that can be divided."""

SPREAD_PENALTIES = tuple(10.0 ** (-e / 2) for e in range(0, 10))
"""Penalties of the spread, per row, decreasing; the first one leaves little but a constant."""

PATIENCE_STEPS = 2
"""Penalties in a row without a smaller loss, after which smaller ones are not tried."""

ERROR_FLOOR = 1e-3
"""Share of the mean error that is added to errors before their logarithm is taken.

With 0.1 intervals are narrower by 2 % in the mean of eight tables, at the cost of rows with small
errors: where noise differs tenfold, 0.98 of the quiet rows and 0.80 of the loud ones were inside,
instead of 0.93 and 0.86.
"""

SPREAD_ROWS = 10_000
"""Rows that the spread is learned from, at most."""


def check_method(given: object) -> None:
    """Raise ValueError if there is no such way to make intervals."""
    if given is not None and given not in CONFORMAL_METHODS:
        hint = _checks.did_you_mean(given, CONFORMAL_METHODS) if isinstance(given, str) else ""
        raise ParameterError("conformal", given, "None, 'split' or 'cv+'", hint.removeprefix("; "))


def held_back(
    n: int, rng: torch.Generator, classes: Int[Tensor, " n"] | None = None
) -> tuple[Int[Tensor, " _"], Int[Tensor, " _"]]:
    """Return the numbers of rows to learn from, and of rows that are held back, increasing.

    At least one row of each class stays.

    Raises
    ------
    ValueError
        If there are too few.
    """
    if n < LEAST_ROWS:
        raise ValueError(
            f"conformal intervals need at least {LEAST_ROWS} rows of positive weight, of which "
            f"some are held back, not {n}; leave conformal out"
        )
    order = torch.randperm(n, generator=rng)
    count = min(n // HELD_BACK, MOST_HELD_BACK)
    calibration, learn = order[:count], order[count:]
    if classes is not None:
        # A fit that has not seen a class could not predict it: the first row of such a class moves.
        gone = set(classes[calibration].tolist()) - set(classes[learn].tolist())
        firsts = [int((classes[calibration] == label).nonzero()[0]) for label in sorted(gone)]
        learn = torch.cat([learn, calibration[firsts]])
        stays = torch.ones(count, dtype=torch.bool)
        stays[firsts] = False
        calibration = calibration[stays]
    return learn.sort().values, calibration.sort().values


def draws_of(state: np.random.RandomState) -> torch.Generator:
    """Return the generator that divides the rows, from one draw of a state."""
    # The mask separates this seed from the same draw of a fit.
    return torch.Generator().manual_seed(int(state.randint(2**31 - 1)) ^ CONFORMAL_MASK)


def make_conformal(
    method: str | None,
    again: Again,
    data: TrainingData,
    held: TrainingData | None,
    state: Callable[[], np.random.RandomState],
) -> Conformal:
    """Return the calibration of intervals or sets of a model.

    Parameters
    ----------
    method : "split", "cv+" or None
        None: some rows of the fit are held out now, and the model is refitted to the others.
    again : Again
        Refits the model.
    data : TrainingData
        Rows of the fit of the model, without rows of weight zero.
    held : TrainingData or None
        With "split": the rows that were held back.
    state : callable
        Returns the random state of the fit, as it was at its start if it has a seed.

    Raises
    ------
    ValueError
        If the model has several outputs for a target, or there are too few rows.
    """
    check_outputs(again.model, data)
    rng = Generators.from_random_state(np.random.RandomState(int(state().randint(2**31 - 1))))
    if held is not None:
        return split(again, data, held, rng, draws_of(state()))
    if method == "cv+":
        return cross(again, data, rng, draws_of(state()))
    learn, index = held_back(len(data.targets), draws_of(state()))
    learned = data.part(learn)
    # The intervals are centered at the refitted model, which the calibration therefore contains.
    fewer = again.to_fewer(learned, rng)
    (part,) = split(fewer, learned, data.part(index), rng, draws_of(state())).parts
    return Conformal((replace(part, values=fewer.model),))


def check_outputs(model: Model, data: TrainingData) -> None:
    """Raise ValueError if a model has several outputs for a target, as one of quantiles."""
    if model.outputs != data.targets.shape[1]:
        raise ValueError(
            f"a model of {model.outputs} outputs for {data.targets.shape[1]} target has no "
            "conformal intervals: its quantiles are intervals already; give one level"
        )


def split(
    again: Again, learned: TrainingData, held: TrainingData, rng: Generators, draws: torch.Generator
) -> Conformal:
    """Calibrate intervals or sets by split conformal prediction, on rows the model has not seen.

    Parameters
    ----------
    again : Again
        Refits the model.
    learned : TrainingData
        Rows of the fit of the model.
    held : TrainingData
        Calibration rows. Their weights are ignored.
    rng : Generators
    draws : torch.Generator
        Divides the rows.

    Notes
    -----
    For a regression:

    1. The rows of the fit, at most 10,000, are divided into halves. Each half is predicted by a fit
       to the other one with the same kernel, maps, landmarks and ridge; r are the errors.
    2. A spread s(x) is learned: log s is the same ridge regression, fitted to log(|r| + 1e-3 mean
       |r|), for several ridges.
    3. The first half of the calibration rows chooses the ridge of log s, or a constant s, by the
       likelihood of their errors under Laplace distributions of scale s: the least mean of log s
       plus the logarithm of the mean of |r| / s.
    4. The second half, which has chosen nothing, gives the scores |r| / s.

    For classes, all calibration rows give scores.

    Cost: two fits to half of the rows, and up to ten fits of the spread, of few iterations, as its
    penalties are large.
    """
    f = again.model
    if learned.coded:
        return Conformal((_of_classes(f, held),))
    # 1. Divide the calibration rows: one half chooses the spread, the other one has chosen nothing.
    first, second = parts_of(torch.randperm(len(held.targets), generator=draws), 2)
    off = _errors(f, held)
    # 2. Learn the spread from rows of the fit, whose errors come from refits on halves.
    spread = chosen_spread(again, learned, held.part(first), off[first], rng, draws)
    # 3. Scores of the second half alone keep the guarantee of coverage.
    return Conformal((_calibrate_scores(spread, off[second], held.part(second)),))


def cross(again: Again, data: TrainingData, rng: Generators, draws: torch.Generator) -> Conformal:
    """Return the calibration of intervals or sets by five fits that each leave out a fold.

    Parameters
    ----------
    again : Again
    data : TrainingData
        The rows of the fit of the model.
    rng : Generators
    draws : torch.Generator

    Notes
    -----
    Neither a fit nor its spread has seen the rows of the fold that it gives scores for. The ridge
    of a spread is chosen by the errors of a fifth of the other rows, which the spread has not
    learned from until then. Kernel, maps and ridge were chosen with all rows.

    Cost: for each fold one fit to four fifths of the rows, and the cost of `split`.
    """
    folds = parts_of(torch.randperm(len(data.targets), generator=draws), CV_PLUS_FOLDS)
    return Conformal(tuple(_of_folds(again, data, folds, rng, draws)))


def _of_folds(
    again: Again,
    data: TrainingData,
    folds: Sequence[Int[Tensor, " _"]],
    rng: Generators,
    draws: torch.Generator,
) -> Iterator[Calibrated]:
    for index in folds:
        is_kept = torch.ones(len(data.targets), dtype=torch.bool)
        is_kept[index] = False
        other_data, fold = data.part(is_kept.nonzero()[:, 0]), data.part(index)
        # Landmarks, too, are selected without the rows of the fold.
        fold_refit = again.to_fewer(other_data, rng)
        f = fold_refit.model
        if data.coded:
            yield replace(_of_classes(f, fold), values=f)
            continue
        spread = chosen_spread(fold_refit, other_data, None, None, rng, draws)
        yield replace(_calibrate_scores(spread, _errors(f, fold), fold), values=f)


def chosen_spread(
    again: Again,
    learned: TrainingData,
    held_data: TrainingData | None,
    off: Float[Tensor, "c t"] | None,
    rng: Generators,
    draws: torch.Generator,
) -> KernelPart | None:
    """Return the model of the logarithm of the spread; None if the spread is constant.

    The ridge is chosen by the errors of held-out rows. Without such rows, a fifth of the errors of
    the halves chooses it, for models fitted to the others, and the final model is fitted to all.
    """
    n = len(learned.targets)
    # 1. Limit the cost: the path of the spread has up to ten fits.
    if n > SPREAD_ROWS:
        learned = learned.part(torch.randperm(n, generator=draws)[:SPREAD_ROWS].sort().values)
        n = SPREAD_ROWS
    # 2. Bring remote rows to this machine: they are few, and fitted a dozen times.
    if learned.rows.remote:
        learned = replace(learned, rows=as_rows(learned.rows.take(torch.arange(n))))
    # 3. Predict each half by a fit to the other one: residuals of the fit itself are too small.
    errors = errors_of_halves(again, learned, rng, torch.randperm(n, generator=draws)).abs()
    # Without errors there is no logarithm to learn.
    if not bool((errors.mean(dim=0) > 0).all()):
        return None
    train_rows = None
    # 4. Without held-out rows, a fifth of these errors judges the penalties.
    if held_data is None or off is None:
        order = torch.randperm(n, generator=draws)
        train_rows = order[n // 5 :].sort().values
        judge = order[: n // 5].sort().values
        held_data, off = learned.part(judge), errors[judge]
    # 5. Fit logarithms, with a floor: an error of 0 would be minus infinity.
    logs = replace(learned, targets=(errors + ERROR_FLOOR * errors.mean(dim=0)).log())
    best = _best_of_path(
        again, logs if train_rows is None else logs.part(train_rows), (held_data, off), rng
    )
    if best.model is None:
        return None
    # 6. Rows that have judged take part in the final fit.
    return best.model if train_rows is None else again.spread(logs, best.penalty, rng)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Spread that may be chosen; by default a constant one."""

    loss: float
    penalty: float = math.inf
    model: KernelPart | None = None


def _best_of_path(
    again: Again,
    logs: TrainingData,
    judges: tuple[TrainingData, Float[Tensor, "c t"]],
    rng: Generators,
) -> Candidate:
    """Return the spread of the best penalty; penalties decrease until several are no better."""
    validation, off = judges
    best, rises = Candidate(_loss(torch.zeros_like(off), off)), 0
    for penalty in SPREAD_PENALTIES:
        spread_model = again.spread(logs, penalty, rng)
        loss = _loss(spread_model.predict(validation.rows), off)
        rises += 1
        if loss < best.loss:
            best, rises = Candidate(loss, penalty, spread_model), 0
        # The first penalties leave a constant, and are no reason to give up.
        elif best.model is not None and rises == PATIENCE_STEPS:
            break
    return best


def _loss(log_s: Float[Tensor, "c t"], off: Float[Tensor, "c t"]) -> float:
    """Return the negative log likelihood of errors of a Laplace distribution of these scales."""
    losses = log_s.mean(dim=0) + (off.abs() / log_s.exp()).mean(dim=0).log()
    value = float(losses.sum())
    return value if math.isfinite(value) else math.inf


def _errors(f: Model, data: TrainingData) -> Float[Tensor, "c t"]:
    return data.targets.double() - f.predict(data.rows)


def _calibrate_scores(
    spread: KernelPart | None, off: Float[Tensor, "c t"], held: TrainingData
) -> Calibrated:
    s = 1.0 if spread is None else spread.predict(held.rows).exp()
    return Calibrated((off.abs() / s).sort(dim=0).values.contiguous(), spread=spread)


def _of_classes(f: Model, held: TrainingData) -> Calibrated:
    chances = f.predict_proba(held.rows)
    scores = set_scores(chances, labels(held.targets).cpu())
    return Calibrated(scores.sort(dim=0).values.contiguous())
