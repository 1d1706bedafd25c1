"""Plots of fits and models, in the manner of scikit-learn's displays.

    >>> from gramian.plots import ConvergenceDisplay
    >>> # ConvergenceDisplay.from_estimator(est).figure_.savefig("convergence.png")

Each class has `from_estimator`, which draws the numbers of a fitted estimator, and `plot`, which
draws them again on other axes. The numbers are attributes. After drawing, ``ax_`` and ``figure_``
are matplotlib's objects, which you may change. Drawing imports matplotlib, which
``pip install 'gramian[plots]'`` installs.
"""

from __future__ import annotations

from .convergence import ConvergenceDisplay
from .importances import ImportanceDisplay
from .landmarks import LandmarkDisplay
from .penalty_path import PenaltyPathDisplay
from .reliability import ReliabilityDisplay

__all__ = [
    "ConvergenceDisplay",
    "ImportanceDisplay",
    "LandmarkDisplay",
    "PenaltyPathDisplay",
    "ReliabilityDisplay",
]
