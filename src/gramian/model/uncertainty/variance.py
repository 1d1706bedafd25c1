"""Variance of new observations around the predictions of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array, Float
from .factors import Factors, LandmarkFactors, RowFactors

TENSOR_NAMES = ("scale", "noise", "beyond")
"""Tensors with a number for each target."""


@dataclass(frozen=True, eq=False)
class Variance:
    r"""The variance of new observations: :math:`a\, v(x) + b + c \max(0, v(x) - v_0)`.

    Attributes
    ----------
    scale, noise : Array of shape (t,)
        The a and b of each target, in its units squared; at least 0.
    beyond : Array of shape (t,)
        The slope c, which applies out of range, where a and b are not calibrated; at least 0.
    limit : float
        The limit v_0: a row is out of range if v(x) is at least this number.
    factors : RowFactors or LandmarkFactors
        Factors of the fit, which give v.
    """

    scale: Float[Array, " t"]
    noise: Float[Array, " t"]
    beyond: Float[Array, " t"]
    limit: float
    factors: Factors

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit of a variance must be at least 0, not {self.limit!r}")
        for name in TENSOR_NAMES:
            numbers = getattr(self, name)
            if not bool((xp.isfinite(numbers) & (numbers >= 0)).all()):
                raise ValueError(f"{name} of a variance must be finite and at least 0")

    def check(self, m: int, t: int) -> None:
        """Raise ValueError unless the shapes match a model of m centers and t targets."""
        if any(getattr(self, name).shape != (t,) for name in TENSOR_NAMES):
            raise ValueError(f"the variance must have {t} numbers of each kind, one per target")
        if not self.factors.fits(m):
            raise ValueError(f"the factors of the variance do not fit {m} centers")

    def to_dict(self) -> dict[str, Any]:
        """Return the limit and the shift, for JSON."""
        shift = self.factors.shift if isinstance(self.factors, LandmarkFactors) else None
        return {"limit": self.limit, "shift": shift}

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        return {name: getattr(self, name) for name in TENSOR_NAMES} | self.factors.tensors()

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Variance:
        """Rebuild from the results of `to_dict` and `tensors`."""
        if set(header) != {"limit", "shift"}:
            raise ValueError(
                f"the header of a variance must have limit and shift, not {sorted(header)}"
            )
        other_tensors = {
            name: tensor for name, tensor in tensors.items() if name not in TENSOR_NAMES
        }
        if any(t.dtype != xp.float64 for name, t in tensors.items() if name != "index"):
            raise ValueError("the numbers of a variance must be float64")
        # Only a fit with landmarks has a shift, which tells the kind of factors.
        shift = header["shift"]
        factors = (
            RowFactors(**other_tensors)
            if shift is None
            else LandmarkFactors(**other_tensors, shift=shift)
        )
        scale, noise, beyond = (tensors[name] for name in TENSOR_NAMES)
        return cls(scale, noise, beyond, float(header["limit"]), factors)
