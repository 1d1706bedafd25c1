"""gramian: kernel ridge regression on data of any size.

    >>> from gramian import KernelRidge
    >>> est = KernelRidge(landmarks=1000)  # est.fit(X, y).predict(X_new)

One estimator for every method: ``landmarks=`` and ``solver=`` choose the numerics. X may be an
array, a DataFrame, a sparse matrix or a Parquet file larger than memory. The layers below, from
rows to models, are public too: `gramian.data`, `gramian.kernels`, `gramian.operators`,
`gramian.problems`, `gramian.landmarks`, `gramian.solvers`, `gramian.metric`, `gramian.callbacks`.
"""

from importlib.metadata import version
from typing import Any

import lazy_loader

# Names are imported at their first use: importing scikit-learn takes a second.
_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return the version, or import a public name."""
    return version("gramian") if name == "__version__" else _import_name(name)
