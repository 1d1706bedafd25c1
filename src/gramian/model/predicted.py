"""PredictedRows: the values of a model at rows, computed where these are, when they are read."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import ArrayRows, RowSource
from ..data.transform import Blockwise
from ..engines import Engine
from .base import Model


class PredictedRows(Blockwise):
    """What a model predicts for rows, instead of them.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        As `Model.rows` gives them.
    model : Model
        Of t outputs.
    engine : str or Engine
    memory_bytes : int
        For a block.
    """

    def __init__(
        self, rows: RowSource, model: Model, engine: str | Engine, memory_bytes: int
    ) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], model.outputs), torch.float64
        self.sparse, self.entries, self.feature_names = False, None, None
        self._model, self._engine, self._memory = model, engine, memory_bytes

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b t"]:
        """Predict; see `Blockwise.change`."""
        rows = ArrayRows(block)
        return self._model.predict(rows, engine=self._engine, memory_bytes=self._memory)


def predicted(rows: RowSource, model: Model, engine: str | Engine, memory_bytes: int) -> RowSource:
    """Return what a model predicts, wherever rows are; see `PredictedRows`.

    On remote rows each pass computes it anew, and nothing comes here.
    """
    there = partial(PredictedRows, model=model, engine=engine, memory_bytes=memory_bytes)
    return rows.each(there)
