"""The regressor `GaussianProcess`: kernel ridge regression with the likelihood as its criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, cast, overload

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import fitting
from ..._messages.checks import as_count
from ..._messages.errors import ParameterError, Text
from ..._parameters.types import (
    EngineLike,
    Flag,
    KernelLike,
    LandmarksLike,
    MemoryLimit,
    OptionalFlag,
    RandomState,
)
from ...data import Standardizer, as_rows
from ...fitting import FitSettings, Generators, TrainingData
from ...kernels import hyperparameters
from ...model import KernelModel
from .. import validation
from ..base import restore_on_error
from ..types import Columns, Deviations, Read, RowsLike, TargetsLike, Weights
from .fit import fit_model, warn_of
from .regressor import KernelRidge
from .regressor_methods import KernelRegressor

ALL_ROWS = 10_000
"""Rows up to which ``landmarks="auto"`` takes all rows as centers."""


@dataclass(eq=False, repr=False)
class GaussianProcess(KernelRegressor):
    r"""Gaussian process regression, with hyper-parameters that maximise the marginal likelihood.

    The mean is a kernel ridge regression whose penalty is the noise variance over the number of
    rows, by the same solvers: all rows as centers, or landmarks. Unlike in `KernelRidge`, the
    standard deviations follow from the kernel's amplitude and the noise alone.

    Parameters
    ----------
    kernel : str or Kernel, default="matern52"
        A name of `gramian.kernels.names`, or an object such as ``Haversine(300.0).on([0, 1]) +
        Matern32(1.0).on([2])``, whose numbers are the start. Each term of a sum gets a factor, its
        variance, if it has none. ``"auto"``: the likeliest of four kernels.
    noise : float, ndarray of shape (n,), or "auto", default="auto"
        Noise variance, in units of the target squared: one for all rows, or one for each row of
        the fit. ``"auto"``: the likeliest one.
    tune : bool, default=True
        Whether hyper-parameters are tuned. False: the kernel and a number as noise stay, as with
        scikit-learn's ``optimizer=None``.
    landmarks : as in `KernelRidge`, default="auto"
        ``"auto"``: all rows up to 10,000, beyond ``sqrt(n) log(n)`` landmarks.
    standardize : bool, default=True
        Whether to scale features to mean 0 and standard deviation 1, except features that the
        kernel takes as given: lengthscales are in these units.
    standardize_target : bool or None, default=None
        As scikit-learn's ``normalize_y``; None: as the features. Factors of the kernel are then in
        units of the target's variance.
    engine, memory_limit : as in `KernelRidge`
    random_state : int, RandomState or None, default=None
        For the sample that tunes, the median heuristic, and random landmarks.

    Attributes
    ----------
    kernel_ : Kernel
        The tuned kernel; `gramian.kernels.hyperparameters` lists its numbers.
    noise_ : float, or ndarray of shape (t,)
        Noise variance of a row of weight one, in units of the target squared.
    theta_ : ndarray of shape (p + 1,)
        Logarithms of the hyper-parameters, and of the noise variance in units of the scaled target.
    log_marginal_likelihood_ : float
        Of the scaled targets, summed over targets; needs all rows as centers.
    model_, penalty_, solver_, landmark_index_, loo_predictions_ : as in `KernelRidge`

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : The same for up to some thousand rows;
        docs/coming_from.md translates its words.
    KernelRidge : Deviations that are calibrated by leave-one-out residuals; any penalty.

    Notes
    -----
    Hyper-parameters: all rows up to 2,000, else a random sample of 2,000, by 20 to 60
    evaluations of n³ operations and 24 n² bytes. The mean: see `KernelRidge`. Deviations: n³
    operations and 8 n² bytes at the first call, with m landmarks about 5 n m² and 40 m² bytes.

    The mean of the process is the mean of the targets, or 0 without ``standardize_target``. Several
    targets share kernel and noise, in their own units.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianProcess
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (100, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(100)
    >>> process = GaussianProcess("gaussian", random_state=0).fit(X, y)
    >>> mean, std = process.predict([[0.0], [9.0]], return_std=True)
    >>> print(std.round(1), f"noise {process.noise_**0.5:.2f}")
    [0.1 1.1] noise 0.10
    """

    kernel: KernelLike = "matern52"
    _: KW_ONLY
    noise: Any = "auto"
    tune: Flag = True
    landmarks: LandmarksLike = "auto"
    standardize: Flag = True
    standardize_target: OptionalFlag = None
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    random_state: RandomState = None

    metric = conformal = conformal_groups = None
    _calibrates_deviations = False

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
        drop_missing_target: bool = False,
        read: Read = None,
    ) -> GaussianProcess:
        """Fit the process to rows and targets.

        Parameters
        ----------
        X, y, columns, drop_missing_target, read : as in `KernelRidge.fit`
        sample_weight : str or array-like of shape (n,), optional
            Weights w of the rows: the noise variance of a row is `noise` / w.

        Returns
        -------
        GaussianProcess
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            As in `KernelRidge.fit`; if ``noise`` is neither "auto" nor positive; if it is "auto",
            and ``tune=False``.

        Warns
        -----
        ConvergenceWarning
            If targets that do not vary are to tune the process: deviations then mean nothing.
        """
        settings, rng = self._settings(), Generators.from_random_state(self._state())
        noise, weights = self._row_noise(sample_weight)
        with restore_on_error(self):
            whole_rows = self._load_rows(
                X, y, weights, settings, rng, columns=columns, read=read,
                drop_missing_target=drop_missing_target,
            )  # fmt: skip
            divided = whole_rows.without(None)
            data, settings = divided.train, divided.settings
            if noise is not None:
                penalty = noise / (_target_variance(data, settings) * data.total)
                settings = settings.with_values(penalty=penalty)
            if self.landmarks == "auto" and len(data.rows) <= ALL_ROWS:
                settings = settings.with_values(landmarks=None)
            fit_model(self, fitting.WholeRows(data, settings), rng)
            level = self.penalty_ * data.total * self._scales**2
            self.noise_ = float(level[0]) if len(level) == 1 else level
            shift = float(self.penalty_ * data.total)
            self.theta_ = np.log([*hyperparameters(self._part.kernel).values(), shift])
            if self.tune:
                warn_of(ConvergenceWarning, _constant_warning(data))
        return self

    @overload
    def predict(
        self, X: RowsLike, return_std: Literal[False] = False, return_cov: Literal[False] = False
    ) -> np.ndarray: ...

    @overload
    def predict(
        self,
        X: RowsLike,
        return_std: Deviations = False,
        return_cov: bool = False,
        *,
        include_noise: bool = True,
    ) -> np.ndarray | tuple[np.ndarray, ...]: ...

    def predict(
        self,
        X: RowsLike,
        return_std: Deviations = False,
        return_cov: bool = False,
        *,
        include_noise: bool = True,
    ) -> Any:
        """Return the mean, with standard deviations or covariances on request.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool or "errors", default=False
            Whether to also return standard deviations. ``"errors"``: of new observations, by the
            size of leave-one-out errors nearby, as in `KernelRidge.predict`.
        return_cov : bool, default=False
            Whether to also return the covariance matrix of all rows: 16 n² bytes.
        include_noise : bool, default=True
            Whether deviations and covariances are of new observations, of weight one. False: of the
            function itself, as scikit-learn's with ``alpha``.

        Returns
        -------
        ndarray of shape (n,) or (n, t), or two of them
            The second one has the same shape, or (n, n) or (n, n, t) for covariances.

        Raises
        ------
        ValueError
            If both are requested, or exceed the memory; if ``"errors"`` are to have no noise.
        """
        if return_std and return_cov:
            raise ValueError("return_std=True and return_cov=True cannot be combined; give one")
        if validation.is_by_errors(return_std):
            if not include_noise:
                raise ValueError("deviations by errors include the noise; give return_std=True")
            return super().predict(X, return_std)
        mean = super().predict(X)
        if not (return_std or return_cov):
            return mean
        part = self._part_with_variance()
        if return_std:
            noise = part.variance.noise if include_noise else xp.zeros_like(part.variance.noise)
            model = replace(part, variance=replace(part.variance, noise=noise))
            rows = validation.new_rows(self, X)
            engine = self._engine_of_prediction(rows)
            std = model.deviations(rows, engine=engine, memory_bytes=self._memory_bytes())
            return mean, self._squeeze_target(std)
        rows = validation.new_rows(self, X)
        covariance = fitting.posterior_covariance(part, rows, self._memory_bytes())
        if include_noise:
            covariance = covariance + float(np.exp(self.theta_[-1])) * np.eye(len(covariance))
        of_targets = covariance[:, :, None] * self._scales**2
        return mean, of_targets[:, :, 0] if self._one_dimensional else of_targets

    def sample_y(
        self, X: RowsLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> np.ndarray:
        """Draw functions of the posterior, without noise.

        Up to 1,000 rows the draws have the exact covariance, for any kernel. Beyond, they are
        pathwise conditioned functions: the same ``random_state`` gives the same functions at any
        rows, for kernels of `RandomFourierFeatures`; see `gramian.fitting.uncertainty.posterior`.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
        random_state : int, RandomState or None, default=0

        Returns
        -------
        ndarray of shape (n, n_samples) or (n, t, n_samples)

        Raises
        ------
        ValueError
            If there are more than 1,000 rows, and the kernel has no Fourier features.
        """
        part, count = self._part_with_variance(), as_count(n_samples, "n_samples")
        rows, t = validation.new_rows(self, X), len(self._scales)
        (rng,) = validation.generators(random_state, 1)
        draws = fitting.draw_functions(part, rows, t * count, rng, self._memory_bytes())
        draws = draws.reshape(len(draws), t, count) * self._scales[:, None]
        values = self._predict(X)[:, :, None] + draws
        return values[:, 0] if self._one_dimensional else values

    def log_marginal_likelihood(
        self, theta: Sequence[float] | np.ndarray | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, np.ndarray]:
        """Return the logarithm of the marginal likelihood of the scaled training targets.

        Parameters
        ----------
        theta : array-like of shape (p + 1,), optional
            Logarithms as in `theta_`, which is the default.
        eval_gradient : bool, default=False
            Whether to also return the gradient with respect to theta.

        Returns
        -------
        float, or float and ndarray of shape (p + 1,)
            Summed over targets. Minus infinity, and zeros, where the matrix is singular to
            rounding.

        Notes
        -----
        Cost: n³ operations and 24 n² bytes, for all rows of the fit, also with landmarks.
        """
        check_is_fitted(self)
        values = np.asarray(self.theta_ if theta is None else theta, dtype=np.float64)
        if values.shape != self.theta_.shape:
            names = [*hyperparameters(self._part.kernel), "noise"]
            form = f"{len(self.theta_)} logarithms, one for each of {names}"
            raise ParameterError("theta", theta, form)
        data, _ = self._system("the marginal likelihood")
        return fitting.log_likelihood(self._part, data, values, with_gradient=eval_gradient)

    @property
    def _part(self) -> KernelModel:
        return cast("KernelModel", self.model_)

    @property
    def _scales(self) -> np.ndarray:
        part = self._part
        return np.ones(part.outputs) if part.target_scale is None else part.target_scale

    def _part_with_variance(self) -> Any:
        self._ensure_variance()
        return self._part

    def _row_noise(self, sample_weight: Weights) -> tuple[float | None, Any]:
        """Return the noise variance of weight one, None if it is tuned, and the weights of rows."""
        noise = self.noise
        form = "'auto', a positive number, or one for each row"
        if isinstance(noise, str):
            if noise != "auto":
                raise ParameterError("noise", noise, form)
            if not self.tune:
                raise ParameterError("noise", noise, "a number with tune=False", "give a number")
            return None, sample_weight
        of_rows = np.asarray(noise, dtype=np.float64)
        if of_rows.ndim > 1 or not (np.isfinite(of_rows).all() and (of_rows > 0).all()):
            raise ParameterError("noise", noise, form)
        mean = float(of_rows.mean())
        if of_rows.ndim == 0:
            return mean, sample_weight
        if isinstance(sample_weight, str):
            raise ParameterError("sample_weight", sample_weight, "an array where noise is one")
        weights = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return mean, weights * (mean / of_rows)

    def _settings(self) -> FitSettings:
        return KernelRidge(
            self.kernel,
            lengthscale="likelihood" if self.tune else "median",
            penalty="auto" if isinstance(self.noise, str) else 1.0,
            landmarks=self.landmarks,
            # True would refuse kernels that take all features as given.
            standardize="auto" if self.standardize is True else self.standardize,
            standardize_target=self.standardize_target,
            engine=self.engine,
            memory_limit=self.memory_limit,
        )._settings()


def _constant_warning(data: TrainingData) -> Text | None:
    """Return a warning about targets, each of one value, by which nothing can be tuned."""
    data = data.without_zero_weights().with_local_numbers()
    targets = as_rows(data.targets)
    if len(Standardizer.fit(targets, weights=data.weights).constant) < targets.shape[1]:
        return None
    n = len(data.rows)
    rows = "a single row" if n == 1 else f"{n:,} rows of one target value"
    return Text(
        f"the likelihood of {rows} has no maximum: amplitude and noise are as small as allowed, "
        "and deviations mean nothing; fit targets that vary, or give both, as in "
        "GaussianProcess(2.0 * Matern52(1.0), noise=0.1, tune=False)"
    )


def _target_variance(data: TrainingData, settings: FitSettings) -> float:
    """Return the variance of the targets by which the fit divides their noise; 1 if unscaled."""
    if not settings.scales_targets:
        return 1.0
    data = data.with_local_numbers()
    scale = Standardizer.fit(as_rows(data.targets), weights=data.weights).scale
    if len(scale) > 1:
        raise ValueError(
            "a number as noise has the units of one target; give noise='auto', or "
            "standardize_target=False, for several targets"
        )
    return float(scale[0]) ** 2
