"""Which experiment to make next: two scores of candidates, from predictions with deviations."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ._messages.checks import as_positive
from ._messages.errors import ParameterError

__all__ = ["expected_improvement", "upper_confidence_bound"]


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: float) -> np.ndarray:
    r"""Return by how much each candidate is expected to exceed the best value so far.

    For a normal value y with mean :math:`\mu` and deviation :math:`\sigma` it is :math:`E \max(y -
    b, 0) = \sigma (z \Phi(z) + \varphi(z))` with :math:`z = (\mu - b) / \sigma` [1]_. Larger
    targets are better: to minimise, fit the process to negative targets.

    Parameters
    ----------
    mean : array-like of shape (n,)
        Predictions of the candidates.
    std : array-like of shape (n,)
        Their standard deviations, without noise: ``predict(X, return_std=True,
        include_noise=False)`` of `GaussianProcess`.
    best : float
        The largest value so far: of noisy measurements the largest prediction at their places.

    Returns
    -------
    ndarray of shape (n,)
        At least 0, in units of the target.

    Raises
    ------
    ValueError
        If shapes differ, or a number is not finite, or a deviation is negative.

    References
    ----------
    .. [1] Jones, Schonlau & Welch, *Efficient global optimization of expensive black-box
       functions*, J. Global Optim. 13, 1998, equation (15).

    Examples
    --------
    >>> from gramian.experiments import expected_improvement
    >>> expected_improvement([1.0, 0.5], [0.0, 1.0], best=0.8).round(2)
    array([0.2 , 0.27])
    """
    from scipy.special import ndtr  # a tenth of a second, for those who need it

    mean, std = _as_arrays(mean, std)
    if not math.isfinite(best):
        raise ParameterError("best", best, "finite")
    gain = mean - best
    z = np.divide(gain, std, out=np.zeros_like(gain), where=std > 0)
    expected = gain * ndtr(z) + std * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    # Without a deviation the gain is certain; far below the best, rounding may be negative.
    return np.where(std > 0, expected, gain).clip(min=0.0)


def upper_confidence_bound(mean: ArrayLike, std: ArrayLike, width: float = 2.0) -> np.ndarray:
    """Return mean + width std of each candidate, a value that it may well reach.

    Parameters
    ----------
    mean, std : as in `expected_improvement`
    width : float, default=2.0
        Number of deviations, positive: the larger, the more candidates far from all rows count.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        As in `expected_improvement`; if ``width`` is not positive.

    References
    ----------
    .. [1] Srinivas, Krause, Kakade & Seeger, *Gaussian process optimization in the bandit setting*,
       ICML 2010.

    Examples
    --------
    >>> from gramian.experiments import upper_confidence_bound
    >>> upper_confidence_bound([1.0, 0.5], [0.0, 1.0])
    array([1. , 2.5])
    """
    mean, std = _as_arrays(mean, std)
    return mean + as_positive(width, "width") * std


def _as_arrays(mean: ArrayLike, std: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations in float64; raise ValueError if they cannot be."""
    mean, std = (np.asarray(values, dtype=np.float64) for values in (mean, std))
    if mean.shape != std.shape:
        raise ParameterError("std", f"of shape {std.shape}", f"of the shape of mean, {mean.shape}")
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()):
        raise ValueError("mean and std must be finite, and std at least 0")
    return mean, std
