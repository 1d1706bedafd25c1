"""Estimators: the scikit-learn face of the library.

`KernelRidge` and `KernelRidgeClassifier` are the two statistical models; ``landmarks=`` and
``solver=`` choose the numerics, as scikit-learn's ``Ridge(solver=...)`` does. They validate what
users pass, hand it down, and keep what comes back; all computing happens in the layers below.
``est.plan(X)`` says what a fit will need before anything is computed.
"""

from __future__ import annotations

from .classifier import KernelRidgeClassifier
from .plan import Plan
from .regressor import KernelRidge

__all__ = ["KernelRidge", "KernelRidgeClassifier", "Plan"]
