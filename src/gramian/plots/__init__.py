"""Plots of fits and models, in the manner of scikit-learn's displays.

    >>> from gramian.plots import ConvergenceDisplay
    >>> # ConvergenceDisplay.from_estimator(est).figure_.savefig("convergence.png")

Each class has `from_estimator`, which draws the numbers of a fitted estimator, and `plot`, which
draws them again on other axes. The numbers are attributes. After drawing, ``ax_`` and ``figure_``
are matplotlib's objects, which you may change. Drawing imports matplotlib, which
``pip install 'gramian[plots]'`` installs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
