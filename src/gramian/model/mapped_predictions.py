"""Rows of a table for a model, and lazy outputs of a model for remote rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import it_has, join_words
from ..data import ArrayRows, RowSource, Table
from ..data.rows.transform import Blockwise
from .average import AverageModel
from .base import Model
from .blend.blend_model import BlendModel
from .kernel_model import KernelModel


class Asked(Blockwise):
    """Row source of the outputs of a model, computed when its rows are read.

    - `rows`: of shape (n, d); rows from `Model.rows`.
    - `ask`: function from a block of rows, as a source, to their outputs; plain pickle must support
      it.
    - `width`: numbers in the output of a row.
    """

    def __init__(self, rows: RowSource, ask: Callable[[RowSource], Array], width: int) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], width), xp.float64
        # Outputs are dense and have no names, whatever the rows have.
        self.sparse, self.entries, self.feature_names = False, None, None
        self._ask = ask

    def change(self, block: Float[Array, "b d"]) -> Float[Array, "b k"]:
        """Return the outputs of one block; see `Blockwise.change`."""
        return self._ask(ArrayRows(block))


def map_outputs(
    rows: RowSource, model: Model, ask: Callable[..., Array], width: int, **arguments: Any
) -> RowSource:
    """Return outputs of a model, of shape (n, width), for local or remote rows.

    Each pass over remote rows computes them on the workers, and sends nothing to the client.

    - `rows`: of shape (n, d); rows from `Model.rows`.
    - `ask`: ``ask(rows, model=..., **arguments)`` returns the outputs of the rows of a block. A
      function of a module: plain pickle refuses closures.
    """
    ask_model = partial(ask, model=bare(model), **arguments)
    return rows.map_rows(partial(Asked, ask=ask_model, width=width))


def map_predictions(rows: RowSource, model: Model, **settings: Any) -> RowSource:
    """Return the predictions of a model, of shape (n, t); see `map_outputs`.

    - `**settings`: engine and memory, as in `Model.predict`.
    """
    return map_outputs(rows, model, _values, model.outputs, settings=settings)


def _values(rows: RowSource, model: Model, settings: Mapping[str, Any]) -> Float[Array, "b t"]:
    return model.predict(rows, **settings)


def bare(model: Model) -> Model:
    """Return a copy of a model that only predicts, without scores, deviations and ``info``."""
    # The model travels with each task: factors of a variance would add up to 16 m² bytes.
    if isinstance(model, KernelModel):
        return replace(model, variance=None, conformal=None, info={})
    if isinstance(model, AverageModel):
        models = tuple(replace(member, variance=None, info={}) for member in model.models)
        return replace(model, models=models, conformal=None, info={})
    if isinstance(model, BlendModel):
        return replace(model, kernel_model=bare(model.kernel_model), conformal=None, info={})
    return model


def open_for_model(model: Model, table: Table, target: str | None = None) -> RowSource:
    """Return rows of the columns that a model was trained on, missing values filled.

    Columns are matched by name. If the model or the table has no names (``.npy``), all columns but
    the target are features if there are as many as in training; otherwise the columns at the
    positions of the training.
    """
    if model.encoding is not None:
        return model.encoding.rows(table)
    columns = model_columns(model, table, target)
    return model.fill_gaps(table.rows(columns), columns, table.where)


def model_columns(model: Model, table: Table, target: str | None = None) -> tuple[str, ...]:
    """Return the columns of a table that a model uses; see `open_for_model`."""
    if model.encoding is not None:
        return tuple(model.encoding.names)
    column_names = tuple(name for name in table.names if name != target)
    d = model.features
    if model.feature_names is not None and table.named:
        required = model.feature_names
    # Without names on one side, the position decides; the file may also have columns that the
    # training left out, whose numbers the model records.
    elif len(column_names) == d:
        return column_names
    else:
        required = tuple(model.info.get("columns", ()))
    missing = [name for name in required if name not in column_names]
    if missing or len(required) != d:
        needed = join_words(missing) if missing else f"{d} features"
        name_hint = (
            it_has(column_names, missing[0]) if missing else f"it has {join_words(column_names)}"
        )
        raise ValueError(
            f"{table.where} lacks columns that the model was trained on: {needed}; {name_hint}"
        )
    return required
