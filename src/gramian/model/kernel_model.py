"""Model of one kernel, with centers and coefficients."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import as_bytes, join_words
from ..data import RowSource, Subset, as_rows
from ..data.rows.base import default_block_size
from ..losses.base import IDENTITY
from ..operators import Engine, KernelOperator
from ..operators.block_functions import RowProduct
from .base import KernelPart
from .cell_values import ROUTED_ENTRIES, CellGradients, CellValues
from .file.checks import check_parts
from .file.format import center_tensors
from .file.write import write_model

GRADIENT_ROWS = 2000
"""Most centers at which importances are measured, if the metric was not learned."""

KEPT_BYTES = 1 << 26
"""Most bytes of packed centers that a model keeps for its next predictions; none if they are more.

Packing 2,000 centers of 20 features takes longer than the prediction of a row.
"""

KEPT_PRODUCTS = 2
"""Kinds of rows, such as float32 and float64, for which a model keeps packed centers."""

PROBED_CENTERS = 256
"""Centers that compare predictions of float32 entries with predictions of float64 entries."""

VISIBLE_ROUNDING = 1e-3
"""Least rounding error that counts as visible, as a share of the spread of predictions."""


@dataclass(frozen=True)
class KernelModel(KernelPart):
    r"""The function :math:`f(x) = \sum_j k(x, z_j)\,\mathrm{coef}_j`, scaled and shifted.

    Parameters
    ----------
    kernel : Kernel
    centers : RowSource, or anything `as_rows` takes
        m rows of k features, with all maps applied, see `prepare_rows`.
    coef : Array of shape (m, t)
    standardizer : Standardizer, optional
        Standardisation of rows before the kernel.
    target_shift, target_scale : Array of shape (t,), optional
        Predictions are ``target_shift + target_scale * (K @ coef)``; 0 and 1 if None;
        scales are positive.
    feature_names : tuple of d str, optional
        Names of the columns that are selected from tables; rows with names must have these.
    classes : tuple, optional
        Labels, if this is a classifier: one target for two classes, else one per class.
    encoding : Encoding, optional
        Encoding and scaling of the columns of a table: the model then predicts tables.
    target : tuple of str, optional
        Names of the columns that are predicted.
    info : mapping, optional
        Further facts, as JSON: version, training rows, validation error.
    quantiles : QuantileMap, optional
        Map of features to normal quantiles, after the standardizer or the encoding.
    metric : LinearMap, optional
        Last map, from d to k features, such as a learned metric.
    importances : Array of shape (d,), optional
        Shares of the features, if the metric was learned.
    cells : CellCenters, optional
        The centers of each cell, if the model has cells: a prediction is the weighted mean over the
        cells of its row.
    probabilities : Probabilities, optional
        Map from decision values to probabilities, if this is a classifier.
    link : Link, optional
        Map from scaled and shifted values to predictions, such as the exponential if the model
        predicts logarithms. None: the values are the predictions.
    variance : Variance, optional
        Standard deviations of predictions.
    conformal : ConformalPredictor, optional
        Calibration of prediction intervals, or of sets of classes.
    medians : Array of shape (d,), optional
        Values that fill the gaps of new rows of numbers, if the model has no encoding.
    reading : ReadOptions, optional
        How the table of the training was read.
    """

    def __post_init__(self) -> None:
        # A frozen dataclass refuses plain assignment, also in its own `__post_init__`.
        object.__setattr__(self, "centers", as_rows(self.centers))
        if self.centers.shape[0] != self.coef.shape[0]:
            raise ValueError(
                f"coef must have a row for each of the {self.centers.shape[0]} centers, not "
                f"{self.coef.shape[0]} rows"
            )

    @property
    def parts(self) -> tuple[KernelModel, ...]:
        return (self,)

    @property
    def features(self) -> int:
        return int(self.centers.shape[1]) if self.metric is None else self.metric.inputs

    @property
    def outputs(self) -> int:
        return self.coef.shape[1]

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t"]:
        """Return the prediction f(x) of each row.

        Parameters
        ----------
        X : RowSource, or anything `as_rows` takes; or a table, see `rows`
            n rows of d features, not standardised.
        engine : str or Engine, default="auto"
        memory_bytes : int or str, default=2**30
            Memory for blocks, as a number or like "500MB".

        Returns
        -------
        Array of shape (n, t)
            Predictions in float64; for a classifier, decision values.

        Raises
        ------
        ValueError
            If the number or the names of the features differ from the training, or `memory_bytes`
            is not a valid size.

        Notes
        -----
        Cost: n m kernel evaluations; in the first call with float32 rows 512 m more. Kernel entries
        are float32 if rows and centers are, unless predictions at 256 centers differ by more than
        1e-3 of their spread from predictions with float64 entries: large coefficients that nearly
        cancel, as with small penalties and smooth kernels, magnify the rounding of entries.
        """
        return (self.link or IDENTITY).map(
            self._values_before_link(self.rows(X), engine, memory_bytes)
        )

    def _values_before_link(
        self, rows: RowSource, engine: str | Engine, memory_bytes: int | str
    ) -> Float[Array, "n t"]:
        """Return the scaled and shifted values, the argument of the link."""
        values = self._values(self.prepare_rows(rows), engine, memory_bytes)
        if self.target_scale is not None:
            # In place: `_values` has returned a new tensor, as large as the result.
            values *= self.target_scale
        if self.target_shift is not None:
            values += self.target_shift
        return values

    def _values(
        self, rows: RowSource, engine: str | Engine, memory_bytes: int | str
    ) -> Float[Array, "n t"]:
        """Return the values at prepared rows, before they are scaled and shifted."""
        if self.cells is None:
            product = self._kept_product(rows, engine, memory_bytes)
            if product is not None:
                return product(rows)
            return self._operator(rows, engine, memory_bytes) @ xp.to_float64(self.coef)
        cells, t = self.cells.cells, self.outputs
        values = CellValues(cells, self.of_cell, t, engine, memory_bytes)
        return rows.map(values, size=max(1, ROUTED_ENTRIES // max(rows.shape[1], 1)))

    def _slopes(
        self, rows: RowSource, engine: str | Engine, memory_bytes: int | str
    ) -> Float[Array, "n t k"]:
        """Return the gradients of the unscaled values with respect to prepared rows."""
        if self.cells is None:
            K = self._operator(rows, engine, memory_bytes)
            return K.gradients(K.rows, xp.to_float64(self.coef))
        cells, t = self.cells.cells, self.outputs
        gradients = CellGradients(cells, self.of_cell, t, engine, memory_bytes)
        return rows.map(gradients, size=default_block_size(rows))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; caches, such as the models of cells, are computed again."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields of a frozen instance."""
        self.__dict__.update(state)

    def of_cell(self, cell: int) -> KernelModel:
        """Return the cached model of a cell, for prepared rows and with unscaled values."""
        # In `__dict__`, past the frozen `__setattr__`. Of two threads that build the same model,
        # the later one wins, with an equal model.
        models_of_cells: dict[int, KernelModel] = self.__dict__.setdefault("_of_cells", {})
        if cell not in models_of_cells:
            first, last = (0, len(self.coef)) if self.cells is None else self.cells.bounds(cell)
            # A view: the centers of all cells are in memory, or mapped, only once.
            centers = center_tensors(self.centers)["centers"][first:last]
            model = KernelModel(self.kernel, centers, self.coef[first:last])
            # The limit of kept products is for all cells together.
            model.__dict__["_product_bytes"] = self._product_bytes
            models_of_cells[cell] = model
        return models_of_cells[cell]

    def _kept_product(
        self, rows: RowSource, engine: str | Engine, memory_bytes: int | str
    ) -> RowProduct | None:
        """Return the product of rows of this kind with the coefficients; None if it is not kept."""
        # The same rows on both sides have an exact diagonal, which a kept product does not know.
        is_small = self._product_bytes <= KEPT_BYTES and rows.fits()
        if rows is self.centers or not is_small:
            return None
        memory = as_bytes(memory_bytes, "memory_bytes")
        key = (engine, memory, rows.dtype, rows.sparse, rows.width)
        products: dict[Any, RowProduct] = self.__dict__.setdefault("_kept_products", {})
        product = products.get(key)
        if product is None:
            K = self._operator(rows, engine, memory)
            product = K.row_product(xp.to_float64(self.coef))
            if len(products) >= KEPT_PRODUCTS:
                products.clear()
            if product is not None:
                products[key] = product
        return product

    @cached_property
    def _product_bytes(self) -> int:
        """Bytes of packed centers and coefficients, and of a copy of the centers in float64."""
        m, width = self.centers.shape[0], self.centers.width
        return 8 * int(m) * (2 * int(width) + self.outputs)

    def _operator(
        self, rows: RowSource, engine: str | Engine, memory_bytes: int | str
    ) -> KernelOperator:
        """Return the kernel operator of prepared rows and centers, in float64 if necessary."""
        memory = as_bytes(memory_bytes, "memory_bytes")
        K = KernelOperator(self.kernel, rows, self.centers, engine, memory)
        # The probe of rounding costs kernel evaluations: float64 operators need none.
        return K.double() if K.dtype != xp.float64 and self._shows_rounding(K) else K

    def gradient(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t d"]:
        """Return the gradients of the predictions; see `Model.gradient`.

        Notes
        -----
        Cost: n m kernel evaluations, 2 n m t k operations, and n t d numbers of memory. Where the
        quantile map ends, a feature has no influence, and its gradient is zero.
        """
        # 1. Chain rule, from the kernel back to X: the metric and the scale of targets first.
        rows = self._standardize_rows(self.rows(X))
        gradients = self._to_features(self._slopes(self._map_rows(rows), engine, memory_bytes))
        if self.quantiles is not None:
            # 2. Then the quantile map, whose slope depends on the standardised row.
            gradients *= rows.map(self.quantiles.slopes, size=default_block_size(rows))[:, None]
        if self.standardizer is not None:
            # 3. Then the standardizer, the first map of a prediction.
            gradients /= self.standardizer.scale
        if self.link is None:
            return gradients
        # 4. The link is the last map of a prediction: its slope depends on the values before it.
        return self.link.along(
            self._values_before_link(self.rows(X), engine, memory_bytes), gradients
        )

    def feature_importances(
        self, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, " d"]:
        """Return the share of each feature; see `Model.feature_importances`.

        With a learned metric, these are its shares. Otherwise they are shares in the squared
        gradients at up to 2,000 centers, summed over targets, with respect to the features after
        the standardizer and the quantile map: changes of one standard deviation are compared.
        """
        if self.importances is not None:
            return xp.to_float64(self.importances)
        m = len(self.centers)
        # Evenly spaced, not drawn: repeated calls return equal shares. In float64, because float32
        # has gaps between whole numbers beyond 2**24.
        index = xp.cast(xp.linspace(0, m - 1, min(m, GRADIENT_ROWS), dtype=xp.float64), xp.int64)
        slopes = self._slopes(Subset(self.centers, index), engine, memory_bytes)
        squares = xp.square(self._to_features(slopes))
        total = squares.mean(axis=0).sum(axis=0)
        return total / total.sum() if bool(total.any()) else total

    def _to_features(self, gradients: Float[Array, "b t k"]) -> Float[Array, "b t d"]:
        """Return gradients with respect to features before the metric, in units of targets."""
        gradients_back = gradients if self.metric is None else self.metric.pull_back(gradients)
        if self.target_scale is None:
            return gradients_back
        return gradients_back * self.target_scale[:, None]

    def _shows_rounding(self, K: KernelOperator) -> bool:
        """Return whether rounding of float32 kernel entries is visible in predictions.

        The rounding is measured once for each model.
        """
        shows: bool | None = self.__dict__.get("_rounding_shows")
        if shows is None:
            m = len(self.centers)
            index = xp.cast(
                xp.linspace(0, m - 1, min(m, PROBED_CENTERS), dtype=xp.float64), xp.int64
            )
            # At centers, which every model has: the answer does not depend on the rows of a call.
            sample = replace(K, rows=self.centers)[index]
            exact = xp.to_float64(sample) @ xp.to_float64(self.coef)
            off = xp.sqrt(xp.square(sample @ xp.to_float64(self.coef) - exact).mean(axis=0))
            # `not (a <= b)` instead of `a > b`: NaN then counts as visible.
            shows = not bool((off <= VISIBLE_ROUNDING * xp.std(exact, axis=0)).all())
            object.__setattr__(self, "_rounding_shows", shows)
        return shows

    def prepare_rows(self, rows: RowSource) -> RowSource:
        """Check new rows, and map them in the same way as the training rows.

        The maps are the standardizer, the quantile map and the metric, if the model has them.
        """
        return self._map_rows(self._standardize_rows(rows))

    def _standardize_rows(self, rows: RowSource) -> RowSource:
        d = self.features
        if rows.shape[1] != d:
            raise ValueError(f"X has {rows.shape[1]} features, but the model was trained on {d}")
        names = rows.feature_names
        if names is not None and self.feature_names is not None and names != self.feature_names:
            wrong = next((a, b) for a, b in zip(names, self.feature_names, strict=True) if a != b)
            raise ValueError(
                f"X has feature {wrong[0]!r} where the model expects {wrong[1]!r}; give the "
                f"columns in the order of training: {join_words(self.feature_names)}"
            )
        return rows if self.standardizer is None else self.standardizer.apply(rows)

    def _map_rows(self, rows: RowSource) -> RowSource:
        rows = rows if self.quantiles is None else self.quantiles.apply(rows)
        return rows if self.metric is None else self.metric.apply(rows)

    def save(self, path: str | Path) -> None:
        """Write the model to one file; see `Model.save`."""
        check_parts({f.name: getattr(self, f.name) for f in fields(self)})
        write_model(path, self)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> KernelModel:
        """Read a model written by `save`.

        Parameters
        ----------
        path : str or Path
        verify : bool, default=True
            Whether to compare the digest of the file, and to check the centers for NaN: two passes
            over the file, at about 1.7 and 10 GB/s. False saves the time for huge mapped centers.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is truncated, is not a model, was changed since it was written, has parts
            that do not fit together, or was written by a newer version.

        Notes
        -----
        A file of up to 64 MiB is read into memory. The centers of a larger one are mapped: replace
        such a file with `save`, or by renaming, while it is in use. Truncating it in place ends the
        processes that use it, by a signal of the system (SIGBUS).

        The digest detects damage, but not manipulation: a writer of the file can compute it again.
        """
        from .file.read import load_as  # which imports this module

        return load_as(cls, path, verify)
