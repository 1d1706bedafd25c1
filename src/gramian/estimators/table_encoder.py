"""The transformer `TableEncoder`, from columns of any type to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .. import _arrays as xp
from .._parameters.types import Count, Number, RandomState
from ..data import ReadOptions, RowSource, Table, as_table, is_table
from ..data.encoding import Encoding, FittedEncoding, array_table, load_encoding, save_encoding
from ..data.sources.as_table import encoding_table
from ..data.sources.odd_values import report_odd_values
from . import validation
from .types import RowsLike, TargetsLike


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, booleans, categories, dates and times of a table as numbers.

    Parameters
    ----------
    numbers : {"standard", "quantile", "raw"}, default="standard"
        Map of numbers: standardise to mean 0 and scale 1; map to normal values up to 3 by 1,000
        quantiles, and standardise; or keep.
    max_levels : int, default=200
        A category with up to this number of levels becomes a column of 0 and 1 for each level,
        with one for all levels of one or two rows from 21 levels on; one with more levels, or with
        mostly such levels, becomes the mean target of each level, and the logarithm of its count.
    smoothing : float, default=20
        Number of pseudo-rows with the overall mean added to each level.
    random_state : int, RandomState or None, default=None
        For the folds of `fit_transform`, and beyond 100,000 rows for the sample of medians and
        quantiles.

    Attributes
    ----------
    encoding_ : Encoding
        Encoding of each column; ``encoding_.describe()`` describes it.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the columns have names.

    See Also
    --------
    sklearn.preprocessing.TargetEncoder : Only means of targets.

    Notes
    -----
    Missing numbers become the median, with an indicator feature of 0 and 1 if training had
    missing values; otherwise a warning counts them. Missing categories are a level if training had
    some. Unknown levels are zero in all columns, or the overall mean. Ordered categories become
    their rank; dates the time elapsed, the year, and month, day, weekday and hour as cycles or
    levels, if they vary and help to predict y. Constant columns are left out, and so are
    identifiers and free text, with a warning.

    `fit_transform` encodes each row with mean targets of other rows only, in five folds; it differs
    from ``fit(X, y).transform(X)``, which is for new rows. Without y, a category with many levels
    becomes only the logarithm of its counts.

    Cost: one pass over the table to fit, one to transform.

    References
    ----------
    .. [1] D. Micci-Barreca, *A preprocessing scheme for high-cardinality categorical attributes in
       classification and prediction problems*, SIGKDD Explorations 2001.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from gramian import TableEncoder
    >>> homes = pa.table({"rooms": [2, 3, None, 5], "town": ["Rome", "Bern", "Rome", "Oslo"]})
    >>> encoder = TableEncoder().fit(homes)
    >>> encoder.get_feature_names_out().tolist()
    ['rooms', 'rooms missing', 'town=Bern', 'town=Oslo', 'town=Rome']
    >>> encoder.encoding_.describe()["town"]
    'category of 3 levels, one column each'
    """

    numbers: Literal["standard", "quantile", "raw"] = "standard"
    _: KW_ONLY
    max_levels: Count = 200
    smoothing: Number = 20.0
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Tags:
        """Declare that numbers may be missing, and that float32 stays float32."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: RowsLike, y: TargetsLike | None = None) -> TableEncoder:
        """Learn the encoding of each column.

        Parameters
        ----------
        X : DataFrame, Arrow table, path, Table or array-like
            n rows.
        y : array-like of shape (n,) or (n, t), optional
            Numbers, which are averaged; or labels (text, booleans, categories), which give the
            shares of the classes, or of the second class of two.

        Returns
        -------
        TableEncoder
            Itself.

        Raises
        ------
        ValueError, TypeError
            If a column cannot be used; the message names it.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: RowsLike, y: TargetsLike | None = None, **params: Any) -> np.ndarray:
        """Learn the encoding of each column, and encode each row without its own target.

        Parameters
        ----------
        X, y : as in `fit`
        **params : object
            Ignored.

        Returns
        -------
        ndarray of shape (n, d)
        """
        table, fitted = self._fit(X, y)
        # Not `transform`, which would give each row a mean target that includes its own target.
        return _array(fitted.training_rows(table))

    def transform(self, X: RowsLike) -> np.ndarray:
        """Encode new rows.

        Parameters
        ----------
        X : as in `fit`
            Named columns are matched by name; additional columns are ignored.

        Returns
        -------
        ndarray of shape (n, d)
            Array in float64 if the numbers of the training rows required it, else in float32.
        """
        check_is_fitted(self)
        if is_table(X):
            # Columns of a text file are read as in training, where levels may look like numbers.
            return _array(self.encoding_.rows(encoding_table(X, self.encoding_)))
        array = validate_data(self, X, dtype="numeric", ensure_all_finite="allow-nan", reset=False)
        return _array(self.encoding_.rows(array_table(array)))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the features, such as ``town=Rome`` or ``age missing``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, if `fit` had none.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        # A fit without names has made some up; `input_features` may bring the names of the caller.
        columns = zip(self.encoding_.columns, names, strict=True)
        named = tuple(replace(column, name=str(name)) for column, name in columns)
        return np.asarray(replace(self.encoding_, columns=named).feature_names, dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted encoder to a file for `load`, without pickle."""
        check_is_fitted(self)
        # NumPy scalars are valid parameters, but JSON does not accept them.
        about = {
            "numbers": self.numbers,
            "max_levels": int(self.max_levels),
            "smoothing": float(self.smoothing),
            "named": hasattr(self, "feature_names_in_"),
        }
        save_encoding(path, self.encoding_, about)

    @classmethod
    def load(cls, path: str | Path) -> TableEncoder:
        """Load an encoder from a file.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        ValueError
            If it is no encoder file, or is damaged.
        """
        encoding, about = load_encoding(path)
        if set(about) != {"numbers", "max_levels", "smoothing", "named"}:
            raise ValueError(f"{path} holds an encoding that was not written by TableEncoder.save")
        named = about.pop("named")
        encoder = cls(**about)
        encoder._keep(encoding, [column.name for column in encoding.columns] if named else None)
        return encoder

    def _fit(self, X: RowsLike, y: TargetsLike | None) -> tuple[Table, FittedEncoding]:
        names = None
        if is_table(X):
            table = as_table(X, options=ReadOptions(labels=()))
            report_odd_values(table, table.names)
            names = table.names
        else:
            array = validate_data(
                self, X, dtype="numeric", ensure_all_finite="allow-nan", ensure_min_samples=2
            )
            table = array_table(array)
        (rng,) = validation.generators(self.random_state, 1)
        fitted = FittedEncoding.fit(
            table, None, _targets(table, y), rng=rng, numbers=self.numbers,
            max_levels=self.max_levels, smoothing=float(self.smoothing),
        )  # fmt: skip
        self._keep(fitted.encoding, names)
        return table, fitted

    def _keep(self, encoding: Encoding, names: Iterable[str] | None) -> None:
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.columns)
        if names is not None:
            self.feature_names_in_ = np.asarray(list(names), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _array(rows: RowSource) -> np.ndarray:
    return rows.map(xp.copy, size=max(1, (1 << 20) // rows.shape[1]))


def _targets(table: Table, y: TargetsLike | None) -> np.ndarray | None:
    """Return numbers unchanged, and labels as class indicators."""
    if y is None:
        return None
    values: np.ndarray = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(np.empty((len(table), 0)), values)
    # An array of objects may hold plain numbers: only a text or a boolean makes its values labels.
    is_numeric = values.dtype.kind in "iuf"
    if is_numeric or not any(isinstance(label, str | bool | np.bool_) for label in values.flat):
        return np.asarray(values, np.float64)
    # Labels of mixed types have no order in Python; as text they do.
    classes, codes = np.unique(values.astype(str), return_inverse=True)
    shares = np.eye(len(classes))[codes.reshape(-1)]
    # The shares of two classes sum to one: the first column would add no information.
    return shares[:, 1:] if len(classes) == 2 else shares
