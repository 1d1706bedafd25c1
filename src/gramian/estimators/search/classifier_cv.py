"""The classifier `KernelRidgeClassifierCV`, which searches for its parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ..ridge.classifier_methods import KernelClassifier
from ..types import ClassWeight
from .base import KernelRidgeSearch


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
