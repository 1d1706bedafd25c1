"""Covariances and random functions of a Gaussian process, from the factors of its model."""

from __future__ import annotations

import math

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, RandomStream
from ..._messages.checks import readable_bytes
from ..._sparse import dense
from ...approximations import FourierMap
from ...data import RowSource
from ...kernels import with_hyperparameters
from ...kernels._hyperparameters import contract_gradients
from ...model import KernelModel, KernelPart
from ...model.uncertainty.factors import LandmarkFactors, RowFactors
from ...operators import KernelOperator
from ..choice.tuning import Criterion
from ..inputs.training_data import TrainingData

EXACT_ROWS = 1_000
"""Rows up to which random functions are drawn from their covariance, for any kernel."""

PATH_FEATURES = 4_000
"""Random Fourier features of a function of the prior."""


def posterior_covariance(
    part: KernelPart, rows: RowSource, memory_bytes: int
) -> Float[Array, "b b"]:
    r"""Return the covariance of the function at rows, in units of the kernel.

    :math:`k(x, z) - k(x)^\top (K + N \lambda W^{-1})^{-1} k(z)`, or its counterpart with landmarks;
    its diagonal is v, see `gramian.model.uncertainty.factors`.

    Raise ValueError if the matrix exceeds the memory.

    Cost: b m + b² kernel evaluations, 2 b m² + b² m operations, 16 b² bytes.
    """
    needed = 16 * len(rows) ** 2
    if needed > memory_bytes:
        raise ValueError(
            f"the covariance of {len(rows):,} rows requires {readable_bytes(needed)}, but the "
            f"memory limit is {readable_bytes(memory_bytes)}; ask for fewer rows, or return_std"
        )
    mapped = part.prepare_rows(rows)
    covariance = KernelOperator(part.kernel, mapped, mapped).double().dense()
    K = KernelOperator(part.kernel, mapped, part.centers).double().dense()
    factors = _factors(part)
    if isinstance(factors, RowFactors):
        la.times_triangle_(K, factors.inverse_factor(_matrix(part)))
        return covariance - K @ K.T
    f = factors.features(K)
    g = xp.solve_triangular(factors.R, f, upper=True, left=False)
    return covariance - f @ f.T + factors.shift * (g @ g.T)


def draw_functions(
    part: KernelPart, rows: RowSource, count: int, rng: RandomStream, memory_bytes: int
) -> Float[Array, "b k"]:
    r"""Draw functions of the posterior, minus its mean, at rows, in units of the kernel.

    Up to 1,000 rows they are drawn from `posterior_covariance`. Beyond, by pathwise conditioning
    [1]_: a random function of the prior, from 4,000 Fourier features, corrected by its own kernel
    ridge regression. The same generator then draws the same functions for any rows.

    - `part`: a model with its variance.
    - `count`: number k of functions.

    Raise ValueError if there are more rows, and the kernel has no Fourier features.

    Notes
    -----
    Cost: b³ operations up to 1,000 rows; beyond, b m kernel evaluations, and 4,000 (b + m) (d + k)
    and 2 m² k operations. With Fourier features, standard deviations of draws were off by up to
    12 % with all rows as centers, and by up to 26 % with landmarks, where deviations are small.

    References
    ----------
    .. [1] Wilson, Borovitskiy, Terenin, Mostowsky & Deisenroth, *Efficiently sampling functions
       from Gaussian process posteriors*, ICML 2020.
    """
    if len(rows) <= EXACT_ROWS:
        values, vectors = la.eigenpairs(posterior_covariance(part, rows, memory_bytes))
        roots = xp.sqrt(values.clip(min=0.0))
        return vectors @ (roots[:, None] * rng.standard_normal((len(roots), count), xp.float64))
    try:
        features = FourierMap.build(part.kernel, part.centers.width, PATH_FEATURES, rng=rng)
    except ValueError as error:
        raise ValueError(
            f"more than {EXACT_ROWS:,} rows need a kernel with random Fourier features: {error}; "
            "draw at fewer rows"
        ) from error
    waves = rng.standard_normal((PATH_FEATURES, count), xp.float64)
    prior = features.features(part.centers) @ waves
    coef = xp.zeros((len(part.centers), count), xp.float64)
    factors = _factors(part)
    if isinstance(factors, RowFactors):
        # The data of the random function have noise, too.
        noise = xp.sqrt(factors.ridge)[:, None] * rng.standard_normal(prior.shape, xp.float64)
        C = factors.inverse_factor(_matrix(part))
        coef = -(C @ (C.T @ (prior + noise)))
    else:
        # In the basis of the landmarks the coefficients have a posterior; outside, the prior stays.
        T, R, index = factors.T, factors.R, factors.index
        normal = rng.standard_normal((len(index), count), xp.float64)
        spread = xp.solve_triangular(R, normal, upper=True) * factors.shift**0.5
        inside = xp.solve_triangular(T.T, prior[index], upper=False)
        coef[index] = xp.solve_triangular(T, spread - inside, upper=True)
    mapped = part.prepare_rows(rows)
    correction = KernelOperator(part.kernel, mapped, part.centers).double() @ coef
    return features.features(mapped) @ waves + correction


def log_likelihood(
    part: KernelModel, data: TrainingData, theta: Float[Array, " p"], *, with_gradient: bool
) -> float | tuple[float, Float[Array, " p"]]:
    """Return the logarithm of the marginal likelihood of the scaled targets of a fit.

    - `data`: data of the fit; all of its rows count.
    - `theta`: logarithms of the hyper-parameters of the kernel, and of the noise variance last.
    - `with_gradient`: whether to also return the gradient.
    """
    data = data.without_zero_weights().with_local_numbers()
    rows = part.prepare_rows(data.rows)
    X = xp.to_host(xp.to_float64(dense(rows.take(xp.arange(len(rows))))))
    Y = xp.to_host(xp.to_float64(data.targets))
    Y = Y if part.target_shift is None else (Y - part.target_shift) / part.target_scale
    weights = None if data.weights is None else xp.to_host(xp.to_float64(data.weights))
    criterion = Criterion("likelihood", X, Y, weights)
    *numbers, noise = xp.exp(theta).tolist()
    kernel = with_hyperparameters(part.kernel, numbers)
    try:
        value, G = criterion(kernel, noise)
    except la.NotPositiveDefinite:
        return (-math.inf, xp.zeros_like(theta)) if with_gradient else -math.inf
    if not with_gradient:
        return -value
    gradient = [*contract_gradients(kernel, X, G), criterion.noise_gradient(G, noise)]
    return -value, -xp.array(gradient, dtype=xp.float64)


def _factors(part: KernelPart) -> RowFactors | LandmarkFactors:
    if part.variance is None:
        raise ValueError("the model has no standard deviations, which its functions are drawn from")
    return part.variance.factors


def _matrix(part: KernelPart) -> KernelOperator:
    return KernelOperator(part.kernel, part.centers, part.centers)
