"""Training rows that are most similar to a row, and their weights in its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import as_count
from .._messages.errors import ParameterError
from ..data import as_rows
from ..model import KernelPart, Model
from .columns import features_of, resolve_model, to_array

MOST_ENTRIES = 100_000_000
"""Most kernel entries of weights: 800 MB."""

NEGLIGIBLE_EIGENVALUE = 1e-13
"""Eigenvalues of the centers' kernel matrix, relative to the largest, that are left out."""


@dataclass(frozen=True, eq=False)
class NearestRows:
    """The training rows that are most similar to each of n rows, the most similar first.

    Attributes
    ----------
    index : ndarray of shape (n, k)
        Numbers of the training rows.
    similarity : ndarray of shape (n, k)
        The normalised kernel, k(x, z) / √(k(x, x) k(z, z)): 1 for equal rows.
    weights : ndarray of shape (n, k), or None
        Weight of the target of each training row in the prediction; see `nearest_rows`.
    """

    index: np.ndarray
    similarity: np.ndarray
    weights: np.ndarray | None


def nearest_rows(
    model: Any, X: Any, train: Any, *, count: int = 5, weights: bool = False
) -> NearestRows:
    """Return the training rows that are most similar to each row in the kernel of a model.

    A prediction of kernel ridge regression is a weighted sum of the targets of the training rows,
    ``shift + weights @ (y - shift)``: rows with large weights explain it.

    Parameters
    ----------
    model : estimator, Model, or path
        In a mean of several kernel models, the similarity is their weighted mean.
    X : table, path or array
        n rows, as for `predict`.
    train : table, path or array
        Training rows.
    count : int, default=5
        Number k of training rows.
    weights : bool, default=False
        Whether to compute the weights, for which `train` must have all training rows in the order
        of the fit, which had a squared loss and no weights of rows.

    Raises
    ------
    ValueError
        If a parameter is invalid, or the model does not determine the weights.

    Notes
    -----
    Cost: n r kernel entries, for r training rows; weights r m more with m landmarks, and r m²
    operations, or r³ / 3 if all rows are centers.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.explain import nearest_rows
    >>> X = np.arange(20.0)[:, None]
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6).fit(X, X[:, 0])
    >>> nearest_rows(est, [[7.2]], X, count=2).index
    array([[7, 8]])
    """
    as_count(count, "count")
    resolved = resolve_model(model)
    x, rows = features_of(resolved, X), features_of(resolved, train)
    similar = similarity(resolved, x, rows)
    index = np.argsort(-similar, axis=1, kind="stable")[:, :count]
    chosen = np.take_along_axis(similar, index, axis=1)
    if not weights:
        return NearestRows(index, chosen, None)
    all_weights = _target_weights(resolved, x, rows)
    return NearestRows(index, chosen, np.take_along_axis(all_weights, index, axis=1))


def similarity(
    model: Model, x: Float[Array, "n d"], rows: Float[Array, "r d"]
) -> Float[Array, "n r"]:
    """Return the normalised kernel of pairs of rows, the weighted mean over the kernel models."""
    pairs = zip(model.shares, model.parts, strict=True)
    return sum(share * _similarity(part, x, rows) for share, part in pairs)


def _similarity(
    part: KernelPart, x: Float[Array, "n d"], rows: Float[Array, "r d"]
) -> Float[Array, "n r"]:
    mapped, mapped_rows = (to_array(part.prepare_rows(as_rows(side))) for side in (x, rows))
    norms = np.sqrt(part.kernel.diag(mapped))[:, None] * np.sqrt(part.kernel.diag(mapped_rows))
    return part.kernel(mapped, mapped_rows) / np.where(norms > 0, norms, 1)


def _target_weights(
    model: Model, x: Float[Array, "n d"], rows: Float[Array, "r d"]
) -> Float[Array, "n r"]:
    """Return the weight of each training row in the prediction of each row of x."""
    part, n = model.parts[0], len(rows)
    penalty = model.info.get("penalty")
    reason = reason_equations_unknown(
        model, part, n, model.info.get("rows", n), penalty, MOST_ENTRIES
    )
    if reason is not None:
        raise ParameterError("weights", True, "False", reason)
    assert isinstance(penalty, Real)  # checked above
    mapped, mapped_rows = (to_array(part.prepare_rows(as_rows(side))) for side in (x, rows))
    centers = xp.to_float64(to_array(as_rows(part.centers)))
    ridge = n * float(penalty)
    if len(centers) == n:
        K = part.kernel(mapped_rows, mapped_rows)
        K[np.diag_indices(n)] += ridge
        return np.linalg.solve(K, part.kernel(mapped_rows, mapped)).T
    # In an orthonormal basis of the functions of the centers, in which the equations are well
    # conditioned: (B'B + ridge I) w = b for the coordinates B and b of training rows and of x.
    eigenvalues, vectors = np.linalg.eigh(part.kernel(centers, centers))
    used = eigenvalues > NEGLIGIBLE_EIGENVALUE * eigenvalues[-1]
    basis = vectors[:, used] / np.sqrt(eigenvalues[used])
    B, b = part.kernel(mapped_rows, centers) @ basis, part.kernel(mapped, centers) @ basis
    gram = B.T @ B
    gram[np.diag_indices(len(gram))] += ridge
    return np.linalg.solve(gram, b.T).T @ B.T


def reason_equations_unknown(
    model: Model,
    part: KernelPart,
    rows: int,
    learned: int | None,
    penalty: float | None,
    most_entries: int,
) -> str | None:
    """Return why the equations of a fit cannot be recomputed from its model; None if they can.

    - `part`: the first kernel model.
    - `rows`: number of rows of the training table.
    - `learned`: number of rows of the fit, if it is known.
    - `penalty`: penalty of the fit, if it is known.
    - `most_entries`: most kernel entries to compute.
    """
    from ..data.encoding.columns.target_means import TargetMeans

    columns = () if model.encoding is None else model.encoding.columns
    means = any(isinstance(column, TargetMeans) for column in columns)
    # The first reason that applies is shown. A loss without a link, such as Huber, is visible only
    # in the solver.
    reasons = {
        "the model is an average of several": len(model.parts) > 1,
        "the model has cells": part.cells is not None,
        "its loss is not squared": part.link is not None or model.info.get("solver") == "newton",
        "the model file does not record the penalty": penalty is None,
        "the model does not record its number of training rows": learned is None,
        f"the model was fitted to {learned or 0:,} rows, but the table has {rows:,}": (
            learned != rows
        ),
        "category means of the target came from other folds in the training": means,
        "it would take too long": rows * len(part.centers) > most_entries,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)
