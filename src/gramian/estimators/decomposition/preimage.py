"""Ridge regression from components (codes) back to rows."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float
from ...approximations import NystromMap
from ...data import RowSource
from .block_statistics import ProductsOfCodes, Projected


@dataclass(frozen=True)
class PreImage:
    r"""Map :math:`W^\top h(z)` from a code z to a row, with Nystrom features h.

    W minimises :math:`\frac1n \sum_i \|W^\top h(z_i) - x_i\|^2 + \lambda \|W\|^2`: kernel ridge
    regression with the codes of the landmarks as centers, in one pass over blocks of rows. With all
    rows as landmarks it is exact.

    - `features`: the map h.
    - `weights`: the matrix W.
    """

    features: NystromMap
    weights: Float[Array, "s d"]

    @classmethod
    def build(
        cls, codes: Projected, features: NystromMap, rows: RowSource, size: int, penalty: float
    ) -> PreImage:
        """Fit the regression from the codes of rows to the rows, in blocks.

        Cost: n s² + n s d operations, 8 (s² + s d) bytes.
        """
        count, gram, moment = rows.fold(ProductsOfCodes(codes, features), size=size)
        # The penalty is per row, and H'H is a sum over rows.
        xp.add_(xp.diagonal(gram), count * penalty)
        la.cholesky_(gram)
        return cls(features, la.solve_cholesky(gram, moment))

    def rows(self, codes: RowSource, memory_bytes: int) -> Float[Array, "n d"]:
        """Predict the rows of codes (n, k), in the dtype of the codes."""

        def predict_block(block: Array) -> Array:
            return xp.cast(self.features.apply(xp.to_float64(block)) @ self.weights, block.dtype)

        return codes.map(predict_block, size=self.features.block_size(codes, memory_bytes))
