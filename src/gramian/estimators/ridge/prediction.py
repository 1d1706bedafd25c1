"""Engine of the predictions, which usually is the one of the fit, and feature importances."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ... import _arrays as xp
from ...data import RowSource
from ...engines import Engine, choose_covering
from ...model import Model, sum_by_column


def prediction_engine(
    engine: str | Engine, model: Model, rows: RowSource, *, is_auto: bool
) -> str | Engine:
    """Return the engine of the fit, or another if the rows and centers are not supported by it.

    - `engine`: engine of the fit.
    - `is_auto`: whether "auto" chose the engine: it then chooses again. Otherwise the tiled engine
      on the same device replaces the engine for rows of another dtype and for sparse centers, as
      in the fit, but not for sparse rows, for which the engine raises an error.
    """
    if isinstance(engine, str):
        return engine
    # An average has several kernels: one that the engine lacks decides for all.
    for part in model.parts:
        sparse = rows.sparse or part.centers.sparse
        dtype = xp.promote_types(rows.dtype, part.centers.dtype)
        if engine.covers(part.kernel, dtype=dtype, sparse=sparse):
            continue
        if is_auto:
            return "auto"
        # Neither the dtype nor sparse centers are the reason: the engine shall refuse such rows
        # itself.
        if not engine.covers(part.kernel, dtype=xp.float32, sparse=rows.sparse):
            return engine
        return choose_covering(engine, part.kernel, dtype=dtype, sparse=sparse)
    return engine


def feature_importances(model: Model, names: Iterable[str] | None, memory_bytes: int) -> np.ndarray:
    """Return the share of each feature or table column in the variation of predictions.

    Raise AttributeError if the model has none; `hasattr` recognises only this error.
    """
    try:
        shares = model.feature_importances(memory_bytes=memory_bytes)
    except ValueError as error:
        raise AttributeError(f"the model has no feature_importances_: {error}") from error
    if model.encoding is None:
        return shares
    # The encoding leaves out constant columns: their share is zero.
    by_name = sum_by_column(model.encoding, shares)
    columns = model.encoding.names if names is None else names
    return np.array([by_name.get(name, 0.0) for name in columns])
