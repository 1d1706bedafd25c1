"""Parameters of a fit, which are checked when they are set."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np

from ..._files.atomic import check_output
from ..._messages.checks import as_bytes, as_count, as_positive, is_integer, is_real
from ..._messages.errors import SETTING_FORM, ParameterError
from ..._parameters.fit_parameters import TUNING_CRITERIA, FitParameters
from ..._parameters.types import *  # `get_type_hints` looks for types of inherited fields here
from ...callbacks.progress import check_verbose
from ...kernels import Kernel
from ...landmarks import PathSelector
from ...landmarks.base import selectors
from .checks import (
    check_callbacks,
    check_cells,
    check_flag,
    check_loss,
    check_path,
    check_tolerance,
    is_auto,
    is_pairs,
    is_splitter,
    is_squared,
)


@dataclass(eq=False)
class FitSettings(FitParameters):
    """Checked parameters of a fit; `with_values` makes changed copies.

    A `Validate` among the callbacks must hold codes of classes (see `class_codes`), or targets in
    the scale of the training data. Names of kernels, landmarks, solvers and engines are looked up
    later, for given rows.

    Raise ValueError if a number, ``memory_limit`` or ``cv`` cannot be used, or a path of penalties
    (``penalty="auto"`` with `BlessR` or `Bless`) is combined with a solver or a warm start that
    does not support it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field once; a frozen dataclass cannot inherit fields of estimators."""
        if name in self.__dict__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        as_count(self.max_iter, "max_iter")
        check_tolerance(self.tol)
        if not (self.uses_quantiles or self.chooses_inputs):
            check_flag("standardize", self.standardize, "True, False, 'quantile' or 'auto'")
        if self.standardize_target is not None:
            check_flag("standardize_target", self.standardize_target)
        check_callbacks(self.callbacks)
        check_verbose(self.verbose)
        # A path that cannot be written should fail before the fit, not after it.
        if self.centers_file is not None:
            check_output(self.centers_file)
        if self.memory_limit is not None:
            as_bytes(self.memory_limit)
        self._check_stopping()
        if is_auto(self.penalty) or self.chooses:
            self._check_folds()
        if self.searches_penalty:
            check_path(self)
        if self.cells is not None:
            check_cells(self)
        check_loss(self, searches_penalty=self.searches_penalty)
        self._check_penalty()

    def with_values(self, **values: Any) -> FitSettings:
        """Return settings with values that the fit itself has found, without another check."""
        settings = object.__new__(type(self))
        vars(settings).update(vars(self), **values)
        return settings

    def _check_penalty(self) -> None:
        penalty: Any = self.penalty
        if isinstance(penalty, Sequence | np.ndarray) and not isinstance(penalty, str | bytes):
            self._check_penalties()
        elif not is_auto(penalty) and not (is_real(penalty) and 0 <= float(penalty) < math.inf):
            remedy = "it is the ridge per sample, scikit-learn's alpha / n, or 'auto'"
            raise ParameterError("penalty", penalty, "finite and at least 0", remedy)

    def _check_penalties(self) -> None:
        """Store penalties of targets as a tuple; raise ValueError for invalid penalties."""
        penalty: Any = self.penalty
        values = np.asarray(penalty)
        numbers_alone = values.dtype.kind in "iuf" and values.ndim == 1 and len(values) > 0
        if not (numbers_alone and bool((values > 0).all() and np.isfinite(values).all())):
            raise ParameterError("penalty", penalty, "a positive number for each target")
        for name, unused in (("cells", self.cells is None), ("loss", not self.is_nonlinear)):
            if not unused:
                problem = f"has one penalty for all targets, not {len(values)}"
                raise ParameterError(
                    name, getattr(self, name), problem, "give one number", SETTING_FORM
                )
        # Past the own `__setattr__`, which sets each field once.
        object.__setattr__(self, "penalty", tuple(values.astype(float).tolist()))

    @property
    def penalties(self) -> tuple[float, ...] | None:
        """The penalty of each target; None if all targets share one penalty."""
        return self.penalty if isinstance(self.penalty, tuple) else None

    @property
    def one_penalty(self) -> float:
        """The penalty; the geometric mean if targets have their own penalties."""
        if is_real(self.penalty):
            return float(self.penalty)
        if self.penalties is None:
            raise ValueError(f"the penalty is not chosen yet: {self.penalty!r}")
        return math.exp(sum(map(math.log, self.penalties)) / len(self.penalties))

    def deadline(self) -> float:
        """Return the time of `time.monotonic` at which a fit that starts now must end."""
        return math.inf if self.time_limit is None else time.monotonic() + self.time_limit

    def _check_stopping(self) -> None:
        check_flag("early_stopping", self.early_stopping)
        share = self.validation_fraction
        if not (is_real(share) and 0 < share < 1):
            raise ParameterError("validation_fraction", share, "between 0 and 1")
        as_count(self.patience, "patience")
        if self.time_limit is not None:
            as_positive(self.time_limit, "time_limit")

    def _check_folds(self) -> None:
        """Raise ValueError if ``cv`` does not determine the held-out rows."""
        # An iterator can be read only once, and the folds are needed several times.
        if isinstance(self.cv, Iterator):
            object.__setattr__(self, "cv", tuple(self.cv))
        if not (self.cv is None or self.names_folds or (is_integer(self.cv) and self.cv >= 2)):
            raise ParameterError(
                "cv",
                self.cv,
                "None, a number of folds of at least 2, a splitter such as KFold(5), or a list of "
                "pairs (training rows, test rows)",
            )

    @property
    def is_nonlinear(self) -> bool:
        """Whether the loss is another than the square."""
        return not is_squared(self.loss)

    @property
    def searches_penalty(self) -> bool:
        """Whether the penalty is chosen along the path of `BlessR` or `Bless`."""
        landmarks = self.landmarks
        # Of a name, the class is looked up without making a selector, which may need arguments.
        kind = (
            selectors[landmarks]
            if isinstance(landmarks, str) and landmarks in selectors
            else type(landmarks)
        )
        return is_auto(self.penalty) and issubclass(kind, PathSelector)

    @property
    def chooses_kernel(self) -> bool:
        """Whether kernels are compared before the fit."""
        return is_auto(self.kernel)

    @property
    def chooses_lengthscale(self) -> bool:
        """Whether lengthscales are compared before the fit."""
        return is_auto(self.lengthscale) and not isinstance(self.kernel, Kernel)

    @property
    def tunes(self) -> bool:
        """Whether all hyper-parameters of the kernel are tuned by a criterion."""
        return isinstance(self.lengthscale, str) and self.lengthscale in TUNING_CRITERIA

    @property
    def first_lengthscale(self) -> Lengthscale:
        """The lengthscale before it is tuned or chosen."""
        return "median" if self.tunes else self.lengthscale

    @property
    def chooses_penalty(self) -> bool:
        """Whether penalties are compared before the fit, rather than along a path."""
        return is_auto(self.penalty) and not self.searches_penalty

    @property
    def chooses_inputs(self) -> bool:
        """Whether kernels are compared on standardised and on quantile-mapped features."""
        return is_auto(self.standardize)

    @property
    def chooses(self) -> bool:
        """Whether kernel, lengthscale or penalty are chosen before the fit."""
        choices = (self.chooses_kernel, self.chooses_lengthscale, self.chooses_penalty)
        return any(choices) or self.tunes

    def with_plain_inputs(self) -> FitSettings:
        """Return settings that map features to quantiles only for ``standardize="quantile"``."""
        return self.with_values(standardize=True) if self.chooses_inputs else self

    @property
    def names_folds(self) -> bool:
        """Whether ``cv`` is a splitter or pairs, which determine the rows of each fold."""
        return is_splitter(self.cv) or is_pairs(self.cv)

    @property
    def scales_targets(self) -> bool:
        """Whether numeric targets are standardised, which by default is so if features are."""
        standardize_target = self.standardize_target
        return bool(self.standardize if standardize_target is None else standardize_target)

    @property
    def uses_quantiles(self) -> bool:
        """Whether a quantile map follows the standardisation of features."""
        return isinstance(self.standardize, str) and self.standardize == "quantile"

    def with_less_memory(self, taken_bytes: int) -> FitSettings:
        """Return settings whose memory limit, if any, is reduced by bytes in use."""
        if self.limit is None:
            return self
        # A limit of 0 would be refused as a size; 1 leads to the error that names the bytes needed.
        return self.with_values(memory_limit=max(1, self.limit - taken_bytes))

    @property
    def limit(self) -> int | None:
        """``memory_limit`` in bytes; None for the memory of the machine."""
        return None if self.memory_limit is None else as_bytes(self.memory_limit)
