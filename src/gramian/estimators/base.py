"""Functions that all estimators share: parameter names, kinds of kernels, and restored fits."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array
from .._registries.synonyms import meant_by
from ..fitting.inputs.kernel_matrix import PRECOMPUTED_NAME as PRECOMPUTED
from ..kernels import Kernel
from .types import RowsLike, Values


def is_matrix(kernel: object) -> bool:
    """Return whether the estimator expects the kernel matrix as X, instead of rows."""
    return isinstance(kernel, str) and kernel == PRECOMPUTED


def is_function(kernel: object) -> TypeGuard[Callable[[Any, Any], float]]:
    """Return whether the kernel is a function of two objects, and X a list of objects."""
    # Classes are callable, too: `Gaussian` in place of `Gaussian()` is a mistake, not a function.
    return callable(kernel) and not isinstance(kernel, Kernel | type)


def has_features(kernel: object) -> bool:
    """Return whether X has rows of features, unlike a kernel matrix or a list of objects."""
    return not (is_matrix(kernel) or is_function(kernel))


def describe_kernel(kernel: object) -> str:
    """Return the name of a kernel without features, for messages."""
    return "a kernel of objects" if is_function(kernel) else f"kernel={kernel!r}"


def check_names(
    estimator: type[BaseEstimator], names: Iterable[str], error: type[Exception]
) -> None:
    """Raise an error for a parameter of another library, and name the parameter of gramian."""
    parameters = _parameters_of(cast("Hashable", estimator))
    for name in names:
        if name not in parameters and (hint := meant_by(name, parameters)):
            raise error(f"{estimator.__name__} has no parameter {name!r}{hint}")


@functools.cache
def _parameters_of(estimator: type[Any]) -> list[str]:
    # scikit-learn reads the signature again at each call, a twentieth of a fit of a hundred rows.
    return estimator._get_param_names()


def set_parameters(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    """Set parameters of an estimator, and of its kernels as in ``kernel__lengthscale``.

    Kernels are immutable, so the estimator receives a new kernel.

    Raise ValueError if the parameter does not exist; the message lists the parameters of the
    estimator.
    """
    inner: dict[str, dict[str, Any]] = {}
    own = {}
    for name, value in params.items():
        part, _, key = name.partition("__")
        # ``kernel=`` and ``kernel__lengthscale=`` may come in one call: the inner value then
        # belongs to the new kernel.
        current = params.get(part, getattr(estimator, part, None))
        if key and isinstance(current, Kernel):
            inner.setdefault(part, {})[key] = value
        elif key and part.startswith("kernel") and isinstance(current, str):
            raise ValueError(
                f"{name} requires a kernel object, but {part} is the name {current!r}; give "
                f"{part}=gramian.kernels.make({current!r}), or set the parameter of the estimator "
                "itself"
            )
        else:
            own[name] = value
    # Before scikit-learn's check, whose error could not suggest our name for the parameter.
    check_names(type(estimator), own, ValueError)
    BaseEstimator.set_params(estimator, **own)
    # Last, when `own` has replaced the kernels whose parameters change.
    for part, values in inner.items():
        setattr(estimator, part, getattr(estimator, part).set_params(**values))


@contextlib.contextmanager
def restore_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Context that restores all attributes of the last fit if a new fit fails."""
    # A shallow copy is enough: a fit sets attributes to new objects.
    before = dict(vars(estimator))
    try:
        yield
    # Ctrl-C as well: a fit that ends halfway would leave attributes of two different fits.
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def squeeze_coef(coef: Array) -> np.ndarray:
    """Return coefficients as an array of shape (m,) for one target, else (m, t)."""
    return coef[:, 0] if coef.shape[1] == 1 else coef


Item = TypeVar("Item")


def one_or_all(values: Iterable[Item]) -> Item | tuple[Item, ...]:
    """Return the only value of a single model, or the tuple of values of an average."""
    items = tuple(values)
    return items[0] if len(items) == 1 else items


def lazily(estimator: BaseEstimator, method: str, X: RowsLike) -> Values:
    """Return the lazy result of a method for a dask collection, as a dask array."""
    from ..data.dask import collections  # which imports dask

    check_is_fitted(estimator)
    copied = copy.copy(estimator)
    # `copy.copy` leaves out the training rows, see `__getstate__`. The state of the solver and the
    # histories would also travel with each task.
    for name in ("_fitted", "history_", "path_"):
        vars(copied).pop(name, None)
    # Callbacks act only in fits, and may hold files or locks, which do not pickle.
    if hasattr(copied, "callbacks"):
        copied.callbacks = ()
    return collections.lazily(copied, method, X)
