"""leave_one_out: the error of each row without it, at all penalties, from one factorisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la

JITTER = 1e-10
"""Of the diagonal of K_mm, so that it has a Cholesky factor where landmarks are close together."""

SHIFT_NUMBERS = 1 << 20
"""Numbers of residuals, of all shifts at once: no more than these, or than the eigenvectors."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""The eigenvectors of a kernel matrix of rows that count as often as their weights say.

    Attributes
    ----------
    values : Tensor of shape (r,)
        Eigenvalues of :math:`W^{1/2} K W^{1/2}`, or of its Nystrom approximation.
    vectors : Tensor of shape (n, r)
    full : bool
        Whether r = n: there is nothing beside these vectors.
    weights : Tensor of shape (n,)
    """

    values: Float[Tensor, " r"]
    vectors: Float[Tensor, "n r"]
    full: bool
    weights: Float[Tensor, " n"]

    @classmethod
    def of(cls, K: Float[Tensor, "n n"], weights: Float[Tensor, " n"]) -> Spectrum:
        """Return that of all rows as centers. Cost: some 5 n³ operations."""
        root = weights.double().sqrt()
        A = root[:, None] * K.double() * root
        la.flush_tiny_(A)
        values, vectors = la.eigenpairs(A)
        return cls(values.clamp(min=0.0), vectors, True, weights)

    @classmethod
    def of_landmarks(
        cls, K_nm: Float[Tensor, "n m"], K_mm: Float[Tensor, "m m"], weights: Float[Tensor, " n"]
    ) -> Spectrum:
        """Return that of landmarks. Cost: 3 n m² operations and some 5 m³."""
        jitter = JITTER * float(K_mm.diagonal().mean()) + 1e-300
        R = torch.linalg.cholesky(K_mm.double() + jitter * torch.eye(len(K_mm)).double())
        features = torch.linalg.solve_triangular(R, K_nm.double().t(), upper=False).t()
        features = weights.double().sqrt()[:, None] * features
        values, vectors = la.eigenpairs(features.t() @ features)
        kept = values > 1e-14 * values.max()
        values, vectors = values[kept], vectors[:, kept]
        return cls(values, features @ vectors / values.sqrt(), False, weights)

    def losses(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float], *, eps: float = 0.0
    ) -> list[float]:
        r"""Return the weighted mean squared error of each row when it is left out, for each shift.

        Infinity where it is not a number.

        Parameters
        ----------
        Y : Tensor of shape (n, t)
        shifts : sequence of float
            :math:`N \lambda`.
        eps : float, default=0.0
            Rounding of kernel entries of predictions. Errors of `eps` times the coefficients are
            added to the loss: those of a tiny penalty are huge, and no use in float32.

        Notes
        -----
        With H the matrix that maps targets to predictions, that of row i without it is off by
        (y - H y)_i / (1 - H_ii): a row of weight w is left out as a whole, as if w equal rows were.
        Cost: n r (t + 1) operations for each shift.
        """
        weights = self.weights.double()
        total = float(weights.sum()) * Y.shape[1]
        found = []
        for shift, off, free in self._off(Y, shifts):
            loss = float((off / free[:, None]).square().sum()) / total
            coef = weights.sqrt()[:, None] * off / shift
            loss += eps**2 * float(coef.square().sum()) / Y.shape[1]
            found.append(loss if math.isfinite(loss) else math.inf)
        return found

    def left_out(self, Y: Float[Tensor, "n t"], shift: float) -> Float[Tensor, "n t"]:
        """Return the prediction of each row by the others, at one shift; see `losses`."""
        ((_, off, free),) = self._off(Y, [shift])
        return Y.double() - off / free[:, None] / self.weights.double().sqrt()[:, None]

    def _off(
        self, Y: Float[Tensor, "n t"], shifts: Sequence[float]
    ) -> Iterator[tuple[float, Float[Tensor, "n t"], Float[Tensor, " n"]]]:
        """Yield each shift with what is unexplained of rows by the root of their weights: y - Hy.

        And with the share of each row that is free, 1 - H_ii. Two products have all shifts.
        """
        y = self.weights.double().sqrt()[:, None] * Y.double()
        inside = self.vectors.t() @ y
        squares = self.vectors.square()
        beyond = 0.0 if self.full else y - self.vectors @ inside
        left = 0.0 if self.full else 1 - squares.sum(dim=1)
        (n, r), t = self.vectors.shape, y.shape[1]
        at_once = max(1, max(r, SHIFT_NUMBERS // n) // t)
        for start in range(0, len(shifts), at_once):
            some = torch.tensor(shifts[start : start + at_once], dtype=torch.float64)
            stays = some / (self.values[:, None] + some)  # (r, k)
            off = self.vectors @ (stays[:, :, None] * inside[:, None]).flatten(1)
            free = squares @ stays
            for k, shift in enumerate(some.tolist()):
                yield shift, beyond + off[:, k * t : (k + 1) * t], left + free[:, k]
