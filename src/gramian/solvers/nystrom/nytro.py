"""NYTRO: early-stopped least squares over landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..._messages.errors import ParameterError
from ...problems import NystromProblem
from ..base import solvers
from ..conjugate_gradient import divide_active, dot_columns
from ..loop.state import State
from .coordinates import Coordinates
from .gradient_descent import NystromDescent
from .state import NytroState

NYTRO_VARIANTS = ("gd", "cg")


@solvers.register("nytro")
@dataclass(frozen=True)
class Nytro(NystromDescent[NytroState]):
    r"""NYTRO [1]_: least squares over landmarks, regularised by the number of iterations.

    With :math:`T^\top T = K_{mm}`, gradient descent from zero in the space of functions,

    .. math:: \alpha_k = T^{-1} \beta_k, \quad \beta_k = \beta_{k-1} - \gamma\, T^{-\top}
        K_{nm}^\top W (K_{nm} T^{-1} \beta_{k-1} - y) / N

    Use it with ``penalty=0`` and ``early_stopping=True``, which keeps the iteration with the least
    error on held-out rows, or with the number of iterations as ``max_iter``.

    Parameters
    ----------
    variant : {"gd", "cg"}, default="gd"
        "gd": gradient descent, as in [1]_. "cg": conjugate gradient for the same least squares,
        which needs about the root of the number of iterations ("NYTRO CG" in figure 1 of [2]_).
    step_scale : float, default=1
        :math:`\gamma L`, with L the largest eigenvalue of :math:`T^{-\top} K_{nm}^\top W K_{nm}
        T^{-1} / N`. Not used by "cg".

    Notes
    -----
    Cost and memory: as `NystromGD`; "cg" has one pass more at the start.

    With a positive penalty the term :math:`\lambda \beta` is added to the gradient, and the
    iterations converge to the solution of the problem, so that "gd" is `NystromGD`; [1]_ has no
    penalty. Without a penalty the history has ``rel_gradient``, and no estimate of the error: the
    fit runs to ``max_iter``, or until the error on held-out rows rises.

    Departures: :math:`\gamma` is one over L, which ten passes of Lanczos estimate, in place of a
    bound of the kernel. A singular K_mm is factorised with pivots, where [1]_ has a pseudoinverse.

    References
    ----------
    .. [1] Camoriano, Angles, Rudi, Rosasco, *NYTRO: When subsampling meets early stopping*, AISTATS
       2016, algorithm 1.
    .. [2] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import Nytro
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=0.0, landmarks=100, random_state=0)
    >>> est = est.set_params(solver=Nytro("cg"), early_stopping=True).fit(X, y)
    >>> est.best_iteration_ > 0, est.score(X, y) > 0.45
    (True, True)
    """

    variant: Literal["gd", "cg"] = "gd"
    state_type: ClassVar[type] = NytroState
    allows_zero_penalty: ClassVar[bool] = True

    def first_state(self, C: Coordinates, state: State | None) -> NytroState:
        if isinstance(state, NytroState):
            return state
        first = super().first_state(C, state)
        return NytroState.along(first, -first.gradient)

    def step(self, C: Coordinates, s: NytroState) -> NytroState:
        """Return the state after a step of algorithm 1, or of conjugate gradient."""
        if self.variant == "gd":  # beta_k <- beta_{k-1} - gamma/n T^-T K'(K T^-1 beta - y)
            after = super().step(C, s)
            return NytroState.along(after, -after.gradient)
        p, q = s.direction, C.hessian(s.direction)
        energy, curvature = dot_columns(s.gradient, s.gradient), dot_columns(p, q)
        # Rounding or a zero gradient may leave no curvature: such a column stays.
        step = divide_active(energy, curvature, curvature > 0)
        g = s.gradient + step * q
        after = C.move(s, s.beta + step * p, g)
        ratio = divide_active(dot_columns(g, g), energy, energy > 0)
        return NytroState.along(after, ratio * p - g)

    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        return Coordinates.build(problem, "functions")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in NYTRO_VARIANTS:
            raise ParameterError("variant", self.variant, f"one of {', '.join(NYTRO_VARIANTS)}")
