"""scikit-learn's own checks of the transformers: none may fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    NystromTransformer,
    RandomFourierFeatures,
    TableEncoder,
)

ESTIMATORS = (
    NystromTransformer(random_state=0),
    NystromTransformer(random_state=0, landmarks=None, n_components=2),
    RandomFourierFeatures(random_state=0, n_components=7),
    KernelPCA(random_state=0),
    KernelPCA(2, random_state=0, landmarks=15, fit_inverse_transform=True),
    KernelKMeans(3, random_state=0),
    KernelCCA(1, random_state=0),
    TableEncoder(random_state=0),
    TableEncoder("quantile", random_state=0),
)

# Some checks fit fewer than 15 rows. What happens then is documented and tested elsewhere.
more_than_rows = pytest.mark.filterwarnings("ignore:15 landmarks were asked for")


def expected(estimator: object) -> dict[str, str]:
    """Return the checks that fail for `KMeans` of scikit-learn, too, with the reason."""
    if not isinstance(estimator, KernelKMeans):
        return {}
    reason = "random landmarks and first centers of weighted rows are others than of repeated ones"
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): reason for kind in ("dense", "sparse")}


@pytest.mark.slow
@more_than_rows
@parametrize_with_checks(list(ESTIMATORS), expected_failed_checks=expected)
def test_scikit_learn_has_no_objection(estimator, check):
    check(estimator)
