"""Partial dependence and individual conditional expectation of one or two columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._arrays import Array, Float
from .._messages.checks import as_count, did_you_mean
from .._messages.errors import ParameterError
from ..data import is_table
from ..model import KernelModel, Model
from .columns import (
    column_names,
    column_of_features,
    features_of,
    resolve_model,
    to_array,
    values_of_columns,
)
from .summands import Output, Summand, outputs_of, summands_of
from .terms import Term, product_terms

GRID_LEVELS = (0.05, 0.95)
"""Levels of the quantiles between which the values of a grid are."""

BLOCK_NUMBERS = 1 << 22
"""Numbers of the arrays that are computed at a time."""

CENTERS_OF_BLOCK = 1 << 11
"""Centers whose factors are computed at a time."""


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Outputs of a model with one or two columns set to the values of a grid.

    The fields have the names and shapes of the result of `sklearn.inspection.partial_dependence`;
    its ``PartialDependenceDisplay`` draws ``Bunch(**vars(result))``.

    Attributes
    ----------
    grid_values : list of one or two ndarray of shape (g,)
    average : ndarray of shape (t, g) or (t, g, h)
        Means over the rows: the partial dependence.
    individual : ndarray of shape (t, n, g) or (t, n, g, h), or None
        The outputs of each row, if asked for: individual conditional expectations.
    """

    grid_values: list[np.ndarray]
    average: np.ndarray
    individual: np.ndarray | None


def partial_dependence(
    model: Any,
    X: Any,
    columns: str | int | Sequence[str | int],
    *,
    grid: int | Sequence[Any] = 100,
    kind: Literal["average", "individual"] = "average",
    output: Output = "prediction",
) -> PartialDependence:
    """Return the mean output of a model by the values of one or two columns.

    Parameters
    ----------
    model : estimator, Model, or path
    X : table, path or array
        n rows whose outputs are averaged [1]_; a few hundred are enough.
    columns : str, int, or sequence of one or two
        Names of columns, or their indices.
    grid : int or sequence, default=100
        Number of values of each column, at equal distances between the quantiles of 5 and 95 % of
        X, or all values if they are not more; or the values, for two columns two sequences.
    kind : {"average", "individual"}, default="average"
        Whether to return the outputs of each row, too [2]_.
    output : {"prediction", "raw"}, default="prediction"
        Predictions and probabilities of classes, or values before the link, which are decision
        values of a classifier.

    Raises
    ------
    ValueError
        If a parameter is invalid, or there is no such column.

    Notes
    -----
    Cost: where the kernel is a sum of products over features, as in `shapley_values`, (n + g + h) m
    kernel evaluations for each term and a product of (g, m) and (m, h) matrices, n of them for
    individual outputs; else predictions for n g h rows.

    References
    ----------
    .. [1] Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of
       Statistics 29, 2001, section 8.2.
    .. [2] Goldstein et al., *Peeking inside the black box*, JCGS 24, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.explain import partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> est = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-6).fit(X, 2 * X[:, 0] - X[:, 1])
    >>> curve = partial_dependence(est, X, 0, grid=[-1.0, 0.0, 1.0])
    >>> np.diff(curve.average).round(1)
    array([[2., 2.]])
    """
    if kind not in ("average", "individual"):
        raise ParameterError("kind", kind, "'average' or 'individual'")
    resolved = resolve_model(model)
    numbers = _column_numbers(resolved, columns)
    grids = _grids(resolved, X, numbers, grid)
    mapping = _mapping(resolved, output)
    explained: Output = output if mapping is None else "raw"
    rows = features_of(resolved, X)
    points = [_features_of_grid(resolved, X, k, g) for k, g in zip(numbers, grids, strict=True)]
    group_of = _group_columns(resolved, numbers)
    sizes = [len(values) for values in grids]
    surfaces = [
        _Surface.of(summand, sizes, group_of)
        for summand in summands_of(resolved, np.concatenate(points), rows, explained)
    ]
    # Summands leave out constants, which the output of any row shows.
    shift = outputs_of(resolved, explained, rows[:1])[0] - sum(
        surface.summand.function(surface.summand.background[:1])[0] for surface in surfaces
    )
    if kind == "average" and mapping is None:
        mean = sum(surface.mean() for surface in surfaces) + shift
        return PartialDependence(grids, _layout(mean, sizes), None)
    blocks: list[np.ndarray] = []
    total: Any = 0.0
    for block in _blocks(surfaces, shift, mapping):
        total = total + block.sum(axis=0)
        if kind == "individual":
            blocks.append(_layout(block, [len(block), *sizes]))
    individual = np.concatenate(blocks, axis=1) if blocks else None
    return PartialDependence(grids, _layout(total / len(rows), sizes), individual)


