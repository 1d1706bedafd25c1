"""PreImage: ridge regression from codes to rows."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ... import _linalg as la
from ...approximations import NystromMap
from ...data import RowSource
from .block_statistics import ProductsOfCodes, Projected


@dataclass(frozen=True)
class PreImage:
    r"""The function :math:`W^\top h(z)` of a code z, with Nystrom features h.

    W minimises :math:`\frac1n \sum_i \|W^\top h(z_i) - x_i\|^2 + \lambda \|W\|^2`: kernel ridge
    regression with the codes of the landmarks as centers, in one pass over blocks of rows. With all
    rows as landmarks it is exact.

    Attributes
    ----------
    features : NystromMap
        The map h.
    weights : Tensor of shape (s, d)
        The matrix W.
    """

    features: NystromMap
    weights: Float[Tensor, "s d"]

    @classmethod
    def build(
        cls, codes: Projected, features: NystromMap, rows: RowSource, size: int, penalty: float
    ) -> PreImage:
        """Fit the regression from the codes of rows to the rows, in blocks.

        Notes
        -----
        Cost: n s² + n s d operations, 8 (s² + s d) bytes.
        """
        count, gram, moment = rows.fold(ProductsOfCodes(codes, features), size=size)
        # The penalty is per row, and H'H is a sum over rows.
        gram.diagonal().add_(count * penalty)
        la.cholesky_(gram)
        return cls(features, la.solve_cholesky(gram, moment))

    def rows(self, codes: RowSource, memory_bytes: int) -> Float[Tensor, "n d"]:
        """Predict the rows of codes (n, k), in the dtype of the codes."""

        def predict_block(block: Tensor) -> Tensor:
            return (self.features.apply(block.double()) @ self.weights).to(block.dtype)

        return codes.map(predict_block, size=self.features.block_size(codes, memory_bytes))
