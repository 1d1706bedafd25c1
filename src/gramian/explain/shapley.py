"""Shapley values of the predictions of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count
from .._messages.errors import ParameterError
from ..model import Model
from .columns import features_of, merge_columns, resolve_model, to_array, values_of_columns
from .summands import MOST_BACKGROUND_ROWS, Output, Summand, outputs_of, summands_of
from .terms import product_terms
from .values import exact_values, sampled_values

PERMUTATION_PAIRS = 8
"""Pairs of permutations for each row of the background, if values are sampled."""

MOST_GROUPS = 2000
"""Most groups of columns: a permutation of more needs gigabytes."""

MOST_MULTIPLICATIONS = 5e9
"""Most multiplications of the exact values of a row, about two seconds, with ``method="auto"``."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Shapley values of some rows, in the layout of ``shap.Explanation``.

    Attributes
    ----------
    values : ndarray of shape (n, g), or (n, g, t) for several outputs
        Contribution of each group of columns to each output of a row. They add up to the output
        minus `base_values`.
    base_values : ndarray of shape (n,) or (n, t)
        Mean output of the background, the same for all rows.
    data : ndarray of shape (n, g)
        The values of the columns, numbers or objects; of several columns, a text.
    feature_names : list of g str
    output_names : list of t str
        Classes or targets.
    standard_errors : ndarray of the shape of `values`
        Standard errors of sampled values; zero for exact values.
    is_exact : bool
        Whether all values are exact.
    """

    values: np.ndarray
    base_values: np.ndarray
    data: np.ndarray
    feature_names: list[str]
    output_names: list[str]
    standard_errors: np.ndarray
    is_exact: bool


def shapley_values(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    background_rows: int = MOST_BACKGROUND_ROWS,
    groups: Mapping[str, Sequence[str]] | None = None,
    output: Output = "raw",
    method: Literal["auto", "exact", "sampled"] = "auto",
    pairs: int = PERMUTATION_PAIRS,
    random_state: int = 0,
) -> Explanation:
    """Return the Shapley values of the columns for the predictions of rows.

    A Shapley value is the mean change of the prediction if a column gets the value of the row, over
    all orders in which columns change from a row of the background to the row [1]_. The features of
    a column, such as the levels of a category, change together.

    Parameters
    ----------
    model : estimator, Model, or path
    X : table, path or array
        n rows to explain, as for `predict`.
    background : table, path or array, optional
        Rows to compare with, such as training rows. By default the centers of the model; a model
        with a learned matrix, with cells or with trees requires rows.
    background_rows : int, default=100
        Most rows of the background; of more, random rows are drawn.
    groups : mapping of str to sequence of str, optional
        Columns that change together, by the name of their group.
    output : {"raw", "prediction"}, default="raw"
        Explained output: values before the link, which are decision values of a classifier, or
        predictions and probabilities of classes.
    method : {"auto", "exact", "sampled"}, default="auto"
        Whether values are exact or sampled; "auto" samples models without exact values, and models
        whose exact values take more than 5e9 multiplications, some two seconds, for a row.
    pairs : int, default=8
        Pairs of a random permutation and its reverse for each row of the background.
    random_state : int, default=0
        Seed of the background and of the permutations.

    Returns
    -------
    Explanation

    Raises
    ------
    ValueError
        If a parameter is invalid, `background` is required, or ``method="exact"`` and the model has
        no exact values.

    Notes
    -----
    Values are exact for Gaussian, l1 Laplacian, chi-squared, periodic, linear and polynomial
    kernels, for sums and products of kernels, and for any kernel of one group of columns, if each
    feature stays one number up to the kernel. Values of Laplacian, Matern and rational quadratic
    kernels are exact up to 1e-10 of the sum of the coefficients.

    Cost: with g groups, b rows of the background and m centers, 4 g² b m multiplications for each
    row, 50 to 200 times as many for Matern kernels; or 2 (g + 1) b times `pairs` predictions.

    References
    ----------
    .. [1] Lundberg and Lee, *A unified approach to interpreting model predictions*, NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.explain import shapley_values
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> est = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-6).fit(X, 2 * X[:, 0] - X[:, 1])
    >>> explanation = shapley_values(est, X[:1], background=X)
    >>> off = est.predict(X[:1]) - explanation.base_values - explanation.values.sum(axis=1)
    >>> bool(abs(off).max() < 1e-8)
    True
    """
    if method not in ("auto", "exact", "sampled"):
        raise ParameterError("method", method, "'auto', 'exact' or 'sampled'")
    as_count(pairs, "pairs")
    rng = RandomStream(random_state)
    resolved = resolve_model(model)
    names, group_of = merge_columns(resolved, groups)
    if len(names) > MOST_GROUPS:
        raise ParameterError(
            "groups", f"{len(names)} groups", f"at most {MOST_GROUPS} groups of columns"
        )
    x = features_of(resolved, X)
    rows = None if background is None else features_of(resolved, background)
    if rows is not None:
        count = as_count(background_rows, "background_rows")
        rows = rows[np.sort(rng.permutation(len(rows))[:count])]
    summands = summands_of(resolved, x, rows, output)
    values, errors = values_of_features(summands, group_of, method=method, pairs=pairs, rng=rng)
    base = outputs_of(resolved, output, x) - values.sum(axis=1)
    data = _values_of_groups(resolved, X, names, groups or {})
    if values.shape[2] == 1:
        values, base, errors = values[..., 0], base[:, 0], errors[..., 0]
    is_exact = not errors.any()
    return Explanation(
        values, base, data, list(names), output_names(resolved, output), errors, is_exact
    )


def values_of_features(
    summands: Sequence[Summand],
    group_of: Array,
    *,
    method: Literal["auto", "exact", "sampled"] = "auto",
    pairs: int = PERMUTATION_PAIRS,
    rng: RandomStream,
) -> tuple[Float[Array, "n g t"], Float[Array, "n g t"]]:
    """Return the Shapley values of groups of features, and their standard errors.

    - `summands`: summands of a model at the n rows to explain.
    - `group_of`: of shape (d,); the group of each feature.
    """
    values: Any = 0.0
    squares: Any = 0.0
    for summand in summands:
        most_multiplications = {"auto": MOST_MULTIPLICATIONS, "exact": np.inf, "sampled": 0.0}[
            method
        ]
        exact = _exact_values(summand, group_of, most_multiplications)
        if exact is None and method == "exact":
            expected = "'auto' or 'sampled': this model has no exact values"
            raise ParameterError("method", method, expected)
        if exact is None:
            exact, errors = sampled_values(
                summand.function, group_of, summand.x, summand.background, pairs, rng
            )
            squares = squares + errors**2
        values = values + exact
    return values, np.sqrt(squares + np.zeros_like(values))


def _exact_values(
    summand: Summand, group_of: Array, most_multiplications: float
) -> Float[Array, "n g t"] | None:
    """Return the exact values of a summand; None if its kernel has no such form, or it costs more.

    - `group_of`: of shape (d,).
    - `most_multiplications`: most multiplications for a row.
    """
    if summand.part is None or summand.coef is None or not most_multiplications:
        return None
    terms = product_terms(summand.part.kernel, group_of.tolist())
    if terms is None:
        return None
    pairs = len(summand.background) * len(summand.coef)
    if sum(4 * len(term.groups) ** 2 for term in terms) * pairs > most_multiplications:
        return None
    centers = to_array(summand.part.centers)
    groups = int(group_of.max()) + 1
    return exact_values(terms, groups, summand.x, summand.background, centers, summand.coef)


def _values_of_groups(
    model: Model, X: Any, names: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """Return the values of each column or group in the rows of X, (n, g)."""
    columns = values_of_columns(model, X)
    for group, members in groups.items():
        rows = zip(*(columns.pop(name) for name in members), strict=True)
        columns[group] = [", ".join(map(str, row)) for row in rows]
    shown = [columns[name] for name in names]
    is_number = all(isinstance(v, int | float) for column in shown for v in column)
    return np.array(shown, dtype=float if is_number else object).T


def output_names(model: Model, output: Output) -> list[str]:
    """Return the names of the outputs of a model: its classes or targets."""
    classes = model.classes
    if classes is None:
        return list(model.target or [f"target {k}" for k in range(model.outputs)])
    # The decision value of two classes is large for the second one.
    return [str(k) for k in (classes[1:] if output == "raw" and len(classes) == 2 else classes)]
