"""The classifier `KernelRidgeClassifierCV`, which searches for its parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from ...data import refuse_remote
from ...fitting import Generators
from .. import tables
from ..base import restore_on_error
from ..ridge.classifier_methods import KernelClassifier
from ..types import ClassWeight, Columns, Groups, Read, RowsLike, TargetsLike, Weights
from .base import REMOTE_REFUSAL, KernelRidgeSearch
from .groups import with_folds


@dataclass(eq=False, repr=False)
class KernelRidgeClassifierCV(KernelClassifier, KernelRidgeSearch):
    """Classification by least squares on class codes that chooses everything by itself.

    Codes as in `KernelRidgeClassifier`, minus their mean; the search as in `KernelRidgeCV`. The
    power of the probabilities minimises the log loss on the rows that the search has held out.

    Parameters
    ----------
    kernel, lengthscale, metric, standardize, average, blend, budget : as in `KernelRidgeCV`
    cv : as in `KernelRidgeCV`
        Random parts have the same share of each class.
    test_fraction : float or None, default=None
        As in `KernelRidgeCV`; the test rows have the same share of each class.
    scoring : str, callable or None, default=None
        Score that compares fits: None, the squared error of the codes, which is less noisy than
        the share of wrong labels; ``"accuracy"``, ``"balanced_accuracy"``, ``"neg_log_loss"``, of
        `predict_proba`, ``"roc_auc"``, of one class against the rest, or another metric or scorer
        as in `KernelRidgeCV`.
    engine, memory_limit, callbacks, verbose, random_state : as in `KernelRidgeCV`
    conformal, conformal_groups : as in `KernelRidgeClassifier`
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, multiplied by ``sample_weight``. "balanced": inversely proportional to
        the number of its rows.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    best_params_, best_score_, best_index_, test_score_ : as in `KernelRidgeCV`
    cv_results_, history_, members_, blend_weight_ : as in `KernelRidgeCV`
    model_, kernel_, dual_coef_, metric_, feature_importances_ : as in `KernelRidgeCV`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> est = KernelRidgeClassifierCV(budget="20 s", random_state=0).fit(X, y)
    >>> est.score(X, y) > 0.9
    True
    """

    _: KW_ONLY
    class_weight: ClassWeight = None

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
        groups: Groups = None,
        order: Groups = None,
        folds: Groups = None,
        drop_missing_target: bool = False,
        read: Read = None,
    ) -> KernelRidgeClassifierCV:
        """Search for kernel, metric, lengthscale and penalty, and fit the result to all rows.

        Parameters
        ----------
        groups : str or array-like of shape (n,), optional
            The name of a column of X, which is then no feature, or values: rows of a group are in
            one fold. Folds are ``cv``, a number or a splitter, five at most by default.
        order : str or array-like of shape (n,), optional
            The name of a column of X, such as a day, or values: each of ``cv`` folds, five by
            default, is predicted from the rows before it, as by TimeSeriesSplit.
        X, y, sample_weight, columns, drop_missing_target, read : as in `KernelRidgeClassifier.fit`

        Returns
        -------
        KernelRidgeClassifierCV
            Itself. If it fails, the last fit is kept.

        Raises
        ------
        ValueError
            If there is one class only, the input or a parameter cannot be used, there are fewer
            than five rows, or rows are sparse and a parameter requires a map of the features.
        """
        settings, seed = self._search_settings(classes=True), self._seed()
        refuse_remote(X, REMOTE_REFUSAL)
        with restore_on_error(self):
            rng = Generators.from_random_state(np.random.RandomState(seed))
            X = tables.with_read_options(X, y, read)
            whole_rows, classes = self._classification_data(
                X, y, sample_weight, columns, self._settings(), rng,
                groups if folds is None else folds, drop_missing_target, order,
            )  # fmt: skip
            settings = with_folds(settings, self, whole_rows, groups, order, folds)
            self._search(settings, whole_rows, seed)
            self.classes_ = classes
        return self
