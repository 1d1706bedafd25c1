"""Memory of blocks that are filled in a thread of their own, and used in another."""

from __future__ import annotations

import mmap

import torch
from jaxtyping import Float
from torch import Tensor


def new_block(rows: int, d: int, dtype: torch.dtype) -> Float[Tensor, "rows d"]:
    """Give memory that returns to the system with the block, and not to the C heap.

    The heap of the reading thread would keep several blocks for later: ten of 4 MB, where two are
    in use.

    Parameters
    ----------
    rows, d : int
        At least one.
    dtype : torch.dtype
    """
    memory = mmap.mmap(-1, rows * d * dtype.itemsize)
    return torch.frombuffer(memory, dtype=dtype, count=rows * d).view(rows, d)
