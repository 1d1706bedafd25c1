"""Conversion of the names in settings to objects: kernel, metric, loss, solver and engine.

`gramian.fitting.methods.pipeline` replaces each "auto" of the settings by a value.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from functools import partial

import numpy as np

from ... import _arrays as xp
from ... import kernels, losses
from ... import metric as metrics
from ..._arrays import RandomStream
from ..._messages.errors import SETTING_FORM, UNKNOWN_FORM, ParameterError, Text, TextError
from ..._parameters.types import Lengthscale, LossLike, MetricLike, OptionalKernel, SolverLike
from ..._sparse import dense
from ...data import LinearMap, RowSource
from ...kernels import Kernel
from ...kernels.base import kernels as registry
from ...losses import Loss
from ...metric import Metric
from ...operators import Engine, choose_engine
from ...solvers import Newton
from .settings import FitSettings

STAND_IN = "matern32"
"""Kernel of a plan, and of a learned metric, for kernel="auto"."""

MEDIAN_SAMPLE = 1000
"""Rows from which the median heuristic is computed."""


def kernel(kernel_like: OptionalKernel, lengthscale: Lengthscale) -> Kernel:
    """Return the kernel with this name and lengthscale, or the kernel object itself.

    For "auto" the kernel is a placeholder with the usual cost, which the choice replaces.
    """
    if isinstance(kernel_like, Kernel):
        if not (isinstance(lengthscale, str) and lengthscale in ("median", "auto")):
            problem = "has no effect on a kernel object"
            remedy = "give the kernel its own lengthscale, or the kernel's name"
            raise ParameterError("lengthscale", lengthscale, problem, remedy, SETTING_FORM)
        return kernel_like
    if isinstance(lengthscale, str) and lengthscale == "auto":
        lengthscale = "median"
    if kernel_like == "auto":
        kernel_like = STAND_IN
    if kernel_like == "precomputed":
        raise ValueError(
            "kernel='precomputed' is supported only by KernelRidge, KernelRidgeClassifier, "
            "KernelPCA, KernelKMeans and NystromTransformer, fitted to all rows at once"
        )
    # Classes are callable, too: they get the error below, which lists the kernels.
    if callable(kernel_like) and not isinstance(kernel_like, type):
        raise ValueError(
            "a function as kernel is supported only by KernelRidge, KernelRidgeClassifier, "
            "KernelPCA, KernelKMeans and NystromTransformer, fitted to all objects at once"
        )
    if (
        not isinstance(kernel_like, str)
        or kernel_like not in registry
        or kernel_like in kernels.COMPOSITE_NAMES
    ):
        known_kernels = f"auto, {', '.join(kernels.names())}, or a kernel object"
        hint = kernels.hint(kernel_like).removeprefix("; ") if isinstance(kernel_like, str) else ""
        raise ParameterError("kernel", kernel_like, known_kernels, hint, UNKNOWN_FORM)
    return kernels.make(kernel_like, lengthscale=lengthscale)


def with_names(settings: FitSettings, names: Sequence[str] | None) -> FitSettings:
    """Return settings whose kernel has indices of features in place of names of columns.

    Parameters
    ----------
    names : sequence of d str, or None
        Name of the column of each feature, see `Kernel.with_names`.
    """
    if not isinstance(settings.kernel, Kernel):
        return settings
    return settings.with_values(kernel=settings.kernel.with_names(names))


def metric(given: MetricLike) -> Metric | LinearMap | None:
    """Return the metric to learn, or the given map, if any.

    Raise ValueError if the metric is unknown; the message lists the known values.
    """
    if given is None or isinstance(given, Metric | LinearMap):
        return given
    if isinstance(given, str):
        return metrics.make(given)
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        raise ValueError(
            f"metric must be None, the name of a metric ({', '.join(metrics.names())}), an object "
            "that learns one, a matrix of shape (d, k) or d numbers, one for each feature, not "
            f"{reprlib.repr(given)}"
        )
    return LinearMap.of(array.astype(np.float64))


def kernel_for(kernel: Kernel, rows: RowSource, rng: RandomStream, name: str = "X") -> Kernel:
    """Return the kernel for these rows, with numeric lengthscales; check its number of features."""
    check_features(kernel, rows, name)
    n = rows.shape[0]
    # With replacement, and repeats left out: numbers of all rows would take 8 n bytes.
    is_small = n <= MEDIAN_SAMPLE
    index = xp.arange(n) if is_small else xp.unique(rng.integers(n, size=(MEDIAN_SAMPLE,)))
    sample = rows.take(index)
    kernel.check_layout(sample)
    return kernel.resolve(dense(sample))


def check_features(kernel: Kernel, rows: RowSource, name: str = "X") -> None:
    """Raise ValueError if a kernel requires another number of features."""
    if kernel.dim not in (None, rows.shape[1]):
        has_list = isinstance(getattr(kernel, "lengthscale", None), tuple)
        says = f"has {kernel.dim} lengthscales" if has_list else f"takes {kernel.dim} features"
        subject = Text("{X}") if name == "X" else name
        raise TextError("the kernel {}, but {} has {} features", says, subject, rows.shape[1])


def engine_for(settings: FitSettings, rows: RowSource, resolved: Kernel | None = None) -> Engine:
    """Return the engine that computes with these rows; `resolved` is the kernel, if it is known."""
    if resolved is None:
        resolved = kernel(settings.kernel, settings.first_lengthscale)
    engine, dtype, sparse = settings.engine, rows.dtype, rows.sparse
    # The engine is chosen where the rows are: workers may have other devices than this machine.
    return rows.call_at_rows(
        partial(choose_engine, engine, dtype=dtype, kernel=resolved, sparse=sparse)
    )


def newton(given: SolverLike) -> Newton:
    """Return the solver for a loss other than the square; `FitSettings` has checked it."""
    return given if isinstance(given, Newton) else Newton()


def loss(given: LossLike) -> Loss:
    """Return the loss that a parameter names; `FitSettings` has checked it."""
    return given if isinstance(given, Loss) else losses.make(given)
