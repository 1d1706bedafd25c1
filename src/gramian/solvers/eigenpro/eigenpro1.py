"""EigenPro 1: gradient descent preconditioned with eigenvectors of the whole kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._arrays import RandomStream
from ...operators import KernelOperator
from ...preconditioners import EigenProFactor
from ..base import solvers
from .eigenpro2 import EigenPro2

MOST_ROWS = 20_000
"""Most rows of a full eigendecomposition of K; the eigensolver then takes about 19 GB."""


@solvers.register("eigenpro1")
@dataclass(frozen=True)
class EigenPro1(EigenPro2):
    r"""EigenPro 1 [1]_: `EigenPro2` with all rows as the subsample and an exact preconditioner.

    With :math:`Q = \sum_{i \le q} (1 - \lambda_{q+1} / \lambda_i) e_i e_i^\top` of the eigenpairs
    of K itself, a step with all rows is

    .. math:: \mathrm{coef} \leftarrow \mathrm{coef} - \eta (I - Q) (K\, \mathrm{coef} - y)

    Parameters as in `EigenPro2`, except `subsample`, which is all rows, and `exponent`, which is 1.

    Use it for comparison with its successors, on a few thousand rows.

    Notes
    -----
    Setup: n² kernel evaluations, 4/3 n³ operations and 28 n² bytes. More than 20,000 rows raise
    an error. Cost of an epoch: 2 n² kernel evaluations.

    References
    ----------
    .. [1] Ma & Belkin, *Diving into the shallows: a computational perspective on large-scale
       shallow learning*, NeurIPS 2017.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import EigenPro1
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(
    ...     "laplacian", lengthscale=3.0, penalty=0.0, solver=EigenPro1(), max_iter=10
    ... )
    >>> est = est.set_params(tol=1e-2).fit(train, "target")
    >>> round(float(est.score(test)), 2)
    0.99
    """

    exponent: float | int = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subsample != "auto":
            raise ValueError(
                f"subsample={self.subsample!r} cannot be used with EigenPro1, which decomposes the "
                "matrix of all rows; use EigenPro2"
            )

    @property
    def automatic_sample(self) -> bool:
        return False

    def subsample_rows(self, n: int) -> int:
        return n

    def factor(self, K: KernelOperator, rng: RandomStream, **data: Any) -> EigenProFactor:
        """Return the preconditioner of all rows; raise ValueError if there are too many."""
        n = K.shape[0]
        if n > MOST_ROWS:
            raise ValueError(
                f"EigenPro1 decomposes the kernel matrix of all rows, and supports at most "
                f"{MOST_ROWS:,} rows, not {n:,}; use EigenPro2, which uses a subsample"
            )
        # The factor of EigenPro 2 with all rows as its subsample is exact, and needs no code of its
        # own.
        return EigenPro2(n, self.rank, self.batch, self.exponent).factor(K, rng, **data)
