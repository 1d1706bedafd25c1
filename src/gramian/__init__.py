"""gramian: kernel ridge regression on data of any size.

    >>> from gramian import KernelRidge
    >>> est = KernelRidge(landmarks=1000)  # est.fit(X, y).predict(X_new)

One estimator for every method: ``landmarks=`` and ``solver=`` choose the numerics. X may be an
array, a DataFrame, a sparse matrix or a Parquet file larger than memory. The layers below, from
rows to models, are public too: `gramian.data`, `gramian.kernels`, `gramian.operators`,
`gramian.problems`, `gramian.landmarks`, `gramian.solvers`, `gramian.metric`, `gramian.callbacks`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        approximations,
        callbacks,
        data,
        kernels,
        landmarks,
        metric,
        operators,
        plots,
        problems,
        report,
        solvers,
    )
    from ._arrays import RandomStream
    from .estimators import (
        KernelCCA,
        KernelKMeans,
        KernelPCA,
        KernelRidge,
        KernelRidgeClassifier,
        KernelRidgeClassifierCV,
        KernelRidgeCV,
        NystromTransformer,
        RandomFourierFeatures,
        TableEncoder,
        effective_dimension,
        leverage_scores,
        load,
        nystrom_error,
    )
    from .metric import RecursiveFeatureMachine
    from .model import AverageModel, KernelModel
    from .solvers import solve


__all__ = [
    "AverageModel",
    "KernelCCA",
    "KernelKMeans",
    "KernelModel",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "NystromTransformer",
    "RandomFourierFeatures",
    "RandomStream",
    "RecursiveFeatureMachine",
    "TableEncoder",
    "approximations",
    "callbacks",
    "data",
    "effective_dimension",
    "kernels",
    "landmarks",
    "leverage_scores",
    "load",
    "metric",
    "nystrom_error",
    "operators",
    "plots",
    "problems",
    "report",
    "solve",
    "solvers",
]

_HOME_OF_NAME = {
    "AverageModel": "model",
    "KernelCCA": "estimators",
    "KernelKMeans": "estimators",
    "KernelModel": "model",
    "KernelPCA": "estimators",
    "KernelRidge": "estimators",
    "KernelRidgeCV": "estimators",
    "KernelRidgeClassifier": "estimators",
    "KernelRidgeClassifierCV": "estimators",
    "RecursiveFeatureMachine": "metric",
    "NystromTransformer": "estimators",
    "RandomFourierFeatures": "estimators",
    "RandomStream": "_arrays",
    "TableEncoder": "estimators",
    "effective_dimension": "estimators",
    "leverage_scores": "estimators",
    "load": "estimators",
    "nystrom_error": "estimators",
    "solve": "solvers",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: importing scikit-learn takes a second."""
    if name == "__version__":  # reading the metadata takes 30 ms
        return version("gramian")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_HOME_OF_NAME.get(name, name)}"
    module = import_module(home)
    return getattr(module, name) if name in _HOME_OF_NAME else module


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {"__version__", *__all__})
