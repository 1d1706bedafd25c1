"""Estimators: the scikit-learn interface of the library.

`KernelRidge` and `KernelRidgeClassifier` are the two statistical models; ``landmarks=`` and
``solver=`` choose the numerics, as scikit-learn's ``Ridge(solver=...)`` does. They validate
arguments, call the layers below, and keep the results. ``est.plan(X)`` returns the cost of a fit
before it starts.
"""

import lazy_loader

# Threads that use two estimators first would enter the circle of imports of scikit-learn at two
# places; the import of this package, which they share, enters it at one.
import sklearn.base  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
