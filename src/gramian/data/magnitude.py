"""check_magnitude: targets so large or small that products with them overflow, or round to 0."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from .remote_columns import Targets
from .wherever import columns_there

LARGEST_TARGET = {torch.float32: 1e25, torch.float64: 1e140}
"""Targets up to this size, and down to its inverse, leave room for their squares in float64, and
for coefficients, which are up to 1 / (n penalty) times as large, in the type of the rows."""


def check_magnitude(targets: Targets, dtype: torch.dtype, what: str = "y") -> None:
    """Refuse targets so small that products with them round to 0, or so large that they overflow.

    Parameters
    ----------
    targets : Tensor of shape (n, t)
        Numbers. A column of zeros is fine, and so are small numbers beside larger ones.
    dtype : torch.dtype
        That of the rows, and so of products with the kernel matrix.
    what : str
        Subject of the error message.

    Raises
    ------
    ValueError
        Names the column, its largest number and a divisor.
    """
    most = LARGEST_TARGET[dtype]
    for column, size in enumerate(_sizes(targets).tolist()):
        if size == 0 or 1 / most <= size <= most:
            continue
        where = what if targets.shape[1] == 1 else f"column {column} of {what}"
        does = "overflow" if size > most else "round to 0"
        raise ValueError(
            f"the largest number of {where} is {size:.2g} in size, and products of such numbers "
            f"{does}: with {str(dtype).removeprefix('torch.')} rows it should be between "
            f"{1 / most:.0e} and {most:.0e}; divide {where} by {size:.0e}, and multiply "
            "predictions by it"
        )


def _sizes(targets: Targets) -> Float[Tensor, " t"]:
    """Return the size of the largest number of each column, wherever they are."""
    there = columns_there(targets)
    if there is not None:
        return torch.maximum(there.facts.most.abs(), there.facts.least.abs())
    return targets.abs().amax(dim=0)
