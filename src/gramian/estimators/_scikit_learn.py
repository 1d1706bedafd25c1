"""Import of scikit-learn without SciPy's distributions and pandas, which few functions need.

That is half of its time. Both are imported when they are first used.
"""

from __future__ import annotations

import importlib

from .._imports import defer_imports

with defer_imports("scipy.stats", "pandas"):
    importlib.import_module("sklearn.base")
