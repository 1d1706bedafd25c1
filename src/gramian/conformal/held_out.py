"""Base of the methods that hold rows out before the fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .._messages.errors import TextError
from .base import ConformalMethod, RowScores
from .parts import CalibrationRows, Refit, set_scores

HELD_BACK, MOST_HELD_BACK = 5, 4000
"""One row in five is held out, and at most 4,000 rows."""

LEAST_ROWS = 20
"""Smallest number of rows that can be divided."""


class HeldOutMethod(ConformalMethod):
    """Base of the methods that score a fifth of the rows, which are held out before the fit."""

    def divide(
        self,
        n: int,
        new_draws: Callable[[], RandomStream],
        classes: Int[Array, " n"] | None = None,
    ) -> Int[Array, " c"]:
        """Hold out a fifth of the rows; see `ConformalMethod.divide`."""
        return hold_out(n, new_draws(), classes)[1]

    def calibrate(
        self,
        refit: Refit,
        data: CalibrationRows,
        held_data: CalibrationRows | None,
        new_draws: Callable[[], RandomStream],
    ) -> list[RowScores]:
        """Score the held-out rows; if none were, refit to some rows, and score the others."""
        functions = {}
        if held_data is None:
            classes = refit.class_numbers(data)
            learn, index = hold_out(len(data.targets), new_draws(), classes)
            data, held_data = data.part(learn), data.part(index)
            refit = refit.to_fewer(data)
            # The intervals are centered at the refitted model, which the calibration contains.
            functions = {"values": refit.model}
        if data.coded:
            scored = score_classes(refit, held_data)
        else:
            scored = self.score_rows(refit, data, held_data, new_draws())
        return [replace(scored, functions={**functions, **scored.functions})]

    @abstractmethod
    def score_rows(
        self, refit: Refit, learned: CalibrationRows, held_data: Any, draws: RandomStream
    ) -> RowScores:
        """Return the scores of held-out rows of a regression.

        Parameters
        ----------
        refit : Refit
            Refit of the model, which did not learn from the held-out rows.
        learned : TrainingData
            The rows of its fit.
        held_data : TrainingData
            Held-out rows. Their weights are ignored.
        draws : RandomStream
        """


def hold_out(
    n: int, draws: RandomStream, classes: Int[Array, " n"] | None = None
) -> tuple[Int[Array, " _"], Int[Array, " _"]]:
    """Return the increasing indices of training rows, and of held-out rows.

    At least one row of each class stays.

    Raise ValueError if there are too few rows.
    """
    if n < LEAST_ROWS:
        raise TextError(
            "conformal intervals need at least {} rows of positive weight, of which some are held "
            "out, not {}; with {conformal='cv+'} every row is learned from and has a score; or "
            "leave {conformal} out",
            LEAST_ROWS,
            n,
        )
    order = draws.permutation(n)
    count = min(n // HELD_BACK, MOST_HELD_BACK)
    calibration, learn = order[:count], order[count:]
    if classes is not None:
        # A fit that has not seen a class could not predict it: the first row of such a class moves.
        gone = set(classes[calibration].tolist()) - set(classes[learn].tolist())
        firsts = [int(xp.flatnonzero(classes[calibration] == label)[0]) for label in sorted(gone)]
        learn = xp.concat([learn, calibration[firsts]])
        stays = xp.ones(count, xp.bool)
        stays[firsts] = False
        calibration = calibration[stays]
    return xp.sort(learn), xp.sort(calibration)


def score_classes(refit: Refit, held_data: CalibrationRows) -> RowScores:
    """Return the scores of the true classes of held-out rows; see `set_scores`."""
    chances, index = refit.model.predict_proba(held_data.rows), refit.class_numbers(held_data)
    assert index is not None
    return RowScores(held_data.rows, set_scores(chances, xp.to_host(index)))


def errors_of(refit: Refit, held_data: CalibrationRows) -> Float[Array, "c t"]:
    """Return targets less the predictions of the model, in float64."""
    return xp.to_float64(held_data.targets) - refit.model.predict(held_data.rows)
