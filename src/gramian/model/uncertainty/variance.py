"""Variance: what a fit leaves unexplained of a row, and the standard deviations that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..._checks import readable_bytes
from ...data import RowSource
from ...engines import Engine
from ...operators import KernelOperator
from .factors import Factors, LandmarkFactors, RowFactors, diagonal_of

if TYPE_CHECKING:
    from ..base import Model
    from ..kernel_model import KernelModel

LEAST_BLOCKS, MOST_BLOCKS = 48 << 20, 1 << 30
"""Memory for blocks of rows, beside a factor."""

NUMBERS = ("scale", "noise", "beyond")
"""The numbers of each target."""


@dataclass(frozen=True, eq=False)
class Variance:
    r"""The variance of new observations: :math:`a\, v(x) + b + c \max(0, v(x) - v_0)`.

    Attributes
    ----------
    scale, noise : Tensor of shape (t,)
        The a and b of each target, in its units squared; at least 0.
    beyond : Tensor of shape (t,)
        The c: what is added out of range, where a and b were not calibrated; at least 0.
    limit : float
        A row is out of range if v(x) is not below it.
    factors : RowFactors or LandmarkFactors
        What v follows from.
    """

    scale: Float[Tensor, " t"]
    noise: Float[Tensor, " t"]
    beyond: Float[Tensor, " t"]
    limit: float
    factors: Factors

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit of a variance must not be negative, not {self.limit!r}")
        for name in NUMBERS:
            numbers = getattr(self, name)
            if not bool((numbers.isfinite() & (numbers >= 0)).all()):
                raise ValueError(f"{name} of a variance must be finite and not negative")

    def check(self, m: int, t: int) -> None:
        """Refuse what is not of m centers and t targets: ValueError."""
        if any(getattr(self, name).shape != (t,) for name in NUMBERS):
            raise ValueError(f"the variance is not that of {t} targets")
        if not self.factors.fits(m):
            raise ValueError(f"the factors of the variance are not those of {m} centers")

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold of it."""
        shift = self.factors.shift if isinstance(self.factors, LandmarkFactors) else None
        return {"limit": self.limit, "shift": shift}

    def tensors(self) -> dict[str, Tensor]:
        """Return the rest."""
        return {name: getattr(self, name) for name in NUMBERS} | self.factors.tensors()

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Variance:
        """Return what `to_dict` and `tensors` gave."""
        if set(header) != {"limit", "shift"}:
            raise ValueError(f"a variance has a limit and a shift, not {sorted(header)}")
        rest = {name: tensor for name, tensor in tensors.items() if name not in NUMBERS}
        if not all(each.dtype == torch.float64 for n, each in tensors.items() if n != "index"):
            raise ValueError("the numbers of a variance must be float64")
        shift = header["shift"]
        factors = RowFactors(**rest) if shift is None else LandmarkFactors(**rest, shift=shift)
        scale, noise, beyond = (tensors[name] for name in NUMBERS)
        return cls(scale, noise, beyond, float(header["limit"]), factors)


def unexplained(
    model: KernelModel, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> tuple[Variance, Float[Tensor, " n"]]:
    """Return the variance of a model, and v of rows as `KernelModel.prepared` takes them.

    Cost: n m kernel evaluations in float64 and 2 n m² operations.

    Raises
    ------
    ValueError
        If the model has no variance, or all rows are centers and their factor, which must be
        computed anew, exceeds the memory.
    """
    if model.variance is None:
        raise ValueError(
            "the model has no variance: call predict(X, return_std=True) of the estimator that was "
            "fitted before it is saved, or give --std to gramian fit"
        )
    factors = model.variance.factors
    if isinstance(factors, RowFactors) and factors.inverse is None:
        needed = 8 * len(model.centers) ** 2 + LEAST_BLOCKS
        if needed > memory_bytes:
            raise ValueError(
                f"the variance of {len(model.centers):,} centers takes {readable_bytes(needed)}, "
                f"but the memory is {readable_bytes(memory_bytes)}; raise the limit, or fit "
                "landmarks"
            )
        factors.found(KernelOperator(model.kernel, model.centers, model.centers))
    blocks = min(max(memory_bytes - factors.bytes, LEAST_BLOCKS), MOST_BLOCKS)
    K = KernelOperator(
        model.kernel, model.prepared(rows), model.centers, engine, blocks // 3
    ).double()
    diagonal = diagonal_of(K)
    # a strip, and two more of its size: what is solved for, and squares
    return model.variance, K.over_strips(factors.unexplained, diagonal)


def deviations(
    model: Model, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> Float[Tensor, "n t"]:
    """Return standard deviations; see `Model.deviations`."""
    total = far = slope = torch.zeros((), dtype=torch.float64)
    for share, one in zip(model.shares, model.parts, strict=True):
        known, v = unexplained(one, rows, engine, memory_bytes)
        total = total + share * (v[:, None] * known.scale + known.noise)
        far, slope = far + share * (v - known.limit), slope + share * known.beyond
    return (total + far.clamp(min=0.0)[:, None] * slope).sqrt()


def out_of_range(
    model: Model, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> Bool[Tensor, " n"]:
    """Return which rows are far from the training; see `Model.out_of_range`."""
    beyond = torch.zeros((), dtype=torch.float64)
    for share, one in zip(model.shares, model.parts, strict=True):
        known, v = unexplained(one, rows, engine, memory_bytes)
        beyond = beyond + share * (v - known.limit)
    return ~(beyond < 0)
