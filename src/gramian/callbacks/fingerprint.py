"""Fingerprint of a problem, by which a checkpoint recognises its problem."""

from __future__ import annotations

import json

import numpy as np

from .. import _arrays as xp
from .._arrays import Array
from ..data import RowNumbers, as_columns
from ..data.rows.digest import digest, tensor_digest
from ..problems import LossProblem, Problem


def fingerprint(problem: Problem) -> dict[str, str]:
    """Return digests of the parts that identify a problem, by their names.

    The digests cover all rows, centers, targets and weights, so that a single different entry is
    detected, and kernel, shape, type and penalty. Engine, device, threads and memory are left out:
    they change results by rounding only.

    Cost: one pass over the rows, and one over the centers if they are not the rows.
    """
    K = problem.K
    rows = digest(K.rows)
    digests = {
        "kernel": json.dumps(K.kernel.to_dict()),
        "shape": str((*K.shape, problem.targets.shape[1], xp.file_dtype_name(K.dtype))),
        "penalty": repr(problem.penalties or problem.penalty),
        # The digest of all rows costs a pass; rows that are also centers are read once.
        "rows": rows,
        "centers": rows if K.cols is K.rows else digest(K.cols),
        "targets": _numbers(problem.targets),
        "weights": _numbers(problem.weights),
        "landmark rows": tensor_digest(getattr(problem, "index", None)),
        "landmark weights": tensor_digest(_round_digits(getattr(problem, "landmark_weight", None))),
    }
    if isinstance(problem, LossProblem):
        digests |= {"loss": repr(problem.loss), "offset": tensor_digest(problem.offset)}
    return digests


def _numbers(x: RowNumbers | None) -> str:
    """Return the digest of row-aligned numbers, local or remote; an empty text for None."""
    return "" if x is None else as_columns(x).digest


def _round_digits(x: Array | None) -> Array | None:
    """Return landmark weights rounded to three digits: further digits depend on the processor.

    The weights come from leverage scores. Only preconditioners use them, and none depends on the
    fourth digit.
    """
    if x is None:
        return None
    unit = 10 ** (np.floor(np.log10(abs(xp.to_float64(xp.to_host(x))).clip(min=1e-300))) - 2)
    return (xp.to_host(x) / unit).round() * unit
