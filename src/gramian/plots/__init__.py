"""Plots of fits and models, in the manner of scikit-learn's displays.

    >>> from gramian.plots import ConvergenceDisplay
    >>> # ConvergenceDisplay.from_estimator(est).figure_.savefig("convergence.png")

Each class has `from_estimator`, which takes its numbers from a fitted estimator and draws them, and
`plot`, which draws it again on other axes. The numbers are attributes. After drawing, ``ax_`` and
``figure_`` are matplotlib's objects, to be changed at will. Drawing needs matplotlib, which
``pip install 'gramian[plots]'`` brings; it is imported when something is drawn.
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
