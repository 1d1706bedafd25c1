"""Import scikit-learn without SciPy's distributions and pandas, which take half of its time.

Few functions need them; both are imported at their first use.
"""

from __future__ import annotations

import importlib

from .._imports import defer_imports

with defer_imports("scipy.stats", "pandas"):
    importlib.import_module("sklearn.base")
