"""Predicting: what an estimator with a model does, however it came by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..._parameters import EngineLike
from ...data import RowSource
from ...engines import Engine, covering
from ...model import Model
from .. import validation
from ..base import Estimator, squeezed
from ..types import RowsLike
from .explaining import one_or_all
from .leaving_out import LeavingOut

OF_TRAINING = ("_training", "_loo")
"""Attributes that hold rows of the training."""


class Predicting(LeavingOut):
    """Predictions, and the file, of an estimator that has a model."""

    engine: EngineLike

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles hold: all but the rows of the training."""
        return {name: it for name, it in super().__getstate__().items() if name not in OF_TRAINING}

    def with_model(self: Estimator, model: Model) -> Estimator:
        """Take over a model, as if it had been fitted.

        Parameters
        ----------
        model : KernelModel or AverageModel
            Of an average, `kernel_` and `dual_coef_` are tuples of those of its models.

        Returns
        -------
        KernelRidge or KernelRidgeClassifier
            Itself: it predicts, scores and saves. `partial_fit` does not go on from it.

        Raises
        ------
        ValueError
            If it is of the other kind.
        """
        if (model.classes is None) is is_classifier(self):
            kinds = ("a regression", "classes")
            held, wanted = kinds if model.classes is None else kinds[::-1]
            raise ValueError(f"the model is of {held}, and {type(self).__name__} predicts {wanted}")
        private = ("_fitted", *OF_TRAINING)
        for name in [name for name in vars(self) if name.endswith("_") or name in private]:
            delattr(self, name)
        names = model.feature_names if model.encoding is None else model.encoding.names
        self.model_ = model
        self.kernel_ = one_or_all(one.kernel for one in model.parts)
        self.dual_coef_ = one_or_all(squeezed(one.coef) for one in model.parts)
        self.n_features_in_ = model.features if names is None else len(names)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._by_name, self._one_dimensional = names is not None, model.outputs == 1
        if model.classes is not None:
            self.classes_ = np.asarray(model.classes)
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to one file, which `gramian.load` reads; see `Model.save`.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self)
        if self._is_function:
            raise ValueError(
                "a model file holds no Python function, and no objects of any type: pickle the "
                "estimator, or fit the matrix of the kernel with kernel='precomputed'"
            )
        self.model_.save(path)

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _predict(self, X: RowsLike) -> np.ndarray:
        check_is_fitted(self)
        rows = validation.new_rows(self, X)
        limit = self._limit() or 1 << 30
        engine = self._engine_of_prediction(rows)
        values = self.model_.predict(rows, engine=engine, memory_bytes=limit)
        return values.numpy()

    def _engine_of_prediction(self, rows: RowSource) -> str | Engine:
        """Return the engine of the fit, or another if it has no tiles for these rows and centers.

        That is "auto" if "auto" chose it. If it was asked for, torch takes its place on the same
        device for rows of another dtype and for sparse centers, as in the fit; for sparse rows
        nothing does, and it is refused.
        """
        engine: str | Engine = getattr(self, "engine_", self.engine)  # a loaded model has none
        if isinstance(engine, str):
            return engine
        for one in self.model_.parts:
            sparse = rows.sparse or one.centers.sparse
            dtype = torch.promote_types(rows.dtype, one.centers.dtype)
            if engine.covers(one.kernel, dtype=dtype, sparse=sparse):
                continue
            if self.engine == "auto":
                return "auto"
            if not engine.covers(one.kernel, dtype=torch.float32, sparse=rows.sparse):
                return engine
            return covering(engine, one.kernel, dtype=dtype, sparse=sparse)
        return engine
