"""Nystrom gradient descent: gradient descent on the problem that FALKON solves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._messages.errors import ParameterError
from ...problems import NystromProblem
from ..base import solvers
from .base import NystromDescent
from .coordinates import COORDINATE_FORMS, Coordinates
from .state import DescentState


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
        if self.coordinates not in COORDINATE_FORMS[:2]:
            raise ParameterError(
                "coordinates", self.coordinates, f"one of {', '.join(COORDINATE_FORMS[:2])}"
            )
