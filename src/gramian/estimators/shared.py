"""RowsEstimator: what every estimator does with rows, the kernel's name and the memory limit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from .._checks import as_bytes
from ..data import Cast, RowSource, as_rows, check_finite, gathered, stored
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..operators import KernelOperator
from . import choices

MEDIAN_SAMPLE = 1000
"""Rows from which the median heuristic is computed."""


Estimator = TypeVar("Estimator", bound="RowsEstimator")


class RowsEstimator(BaseEstimator):
    """An estimator of rows from anywhere, with a kernel and a memory limit."""

    kernel: Any
    lengthscale: Any
    memory_limit: Any

    def __sklearn_tags__(self) -> Any:
        """Say that sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
        return resolved(choices.kernel(self.kernel, self.lengthscale), rows, rng)

    def _limit(self) -> int | None:
        return None if self.memory_limit is None else as_bytes(self.memory_limit)


def resolved(kernel: Kernel, rows: RowSource, rng: torch.Generator, name: str = "X") -> Kernel:
    """Return the kernel for these rows: with as many features, and with its median computed."""
    if kernel.dim not in (None, rows.shape[1]):
        raise ValueError(
            f"the kernel has {kernel.dim} lengthscales, but {name} has {rows.shape[1]} features"
        )
    n = rows.shape[0]
    index = torch.randint(n, (MEDIAN_SAMPLE,), generator=rng).unique()
    if n <= MEDIAN_SAMPLE:
        index = torch.arange(n)
    sample = rows.take(index)
    return kernel.resolve(sample.to_dense() if rows.sparse else sample)


def given_points(points: RowSource, K: KernelOperator) -> Landmarks:
    """Return points that the user has chosen as landmarks: mapped, if they exceed the budget."""
    if points.shape[1] != K.rows.shape[1]:
        raise ValueError(
            f"the landmarks have {points.shape[1]} features, but X has {K.rows.shape[1]}"
        )
    check_finite(points, "landmarks")
    alike = points if points.dtype == K.dtype else Cast(points, K.dtype)
    m = len(points)
    taken = gathered(alike, torch.arange(m), K.host_bytes)
    return Landmarks(taken, torch.ones(m, dtype=torch.float64))


def kept_in_file(chosen: Landmarks | None, path: Any) -> Landmarks | None:
    """Return landmarks mapped from the file that they were asked to be kept in, if any."""
    if path is None:
        return chosen
    if chosen is None:
        raise ValueError(
            f"centers_file={str(path)!r} keeps landmarks, and landmarks=None has all rows as "
            "centers; give landmarks, or leave centers_file out"
        )
    return replace(chosen, points=stored(as_rows(chosen.points.cpu()), path))


def host_centers(chosen: Landmarks | None, rows: RowSource) -> Any:
    """Return the centers of a model: landmarks, or all rows as they were given."""
    return rows if chosen is None else chosen.points.cpu()


def as_numpy(index: Tensor | None) -> np.ndarray | None:
    """Return row numbers as an array."""
    return None if index is None else index.numpy()


def squeezed(coef: Tensor) -> np.ndarray:
    """Return coefficients as an array, (m,) for one target."""
    array = coef.numpy()
    return array[:, 0] if array.shape[1] == 1 else array
