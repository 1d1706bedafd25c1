"""Extreme eigenvalues and the effective dimension of a matrix, by the Lanczos method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg.lapack

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .dense import FLOAT64_EPS


def extremes_of_lanczos(alpha: Float[Array, " k"], beta: Float[Array, " k"]) -> tuple[float, float]:
    """Return the extreme eigenvalues of the tridiagonal matrix behind k steps of CG.

    The smaller one is at least eps times the larger one. Without steps: (1, 1). With ratios that
    are invalid by rounding: (eps, 1).

    - `alpha`, `beta`: step lengths, and ratios of successive residuals. The quotient of the
      eigenvalues grows with k towards the condition number of the (preconditioned) matrix, or 1 /
      eps if that is larger.

    References
    ----------
    .. [1] Golub & Van Loan, *Matrix Computations*, 4th ed., section 11.3.5.
    """
    if len(alpha) == 0:
        return 1.0, 1.0
    with np.errstate(all="ignore"):
        diagonal = 1 / alpha
        diagonal[1:] += beta[:-1] / alpha[:-1]
        off = xp.sqrt(beta[:-1]) / alpha[:-1]
    if not bool(xp.isfinite(diagonal).all() and xp.isfinite(off).all()):
        # A ratio below zero or without bound: rounding dominates.
        return FLOAT64_EPS, 1.0
    values = xp.to_host(diagonal)
    if len(values) > 1:
        # `sterf` takes k² operations on one thread, and SciPy's function around it as long again:
        # each iteration calls this.
        values, info = scipy.linalg.lapack.dsterf(values, xp.to_host(off))
        if info != 0:
            raise np.linalg.LinAlgError(f"{info} eigenvalues did not converge")
    return float(max(values[0], FLOAT64_EPS * values[-1])), float(values[-1])


LANCZOS_STEPS = 20
LANCZOS_PROBES = 4


@dataclass(frozen=True)
class Spectrum:
    r"""Nodes and weights with :math:`\mathrm{tr} f(C) \approx \sum_i w_i f(\theta_i)`.

    Stochastic Lanczos quadrature [1]_ with 4 probes of 20 steps: about 2 % of error for effective
    dimensions up to m / 3, more above. The probes are the same each time, so that a solver that
    is resumed makes the same choices.

    References
    ----------
    .. [1] Ubaru, Chen, Saad, *Fast estimation of tr(f(A)) via stochastic Lanczos quadrature*,
       SIAM J. Matrix Anal. Appl. 38, 2017, algorithm 1.
    """

    nodes: Float[Array, " k"]
    weights: Float[Array, " k"]

    @classmethod
    def build(
        cls, apply: Callable[[Array], Array], m: int, device: str | xp.Device = "cpu"
    ) -> Spectrum:
        """Return the spectrum of a positive semidefinite matrix given by its products.

        - `apply`: products with an Array of shape (m, 4), float64.
        - `device`: device of the products.

        Notes
        -----
        Cost: 20 products, and memory for 20 vectors of each probe.
        """
        # A fixed seed: a resumed solver must make the same choices.
        rng = RandomStream(0)
        signs = xp.to_float64(rng.integers(2, size=(m, LANCZOS_PROBES))) * 2 - 1
        start = xp.to_device(signs / m**0.5, device)
        diagonal, off = (xp.to_host(part) for part in _lanczos(apply, start, min(LANCZOS_STEPS, m)))
        matrices = xp.diag_embed(diagonal.T)
        matrices += xp.diag_embed(off.T, 1) + xp.diag_embed(off.T, -1)
        nodes, vectors = xp.eigh(matrices)
        weights = vectors[:, 0, :] ** 2 * (m / LANCZOS_PROBES)
        return cls(nodes.clip(min=0).reshape(-1), weights.reshape(-1))

    def effective_dimension(self, penalty: float) -> float:
        """Return tr C (C + penalty I)⁻¹."""
        return float((self.weights * self.nodes / (self.nodes + penalty)).sum())

    def penalty_for(self, dimension: float, least: float) -> float:
        """Return the smallest penalty, at least `least`, of effective dimension `dimension`."""
        if self.effective_dimension(least) <= dimension:
            return least
        low, high = least, float((self.weights * self.nodes).sum())
        # Bisection to far below the error of the estimate.
        for _ in range(40):
            middle = (low * high) ** 0.5
            low, high = (
                (low, middle) if self.effective_dimension(middle) <= dimension else (middle, high)
            )
        return high


def spectrum_operations(m: int) -> float:
    """Return the operations of `Spectrum.build` for a dense matrix with m rows.

    Its 320 m² operations wait for memory: 2,000 rows took 0.11 s, a factorisation 0.07.
    """
    return 1000.0 * m**2


def _lanczos(apply: Callable[[Array], Array], start: Array, steps: int) -> tuple[Array, Array]:
    """Return diagonals (k, p) and off-diagonals (k - 1, p), one column per starting vector."""
    basis = [start]
    diagonal, off = [], []
    for _ in range(steps):
        q = basis[-1]
        r = apply(q)
        diagonal.append((q * r).sum(axis=0))
        # Two passes keep the basis orthogonal to rounding.
        for _ in range(2):
            for vector in basis:
                r = r - vector * (vector * r).sum(axis=0)
        norm = xp.norm(r, axis=0)
        if len(basis) == steps or bool((norm <= 1e-12 * xp.norm(start, axis=0)).any()):
            break
        off.append(norm)
        basis.append(r / norm)
    empty = xp.empty((0, start.shape[1]), like=start)
    return xp.stack(diagonal), xp.stack(off) if off else empty
