"""Gradient descent on the problem that FALKON solves, in two kinds of coordinates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ..._arrays import RandomStream
from ..._messages.checks import as_positive
from ..._messages.errors import ParameterError
from ...preconditioners.falkon import ROUNDING_ROWS
from ...problems import NystromProblem
from ..base import Solver, StateType, solvers
from ..cost import PANEL_ROWS, ProblemSize
from ..loop.state import State
from .coordinates import COORDINATE_FORMS, LANCZOS_PASSES, Coordinates
from .state import DescentState


@dataclass(frozen=True)
class NystromDescent(Solver[NystromProblem, StateType]):
    """Base of the gradient methods, with costs, verification and step length."""

    step_scale: float | int = field(default=1.0, kw_only=True)
    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)
    state_type: ClassVar[type] = DescentState

    def __post_init__(self) -> None:
        as_positive(self.step_scale, "step_scale")

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: RandomStream | None = None,
    ) -> Iterator[Any]:
        """Run gradient descent in the coordinates of the solver, with alpha = B beta."""
        C = self.build_coordinates(problem)
        s = self.first_state(C, state)
        yield s
        while True:
            s = self.step(C, s)
            yield s

    def first_state(self, C: Coordinates, state: State | None) -> Any:
        """Return the state before the first step."""
        return C.start(state, self.step_scale)

    def step(self, C: Coordinates, s: Any) -> Any:
        """Return the state after a step."""
        # beta_k <- beta_{k-1} - tau/n B'[K'(K B beta_{k-1} - y) + lambda n K_mm B beta_{k-1}]
        return C.step(s, s.beta - s.settings["step"] * s.gradient)

    @abstractmethod
    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        """Factorise K_mm, for gradients in the coordinates of the solver."""

    def verify(self, problem: NystromProblem, state: Any) -> None:
        """Compare the gradient of a state with the recomputed gradient."""
        self.build_coordinates(problem).check(state)

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        return size.vector_bytes + 8 * size.m * size.m + 16 * size.m * size.d

    def panel_bytes(self, size: ProblemSize) -> int:
        return 3 * PANEL_ROWS * 8 * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        m = size.m
        rounding = 2 * m * min(m, ROUNDING_ROWS) if size.itemsize < 8 else 0
        passes = iterations + 1 + LANCZOS_PASSES
        return passes * size.n * m + 2 * m * m + rounding

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return float(size.m) ** 3

    def bytes_read(self, size: ProblemSize) -> float:
        return 16 * float(size.m) ** 2


def check_coordinates(coordinates: str) -> None:
    """Raise ParameterError unless coordinates are functions or coefficients."""
    if coordinates not in COORDINATE_FORMS[:2]:
        raise ParameterError(
            "coordinates", coordinates, f"one of {', '.join(COORDINATE_FORMS[:2])}"
        )


@solvers.register("nystromgd")
@dataclass(frozen=True)
class NystromGD(NystromDescent[DescentState]):
    r"""Gradient descent on the Nystrom problem, as a baseline; see [1]_, equations (6) and (8).

    With :math:`H = K_{nm}^\top W K_{nm} / N + \lambda K_{mm}` and steps of length :math:`\tau`,

    .. math:: \alpha_k = \alpha_{k-1} - \tau\, B B^\top (H \alpha_{k-1} - K_{nm}^\top W y / N)

    Use it as a baseline: `Falkon` solves the same problem in far fewer iterations.

    Parameters
    ----------
    coordinates : {"functions", "coefficients"}, default="functions"
        "functions": :math:`B = T^{-1}` with :math:`T^\top T = K_{mm}`, gradient descent in the
        space of functions, whose condition number is about the largest eigenvalue of K / n over
        the penalty. "coefficients": B is the identity, as in figure 1 of [1]_. The condition number
        then grows with the condition number of K_mm, and convergence may take millions of steps.
    step_scale : float, default=1
        :math:`\tau L`, with L the largest eigenvalue of :math:`B^\top H B`.

    Notes
    -----
    Cost: the factor T, m² kernel evaluations and m³ operations; ten passes over the rows for L, by
    Lanczos; then n m kernel evaluations per iteration. Memory: 8 m² bytes, and a block of rows.

    ``prediction_error`` is an upper bound: the norm of the gradient in the coordinates
    ``"functions"``, divided by :math:`2 \sqrt\lambda`. The bound falls by a factor of about
    :math:`1 - \lambda / L` per iteration.
    Kernel entries and vectors are float64, whatever the dtype of the rows. If a step does not
    shrink the gradient, only rounding errors are left, and the method ends as "no_progress".

    Departures: the paper does not state a step, and it takes gradient steps in the coefficients.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017,
       equations (6) and (8), figure 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import NystromGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=1e-2, landmarks=50, random_state=0)
    >>> est = est.set_params(solver=NystromGD(), tol=1e-2, max_iter=2000).fit(X, y)
    >>> est.stop_reason_
    'converged'
    """

    coordinates: Literal["functions", "coefficients"] = "functions"

    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        return Coordinates.build(problem, self.coordinates)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_coordinates(self.coordinates)


@solvers.register("falkongd")
@dataclass(frozen=True)
class FalkonGD(NystromDescent[DescentState]):
    r"""Basic FALKON, equations (11) and (12) of [1]_: preconditioned gradient descent.

    With FALKON's :math:`B B^\top \approx (K_{nm}^\top W K_{nm} / N + \lambda K_{mm})^{-1}`,

    .. math:: \alpha_k = B \beta_k, \quad \beta_k = \beta_{k-1} - \tau\, B^\top \left( K_{nm}^\top W
        (K_{nm} B \beta_{k-1} - y) / N + \lambda K_{mm} B \beta_{k-1} \right)

    Use `Falkon`, which takes the same gradients by conjugate gradient, unless you study the step.

    Parameters
    ----------
    preconditioner_penalty : float, "auto" or None, default="auto"
        As in `Falkon`: the penalty inside B, which is the penalty of the problem if None, as in the
        paper.
    step_scale : float, default=1
        :math:`\tau L`, with L the largest eigenvalue of the preconditioned matrix.

    Notes
    -----
    Cost: as `NystromGD`. The number of iterations grows with the condition number of the
    preconditioned matrix, for `Falkon` with its root.

    ``prediction_error`` is the norm of the gradient over the root of the least eigenvalue, which
    ten passes of Lanczos estimate together with L.

    Departures: the paper calls for "a suitably chosen" :math:`\tau`; it is one over L. The penalty
    inside B, and a singular K_mm, are treated as in `Falkon`.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017,
       equations (10) to (12).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import FalkonGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=1e-3, landmarks=100, random_state=0)
    >>> est = est.set_params(solver=FalkonGD(), tol=1e-3, max_iter=200).fit(X, y)
    >>> est.stop_reason_
    'converged'
    """

    preconditioner_penalty: float | Literal["auto"] | None = "auto"

    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        return Coordinates.build(problem, "falkon", self.preconditioner_penalty)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preconditioner_penalty not in ("auto", None):
            as_positive(self.preconditioner_penalty, "preconditioner_penalty")
