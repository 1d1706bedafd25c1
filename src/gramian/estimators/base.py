"""RowsEstimator: the base of all estimators: parameters, kernel and memory limit."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from .._checks import as_bytes
from .._parameters import KernelLike, Lengthscale, MemoryLimit
from .._synonyms import meant_by
from ..data import RowSource
from ..fitting import resolve
from ..fitting.precomputed import NAME as PRECOMPUTED
from ..kernels import Kernel


class RowsEstimator(BaseEstimator):
    """An estimator of rows from anywhere, with a kernel and a memory limit."""

    kernel: KernelLike
    lengthscale: Lengthscale
    memory_limit: MemoryLimit

    def __new__(cls: type[Estimator], *_args: Any, **given: Any) -> Estimator:
        """Refuse parameters that there are not, before `__init__` does, with the name of ours."""
        _check_names(cls, given, TypeError)
        made: Estimator = super().__new__(cls)
        return made

    def __sklearn_tags__(self) -> Any:
        """Say that sparse rows are accepted, and of a matrix that rows and columns go together."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_matrix
        tags.input_tags.pairwise = self._is_matrix
        return tags

    def __dir__(self) -> list[str]:
        """Return the names that there are, of properties without asking for their values.

        scikit-learn asks for each, and completion in a notebook would then factorise the matrix of
        all rows, for `log_marginal_likelihood_`.
        """
        return [
            name
            for name in object.__dir__(self)
            if isinstance(inspect.getattr_static(self, name, None), property) or hasattr(self, name)
        ]

    @property
    def _is_matrix(self) -> bool:
        """Whether X is the matrix of the kernel, and no rows."""
        kernel = getattr(self, "kernel", None)
        return isinstance(kernel, str) and kernel == PRECOMPUTED

    @property
    def _is_function(self) -> bool:
        """Whether the kernel is a function of two objects, and X a list of these."""
        kernel = getattr(self, "kernel", None)
        return callable(kernel) and not isinstance(kernel, Kernel | type)

    @property
    def _has_features(self) -> bool:
        """Whether X has rows of features."""
        return not (self._is_matrix or self._is_function)

    @property
    def _kernel_said(self) -> str:
        return "a kernel of objects" if self._is_function else f"kernel={self.kernel!r}"

    def set_params(self: Estimator, **params: Any) -> Estimator:
        """Set parameters, those of kernel objects as in ``kernel__lengthscale``, too.

        A kernel is a value: the estimator gets another one. See scikit-learn.

        Raises
        ------
        ValueError
            If there is no such parameter; the message names those that there are.
        """
        inner: dict[str, dict[str, Any]] = {}
        rest = {}
        for name, value in params.items():
            part, _, key = name.partition("__")
            given = params.get(part, getattr(self, part, None))
            if key and isinstance(given, Kernel):
                inner.setdefault(part, {})[key] = value
            elif key and part.startswith("kernel") and isinstance(given, str):
                raise ValueError(
                    f"{name} needs a kernel object, and {part} is the name {given!r}; give "
                    f"{part}=gramian.kernels.make({given!r}), or change the parameters of the "
                    "estimator"
                )
            else:
                rest[name] = value
        _check_names(type(self), rest, ValueError)
        super().set_params(**rest)
        for part, values in inner.items():
            setattr(self, part, getattr(self, part).set_params(**values))
        return self

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Keep everything about the last fit, number and names of features too, if this fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _resolved_kernel(self, rows: RowSource, rng: torch.Generator) -> Kernel:
        return resolve.kernel_for(resolve.kernel(self.kernel, self.lengthscale), rows, rng)

    def _limit(self) -> int | None:
        return None if self.memory_limit is None else as_bytes(self.memory_limit)


Estimator = TypeVar("Estimator", bound=RowsEstimator)


def _check_names(cls: type[RowsEstimator], given: Iterable[str], kind: type[Exception]) -> None:
    """Raise an error if an estimator lacks a parameter of which we know what is meant."""
    known = cls._get_param_names()
    for name in given:
        if name not in known and (meant := meant_by(name, known)):
            raise kind(f"{cls.__name__} has no parameter {name!r}{meant}")


def as_numpy(index: Tensor | None) -> np.ndarray | None:
    """Return row numbers as an array."""
    return None if index is None else index.numpy()


def squeezed(coef: Tensor) -> np.ndarray:
    """Return coefficients as an array, (m,) for one target."""
    array = coef.numpy()
    return array[:, 0] if array.shape[1] == 1 else array
