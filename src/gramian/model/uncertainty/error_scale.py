"""Scale of the errors of a model: a function of rows, learned from leave-one-out residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...operators import KernelOperator

ERROR_PREFIX = "errors."
"""In front of the names of the tensors of a file."""


@dataclass(frozen=True, eq=False)
class ErrorScale:
    r"""The variance of new observations by the size of errors nearby: :math:`a\, s(x)^2 + b`.

    .. math:: \log s(x) = \gamma \log v(x) + \mu + \sum_j k(x, x_j)\, \beta_j

    v is the residual variance of the kernel, see `Variance`, the sum is a kernel ridge regression
    with the kernel and the centers of the model.

    Attributes
    ----------
    coef : Array of shape (m, t)
        The coefficients β of each target.
    level : Array of shape (t,)
        The μ of each target.
    exponent : Array of shape (t,)
        The γ of each target, at least 0: s grows away from the rows as v does.
    lower, upper : Array of shape (t,)
        Limits of μ and the sum: the range of the training rows.
    scale, noise : Array of shape (t,)
        The a and b of each target, at least 0.
    """

    coef: Float[Array, "m t"]
    level: Float[Array, " t"]
    exponent: Float[Array, " t"]
    lower: Float[Array, " t"]
    upper: Float[Array, " t"]
    scale: Float[Array, " t"]
    noise: Float[Array, " t"]

    def variance(self, K: KernelOperator, v: Float[Array, " n"]) -> Float[Array, "n t"]:
        """Return the variance of rows, from their kernel with the centers, and v.

        Cost: n m kernel evaluations and 2 n m t operations.
        """
        local = (K @ self.coef + self.level).clip(self.lower, self.upper)
        return self.scale * xp.exp(2 * (local + self.exponent * xp.log(v)[:, None])) + self.noise

    def check(self, m: int, t: int) -> None:
        """Raise ValueError unless numbers are finite and the shapes suit m centers, t targets."""
        for name, numbers in self.tensors().items():
            shape = (m, t) if name == f"{ERROR_PREFIX}coef" else (t,)
            if numbers.shape != shape or numbers.dtype != xp.float64:
                raise ValueError(f"{name} of a variance must be float64 of shape {shape}")
            if not bool(xp.isfinite(numbers).all()):
                raise ValueError(f"{name} of a variance must be finite")
        if not all(bool((x >= 0).all()) for x in (self.exponent, self.scale, self.noise)):
            raise ValueError("exponent, scale and noise of errors must be at least 0")

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file."""
        return {ERROR_PREFIX + field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Array]) -> ErrorScale | None:
        """Rebuild from the result of `tensors`; None without any of them."""
        own = {
            name.removeprefix(ERROR_PREFIX): x
            for name, x in tensors.items()
            if ERROR_PREFIX in name
        }
        return cls(**own) if own else None
