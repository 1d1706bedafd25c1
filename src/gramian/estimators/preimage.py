"""PreImage: ridge regression from codes back to the rows they came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..approximations import NystromMap
from ..data import RowSource


@dataclass(frozen=True)
class PreImage:
    r"""The function :math:`W^\top h(z)` of a code z, with Nystrom features h.

    W minimises :math:`\frac1n \sum_i \|W^\top h(z_i) - x_i\|^2 + \lambda \|W\|^2`: kernel ridge
    regression on the codes of the landmarks, for which the rows come once and in blocks. With all
    rows as landmarks it is the exact one.

    Attributes
    ----------
    features : NystromMap
        The h.
    weights : Tensor of shape (s, d)
        The W.
    """

    features: NystromMap
    weights: Float[Tensor, "s d"]

    @classmethod
    def build(
        cls, features: NystromMap, blocks: Iterable[tuple[Tensor, Tensor]], penalty: float
    ) -> PreImage:
        """Return the regression on pairs of blocks: codes (b, k), and rows (b, d).

        Notes
        -----
        Cost: n s² + n s d operations, 8 (s² + s d) bytes.
        """
        count, s = 0, features.width
        gram = la.by_columns(torch.zeros(s, s, dtype=torch.float64))
        moment = torch.empty(0)
        for codes, rows in blocks:
            H = features.apply(codes.double())
            part = (rows.double().t() @ H).t()
            moment = part if count == 0 else moment.add_(part)
            gram.addmm_(H.t(), H)
            count += len(H)
        gram.diagonal().add_(count * penalty)
        la.cholesky_(gram)
        return cls(features, la.solve_cholesky(gram, moment))

    def rows(self, codes: RowSource, memory_bytes: int) -> Float[Tensor, "n d"]:
        """Return the rows of codes (n, k), in the dtype of the codes."""

        def one(block: Tensor) -> Tensor:
            return (self.features.apply(block.double()) @ self.weights).to(block.dtype)

        return codes.map(one, size=self.features.block_size(codes, memory_bytes))
