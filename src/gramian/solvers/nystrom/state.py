"""States of the gradient methods on the Nystrom problem, enough to resume exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..._arrays import Array, Float
from ..loop.minibatches import MiniBatchState
from ..loop.state import State, StopReason


@dataclass(kw_only=True)
class DescentState(State):
    """State of a gradient method, in its own coordinates beta.

    Attributes
    ----------
    beta : Array of shape (q, t)
    gradient : Array of shape (q, t)
        Gradient of half the objective at beta.
    size : Array of shape (t,)
        Norms of the gradient at zero.
    settings : dict of str to float
        Chosen settings: step, and least_eigenvalue, an estimate.
    form : int
        The coordinates: 0 for coefficients, 1 for functions, 2 after FALKON.
    penalty : float
        The penalty inside A, on which coordinates after FALKON depend.
    stalled : bool
        Whether the last step of a constant length did not shrink the gradient.
    """

    beta: Float[Array, "q t"]
    gradient: Float[Array, "q t"]
    size: Float[Array, " t"]
    settings: dict[str, int | float] = field(default_factory=dict)
    form: int = 1
    penalty: float = 0.0
    stalled: bool = False

    @property
    def verdict(self) -> StopReason | None:
        """Stop as "no_progress" if a step does not shrink the gradient, as exact steps do."""
        return "no_progress" if self.stalled else None


@dataclass(kw_only=True)
class NytroState(DescentState):
    """State of `Nytro`.

    Attributes
    ----------
    direction : Array of shape (q, t)
        Direction of conjugate gradient; minus the gradient otherwise.
    """

    direction: Float[Array, "q t"]

    @classmethod
    def along(cls, state: DescentState, direction: Float[Array, "q t"]) -> NytroState:
        """Return the state with a given direction of conjugate gradient."""
        values = {f.name: getattr(state, f.name) for f in fields(DescentState)}
        return cls(**values, direction=direction)


@dataclass(kw_only=True)
class StochasticState(MiniBatchState):
    """State of `NystromSGD`; its settings are batch and step.

    Attributes
    ----------
    beta, mean : Array of shape (q, t)
        The iterate and the mean of iterates, in the coordinates of the solver.
    count : int
        Number of iterates in the mean.
    """

    beta: Float[Array, "q t"]
    mean: Float[Array, "q t"]
    count: int = 0
