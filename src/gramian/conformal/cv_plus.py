"""Intervals by scores of all rows, from five fits that each leave out a fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .. import _arrays as xp
from .._arrays import Array, Int, RandomStream
from .base import ConformalMethod, RowScores, methods
from .held_out import errors_of, score_classes
from .parts import CalibratedPart, CalibrationRows, Refit
from .spread import choose_spread, divide_order, scale_errors

FOLD_COUNT = 5
"""Folds, each of which one fit leaves out."""


@methods.register("cv+")
@dataclass(frozen=True)
class CVPlus(ConformalMethod):
    """CV+: the scores of a fold come from a fit, and a spread, that did not learn from the fold.

    The ridge of a spread is chosen by the errors of a fifth of the other rows, which the spread has
    not learned from until then. Kernel, maps and ridge were chosen with all rows. The theorem gives
    a coverage of about 2 ``level`` - 1, experiments mostly ``level``.

    Notes
    -----
    Cost: for each fold one fit to four fifths of the rows, and the cost of `ConformalSplit`.

    References
    ----------
    .. [1] Barber, Candes, Ramdas, Tibshirani, *Predictive inference with the jackknife+*, 2021.
    """

    scores_all_rows: ClassVar[bool] = True

    def divide(
        self,
        n: int,
        new_draws: Callable[[], RandomStream],
        classes: Int[Array, " n"] | None = None,
    ) -> None:
        """Hold out no row before the fit."""
        return

    def calibrate(
        self,
        refit: Refit,
        data: Any,
        held_data: CalibrationRows | None,
        new_draws: Callable[[], RandomStream],
    ) -> Iterator[RowScores]:
        """Score each fold by a fit to the other folds."""
        n, draws = len(data.targets), new_draws()
        for index in divide_order(draws.permutation(n), FOLD_COUNT):
            is_kept = xp.ones(n, xp.bool)
            is_kept[index] = False
            train_data, fold = data.part(xp.flatnonzero(is_kept)), data.part(index)
            # Landmarks, too, are selected without the rows of the fold.
            fold_refit = refit.to_fewer(train_data)
            scored = self._score_fold(fold_refit, train_data, fold, draws)
            yield replace(scored, functions={"values": fold_refit.model, **scored.functions})

    def describe(self, parts: Sequence[CalibratedPart]) -> str:
        """Return the method and the number of its folds."""
        return f"CV+ of {len(parts)} folds"

    @staticmethod
    def _score_fold(refit: Refit, train_data: Any, fold: Any, draws: RandomStream) -> RowScores:
        if train_data.coded:
            return score_classes(refit, fold)
        spread = choose_spread(refit, train_data, None, draws)
        return scale_errors(errors_of(refit, fold), fold, spread)
