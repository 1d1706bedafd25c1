"""Estimators: the scikit-learn interface of the library.

`KernelRidge` and `KernelRidgeClassifier` are the two statistical models; ``landmarks=`` and
``solver=`` choose the numerics, as scikit-learn's ``Ridge(solver=...)`` does. They validate
arguments, call the layers below, and keep the results. ``est.plan(X)`` returns the cost of a fit
before it starts.
"""

from __future__ import annotations

from ..fitting import Plan
from .approximation_error import nystrom_error
from .decomposition.cca import KernelCCA
from .decomposition.fourier import RandomFourierFeatures
from .decomposition.kmeans import KernelKMeans
from .decomposition.nystrom import NystromTransformer
from .decomposition.pca import KernelPCA
from .io import load
from .leverage import effective_dimension, leverage_scores
from .ridge.classifier import KernelRidgeClassifier
from .ridge.regressor import KernelRidge
from .search.classifier_cv import KernelRidgeClassifierCV
from .search.regressor_cv import KernelRidgeCV
from .table_encoder import TableEncoder

__all__ = [
    "KernelCCA",
    "KernelKMeans",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "NystromTransformer",
    "Plan",
    "RandomFourierFeatures",
    "TableEncoder",
    "effective_dimension",
    "leverage_scores",
    "load",
    "nystrom_error",
]
