"""scikit-learn's own checks: no failure is expected, whatever solves the system."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import KernelRidge, KernelRidgeClassifier

SETTINGS = (
    {},  # auto: direct
    {"landmarks": 20},  # auto: falkon
    # Without a preconditioner a thousandth is the penalty that a hundred iterations can deal with.
    {"solver": "pcg", "penalty": 1e-3, "tol": 1e-11},
    {"landmarks": 20, "solver": "direct"},
)

# Some checks fit fewer than 20 rows. What happens then is documented and tested elsewhere.
more_landmarks_than_rows = pytest.mark.filterwarnings("ignore:20 landmarks were asked for")


@more_landmarks_than_rows
@parametrize_with_checks(
    [
        estimator(random_state=0, **settings)
        for estimator in (KernelRidge, KernelRidgeClassifier)
        for settings in SETTINGS
    ]
)
def test_scikit_learn_has_no_objection(estimator, check):
    check(estimator)
