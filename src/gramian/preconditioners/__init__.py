"""Preconditioners: cheap approximations of the inverse of a system.

There is no common interface, because preconditioners are not interchangeable: FALKON's factor must
be applied in two halves (`FalkonFactor.solve_T`, ...; in float32 the product of the halves as one
matrix loses all accuracy), others act as one matrix. Each is a frozen dataclass with a ``build``
classmethod and the methods that its solver needs.
"""

from __future__ import annotations

from .._linalg import cholesky_with_jitter_
from .block_cholesky import BlockCholesky, BlockLowRank, blocks_of_rows
from .eigenpro import EigenProFactor
from .falkon import FalkonFactor
from .low_rank import InverseOfEach, LowRankInverse

__all__ = [
    "BlockCholesky",
    "BlockLowRank",
    "EigenProFactor",
    "FalkonFactor",
    "InverseOfEach",
    "LowRankInverse",
    "blocks_of_rows",
    "cholesky_with_jitter_",
]
