"""Approximations: features whose inner products approximate the kernel.

With K ≈ F F' for features F of s columns, methods that need the n x n matrix K need only F, one
block of rows at a time. A `FeatureMap` turns rows into features: `NystromMap` projects on the span
of m landmarks, which depends on the data and is more accurate per column; `FourierMap` draws random
waves, which needs no data. `Moments` are the statistics of features for kernel PCA and CCA;
`spectral_error`, `frobenius_error` and `trace_error` measure K - F F' without forming K.
"""

from __future__ import annotations

from .base import FeatureMap, Moments, RunningMoments, largest_first
from .error import Norm, frobenius_error, sampled_error, spectral_error, trace_error
from .fourier import FourierMap
from .nystrom import KernelColumns, NystromMap

__all__ = [
    "FeatureMap",
    "FourierMap",
    "KernelColumns",
    "Moments",
    "Norm",
    "NystromMap",
    "RunningMoments",
    "frobenius_error",
    "largest_first",
    "sampled_error",
    "spectral_error",
    "trace_error",
]
