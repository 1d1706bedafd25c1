"""The Laplacian kernel of the l1 distance, evaluated by direct differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from .._lengthscale import LengthscaleKernel
from ..base import Prepared, Side, kernels
from .base import deepest


@kernels.register("l1_laplacian")
@dataclass(frozen=True)
class L1Laplacian(LengthscaleKernel):
    r"""Laplacian kernel :math:`\exp(-\|x - z\|_1 / \ell)`, a product over the features.

    The l1 distance is not a function of an inner product: rows must be dense, and an entry costs d
    absolute differences.

    Use it for tables whose columns act separately, with steps, as for decision trees.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or "median", default=1.0

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.kernels import L1Laplacian, Laplacian
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> for k in (L1Laplacian("2 median"), Laplacian("2 median")):
    ...     est = KernelRidge(k, penalty=1e-6).fit(train, "target")
    ...     print(f"R2 {est.score(test):.3f}")
    R2 0.999
    R2 0.990
    """

    stationary: ClassVar[bool] = True
    instead: ClassVar[str] = "kernel='laplacian'"
    differentiable: ClassVar[bool] = True
    norm: ClassVar[float] = 1.0

    def prepare(self, points: Array, side: Side) -> Prepared:
        return (self.scaled(points),)

    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        distance = xp.clip_(xp.cdist(left[0], right[0], p=1.0), max=deepest(out.dtype))
        return xp.exp(xp.assign_(out, xp.negative_(distance)), out=out)

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return gradients as defined in `Kernel.gradients`, from the signs of x - z by feature.

        Where two coordinates are equal after centering, scaling and rounding, the derivative is
        taken as 0.
        """
        (x,), (z,) = left, right
        S = self.tile(left, right, xp.empty((len(x), len(z)), like=v))
        if weights is not None:
            S *= weights
        out, signs = xp.empty((len(x), v.shape[1], x.shape[1]), like=S), xp.empty_like(S)
        columns = xp.contiguous(z.T)
        for k in range(x.shape[1]):
            # The order z - x supplies the minus sign of the derivative of exp(-|x - z|).
            xp.subtract(columns[k], x[:, k, None], out=signs)
            out[:, :, k] = xp.matmul(xp.multiply_(xp.sign(signs, out=signs), S), v)
        return xp.multiply_(out, self._inverse(x))

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        norms = (xp.abs(side[0]).sum(axis=1) for side in (left, right))
        return max(eps, eps * min(float(norm.max()) if len(norm) else 0.0 for norm in norms))
