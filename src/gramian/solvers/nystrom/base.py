"""Base of the solvers whose iteration is one gradient over all rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..._arrays import RandomStream
from ..._messages.checks import as_positive
from ...preconditioners.falkon import ROUNDING_ROWS
from ...problems import NystromProblem
from ..base import Solver, StateType
from ..cost import PANEL_ROWS, ProblemSize
from ..loop.state import State
from .coordinates import LANCZOS_PASSES, Coordinates
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
        s = C.start(state, self.step_scale)
        tau = s.settings["step"]
        yield s
        while True:
            # beta_k <- beta_{k-1} - tau/n B'[K'(K B beta_{k-1} - y) + lambda n K_mm B beta_{k-1}]
            s = C.step(s, s.beta - tau * s.gradient)
            yield s

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