def _group_columns(model: Model, numbers: Sequence[int]) -> Array:
    """Return 0 for the features of the first column, 1 for the second, and the next for others."""
    column_of = column_of_features(model)
    group_of = np.full(len(column_of), len(numbers))
    for group, k in enumerate(numbers):
        group_of[column_of == k] = group
    return group_of


def _blocks(
    surfaces: Sequence[_Surface], shift: Array, mapping: Callable[[Array], Array] | None
) -> Iterator[Any]:
    """Yield the outputs of some rows at each point of the grid, (b, g, t)."""
    size = max(1, BLOCK_NUMBERS // (int(np.prod(surfaces[0].sizes)) * len(shift)))
    for start in range(0, len(surfaces[0].summand.background), size):
        rows = slice(start, start + size)
        block: Any = sum(surface.individual(rows) for surface in surfaces) + shift
        if mapping is None:
            yield block
        else:
            yield mapping(block.reshape(-1, len(shift))).reshape(*block.shape[:2], -1)


@dataclass(frozen=True)
class _Surface:
    """The values of a summand at all points of a grid.

    - `summand`: its rows `x` are the points of the grid of the first column, then of the second;
      its background has the rows to average.
    - `group_of`: of shape (d,); features of the columns, 0 and 1; all others have the next number.
    """

    summand: Summand
    sizes: Sequence[int]
    group_of: Array
    terms: list[Term] | None

    @classmethod
    def of(cls, summand: Summand, sizes: Sequence[int], group_of: Array) -> _Surface:
        part = summand.part
        terms = None if part is None else product_terms(part.kernel, group_of.tolist())
        return cls(summand, sizes, group_of, terms)

    def mean(self) -> Float[Array, "g t"]:
        """Return the mean over the rows at each point of the grid."""
        n = len(self.summand.background)
        if self.terms is not None:
            return sum(
                self._product(first, second, averaged.mean(axis=0) * a)
                for first, second, averaged, a in self._factors(slice(0, n))
            )
        size = max(1, BLOCK_NUMBERS // (len(self.group_of) * int(np.prod(self.sizes))))
        blocks = range(0, n, size)
        return sum(self.individual(slice(k, k + size)).sum(axis=0) for k in blocks) / n

    def individual(self, rows: slice) -> Float[Array, "b g t"]:
        """Return the values of some rows at each point of the grid."""
        if self.terms is None:
            return self._predict_points(rows)
        return sum(
            np.stack([self._product(first, second, row * a) for row in averaged])
            for first, second, averaged, a in self._factors(rows)
        )

    def _factors(self, rows: slice) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield the factors of terms and centers: (g, m), (h, m), (b, m), and coef.T, (t, m)."""
        summand, g = self.summand, self.sizes[0]
        assert summand.part is not None
        assert summand.coef is not None
        centers, background = to_array(summand.part.centers), summand.background[rows]
        for term in self.terms or ():
            for k in range(0, len(centers), CENTERS_OF_BLOCK):
                z = centers[k : k + CENTERS_OF_BLOCK]
                first = term.values(0, summand.x[:g], z)
                second = (
                    term.values(1, summand.x[g:], z)
                    if len(self.sizes) > 1
                    else np.ones((1, len(z)))
                )
                a = term.weight * summand.coef[k : k + CENTERS_OF_BLOCK].T
                yield first, second, term.values(len(self.sizes), background, z), a

    @staticmethod
    def _product(first: Array, second: Array, a: Float[Array, "t m"]) -> Float[Array, "g t"]:
        return np.stack([((first * row) @ second.T).ravel() for row in a], axis=-1)

    def _predict_points(self, rows: slice) -> Float[Array, "b g t"]:
        """Return predictions for rows in which the features of the columns are replaced."""
        summand, g = self.summand, self.sizes[0]
        index = np.indices(self.sizes).reshape(len(self.sizes), -1)
        points = summand.x[index[0]]
        if len(index) > 1:
            points = np.where(self.group_of == 1, summand.x[g + index[1]], points)
        composed = np.where(self.group_of < len(self.sizes), points, summand.background[rows, None])
        values = summand.function(composed.reshape(-1, composed.shape[2]))
        return values.reshape(*composed.shape[:2], -1)


def _layout(values: Array, shape: Sequence[int]) -> np.ndarray:
    """Return values, (..., t), with the outputs first and the axes of the grid apart."""
    return np.moveaxis(values.reshape(*shape, -1), -1, 0)


def _mapping(model: Model, output: Output) -> Callable[[Array], Array] | None:
    """Return the map from raw values to the output; None if the output is explained itself."""
    if output == "raw":
        return None
    if model.classes is not None:
        return model.class_map
    return model.link.map if isinstance(model, KernelModel) and model.link else None


def _column_numbers(model: Model, columns: Any) -> list[int]:
    """Return the indices of the columns of a model."""
    chosen = [columns] if isinstance(columns, str | int) else list(columns)
    names = column_names(model)
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        raise ParameterError("columns", columns, "one or two different columns")
    for column in chosen:
        if column not in (range(len(names)) if isinstance(column, int) else names):
            hint = did_you_mean(str(column), names)
            raise ParameterError("columns", column, f"columns of the model{hint}")
    return [c if isinstance(c, int) else names.index(c) for c in chosen]


def _grids(model: Model, X: Any, numbers: Sequence[int], grid: Any) -> list[np.ndarray]:
    """Return the values of the grid of each column."""
    if not isinstance(grid, int):
        grids = [grid] if len(numbers) == 1 else list(grid)
        if len(grids) != len(numbers):
            raise ParameterError("grid", grid, "a sequence of values for each column")
        return [np.asarray(values) for values in grids]
    count = as_count(grid, "grid")
    columns = list(values_of_columns(model, X).values())
    return [_spread(columns[k], count) for k in numbers]


def _spread(values: Sequence[Any], count: int) -> np.ndarray:
    """Return up to `count` values of a column: equally spaced, or the most frequent ones."""
    present = [v for v in values if v is not None and v == v]  # NaN differs from itself
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
        distinct = np.unique(np.array(present, np.float64))
        if len(distinct) <= count:
            return distinct
        low, high = np.quantile(np.array(present, np.float64), GRID_LEVELS)
        return np.linspace(low, high, count)
    frequent = sorted(value for value, _ in Counter(present).most_common(count))
    return np.array(frequent, dtype=object)


def _features_of_grid(model: Model, X: Any, number: int, values: np.ndarray) -> Float[Array, "g d"]:
    """Return the features of a row of X with each value of the grid in one column."""
    if not is_table(X):
        points = np.repeat(features_of(model, X)[:1], len(values), axis=0)
        points[:, number] = values
        return points
    first = {name: column[0] for name, column in values_of_columns(model, X).items()}
    name = column_names(model)[number]
    return features_of(model, [{**first, name: value} for value in values.tolist()])
