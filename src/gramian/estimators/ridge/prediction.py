"""The engine of predictions: the engine of the fit wherever it has tiles for rows and centers."""

from __future__ import annotations

import torch

from ...data import RowSource
from ...engines import Engine, choose_covering
from ...model import Model


def prediction_engine(
    engine: str | Engine, model: Model, rows: RowSource, *, is_auto: bool
) -> str | Engine:
    """Return the engine of the fit, or another if it has no tiles for these rows and centers.

    Parameters
    ----------
    engine : str or Engine
        Of the fit.
    model : Model
    rows : RowSource
    is_auto : bool
        Whether "auto" chose the engine: it then chooses again. Else torch takes its place on the
        same device for rows of another dtype and for sparse centers, as in the fit; nothing does
        for sparse rows, which the engine then refuses.
    """
    if isinstance(engine, str):
        return engine
    # An average has several kernels: one that the engine lacks decides for all.
    for part in model.parts:
        sparse = rows.sparse or part.centers.sparse
        dtype = torch.promote_types(rows.dtype, part.centers.dtype)
        if engine.covers(part.kernel, dtype=dtype, sparse=sparse):
            continue
        if is_auto:
            return "auto"
        # Neither the dtype nor sparse centers are the reason: the engine shall refuse such rows
        # itself.
        if not engine.covers(part.kernel, dtype=torch.float32, sparse=rows.sparse):
            return engine
        return choose_covering(engine, part.kernel, dtype=dtype, sparse=sparse)
    return engine
