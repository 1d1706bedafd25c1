"""The effective dimension of a matrix as a function of the penalty, from a few Lanczos runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream

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

        Parameters
        ----------
        apply : callable
            Products with an Array of shape (m, 4), float64.
        device : str or torch.device, default="cpu"
            Device of the products.

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
