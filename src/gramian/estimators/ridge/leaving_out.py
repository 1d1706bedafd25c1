"""LeavingOut: each row of the training predicted by the others, in closed form."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...fitting import TrainingData
from ...fitting.left_out import LeftOut, left_out
from .explaining import Explaining


class LeavingOut(Explaining):
    """Leave-one-out predictions and generalised cross-validation of squared errors."""

    _training: TrainingData | None = None
    """Those of the last fit, while it is in this process; neither copies nor files hold them."""
    _loo: tuple[TrainingData, LeftOut] | None = None
    """What is known of them when they are left out, once it was asked for."""

    @property
    def loo_predictions_(self) -> np.ndarray:
        """Predictions of the training rows without them, (n,) or (n, t).

        The kernel, N times the penalty and all maps of features and targets stay; a row of any
        weight is left out whole. A landmark that is a row is removed from the centers together with
        its row, unless another row equals it. Cost: see `gramian.fitting.exactly`.
        """
        values = self._left_out().values.numpy()
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def gcv_(self) -> float | np.ndarray:
        """Generalised cross-validation: a squared error, or one of each target, (t,)."""
        gcv = self._left_out().gcv.numpy()
        return float(gcv[0]) if len(gcv) == 1 else gcv

    def _left_out(self) -> LeftOut:
        check_is_fitted(self)
        if self._loo is None or self._loo[0] is not self._training:
            try:
                data, penalties = self._system("leave-one-out predictions")
                found = left_out(self.model_, data, penalties, self._limit())
            except ValueError as error:  # hasattr asks, and expects no other error
                raise AttributeError(f"there are no leave-one-out predictions: {error}") from error
            self._loo = (data, found)
        return self._loo[1]

    def _system(self, what: str) -> tuple[TrainingData, tuple[float, ...]]:
        """Return the data of the last fit, and the penalty of each model in it.

        ValueError if the model is no solution of a system that is known.
        """
        if self._training is None:
            raise ValueError(
                f"{what} need the rows of the training, which copies, loaded models, partial_fit "
                "and kernel='precomputed' do not keep; fit again, and ask before saving"
            )
        if any(part.cells is not None for part in self.model_.parts):
            raise ValueError(f"{what} are those of one system, and cells are many")
        return self._training, self._penalties()

    def _penalties(self) -> tuple[float, ...]:
        """Return the penalty of each model of the result; ValueError if there is no closed form."""
        raise NotImplementedError
