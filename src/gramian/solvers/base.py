"""State, Solver and solve: a solver is a generator of states, and this is the only loop."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._registry import Registry
from ..data import RowSource
from ..problems import FullProblem, Problem
from .cost import ProblemSize
from .stopping import Row, Stop, StopReason, max_iterations, tolerance

logger = logging.getLogger("gramian")

TENSOR_ALIGNMENT = 64
"""Bytes of which the address of a new tensor is a multiple."""


@dataclass
class State:
    """Solver state: enough to resume the iteration bit for bit.

    Attributes
    ----------
    iteration : int
    coef : Tensor of shape (m, t)
        Coefficients of the centers.
    metrics : dict of str to float
        By-products that cost nothing, and what callbacks add; they become a row of the history.

    Notes
    -----
    Tensors of a state lie in memory as a new tensor would: row after row, from an aligned address.
    BLAS rounds otherwise for another layout, so that a run which goes on from a file, where only
    the numbers are kept, would end with other bits than one that was never interrupted.
    """

    iteration: int
    coef: Float[Tensor, "m t"]
    metrics: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Tensor):
                setattr(self, f.name, _like_new(value))

    @property
    def verdict(self) -> StopReason | None:
        """The reason for which the solver itself would stop here; None as long as it would not."""
        return None


def _like_new(x: Tensor) -> Tensor:
    """Return a tensor itself if it lies in memory as a new one would, else a copy that does."""
    aligned = x.layout != torch.strided or x.data_ptr() % TENSOR_ALIGNMENT == 0
    return x.contiguous() if aligned else x.clone(memory_format=torch.contiguous_format)


P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound=State)


def moved(state: S, device: str | torch.device) -> S:
    """Return a state, of which callers may change the metrics, with its tensors on a device."""
    changed: dict[str, Any] = {"metrics": dict(state.metrics)}
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Tensor):
            changed[f.name] = value.to(device)
        elif isinstance(value, State):
            changed[f.name] = moved(value, device)
    return replace(state, **changed)


Callback = Callable[[Problem, State], Any]
"""Called after each iteration; may add to ``state.metrics``; asks to stop by returning True.

If it has a method ``finish()``, that is called when the run has ended, whatever ended it.

Tensors of the problem and of the state may be on a GPU: ``state.coef.cpu().numpy()`` is right
anywhere.
"""


class Solver(ABC, Generic[P, S]):
    """An algorithm for one problem or both. Fields are its hyperparameters; it holds no state.

    Attributes
    ----------
    problem_types : tuple of type
        The problems it can solve, checked before any work.
    state_type : type
        The class of the states it yields.
    needs_random_access : bool
        Whether it reads rows in random order, which a sequential row source refuses.
    closed_form : bool
        Whether it yields one state, the solution, so that stopping rules have no say.
    allows_zero_penalty : bool
        Whether it works with penalty 0: it then interpolates, or is stopped early.
    solves_exactly : bool
        Whether its iterates tend to the solution of the problem, and no other function.
    dense_centers : bool
        Whether it makes centers dense, for which wide sparse rows have no room.
    streams : bool
        Whether coefficients of the centers are all it needs to go on with other rows.
    takes_remote : bool
        Whether it works with rows on other machines.
    leaves_targets : bool
        Whether targets and weights may be on other machines, too.
    takes_penalties : bool
        Whether each target may have a penalty of its own.
    """

    problem_types: ClassVar[tuple[type, ...]]
    state_type: ClassVar[type] = State
    needs_random_access: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False
    allows_zero_penalty: ClassVar[bool] = False
    solves_exactly: ClassVar[bool] = True
    dense_centers: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    takes_remote: ClassVar[bool] = False
    leaves_targets: ClassVar[bool] = False
    takes_penalties: ClassVar[bool] = False

    @abstractmethod
    def iterate(
        self, problem: P, state: State | None = None, *, rng: torch.Generator | None = None
    ) -> Iterator[S]:
        """Yield the state at the start, then the state after each iteration, for ever.

        Given a state that it has yielded, it goes on exactly from there. Given a plain `State`,
        it starts from those coefficients. It knows no tolerance, limit or clock, and never
        writes to a tensor that it has yielded. A closed form yields one state, of iteration 0.
        """

    @abstractmethod
    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        """Return the most bytes that factors, vectors and centers take, without blocks of rows.

        Parameters
        ----------
        size : ProblemSize
        mapped : bool, default=False
            Whether centers are in a file and do not count.
        """

    @abstractmethod
    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        """Return the kernel evaluations of the setup and of some iterations."""

    @abstractmethod
    def operations(self, size: ProblemSize, iterations: int) -> float:
        """Return the floating-point operations of factorisations, products of matrices included."""

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        """Return the bytes it takes of those for blocks of rows, as many as fit; 0 by default."""
        return 0

    def storing(self, size: ProblemSize, available: int) -> Solver[P, S]:
        """Return a solver that stores kernel entries, if that pays and they take so many bytes.

        Itself by default.
        """
        return self

    def panel_bytes(self, size: ProblemSize) -> int:
        """Return the bytes that factorisations on a device need besides; 0 by default."""
        return 0

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the steps of some iterations, each with a delay of its own; as many by default."""
        return iterations

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes of stored matrices that a step reads; 0 by default."""
        return 0.0

    def verify(self, problem: P, state: S) -> None:
        """Raise ValueError if a state from a file disagrees with the problem.

        What a state says of itself is computed afresh, at the cost of about one pass, by each
        solver as far as that can be told. `conjugate_gradient` compares the residual whenever it
        goes on. Here nothing is compared.
        """

    def takes(self, kind: type) -> bool:
        """Return whether this solver solves problems of a class."""
        return issubclass(kind, self.problem_types)

    def check_type(self, kind: type) -> None:
        """Raise ValueError if this solver does not solve problems of a class."""
        if not self.takes(kind):
            wanted = " or ".join(known.__name__ for known in self.problem_types)
            raise ValueError(
                f"{type(self).__name__} solves {wanted}, not {kind.__name__}; give landmarks for "
                "'falkon', none for 'pcg', either for 'direct', loss= for 'newton'"
            )

    def check_penalty(self, penalty: int | float) -> None:
        """Raise ValueError if the penalty is 0 and this solver cannot do without one."""
        if penalty == 0 and not self.allows_zero_penalty:
            known = ", ".join(sorted(n for n in solvers if solvers[n].allows_zero_penalty))
            raise ValueError(
                f"{type(self).__name__} needs a positive penalty, not 0; without one, use a solver "
                f"that is stopped early: {known}"
            )

    def check_penalties(self) -> None:
        """Raise ValueError if this solver has one penalty for all targets."""
        if not self.takes_penalties:
            known = ", ".join(sorted(n for n in solvers if solvers[n].takes_penalties))
            raise ValueError(
                f"{type(self).__name__} has one penalty for all targets; give one number, or use "
                f"{known}"
            )

    def check_rows(self, rows: RowSource) -> None:
        """Raise ValueError if rows are too wide for this solver, or on other machines."""
        if rows.remote and not self.takes_remote:
            full = issubclass(FullProblem, self.problem_types)
            does = "has all rows as centers" if full else "keeps rows on one machine"
            raise ValueError(
                f"{type(self).__name__} {does}, which rows on a cluster are not for: give "
                "landmarks, solver='falkon'"
            )
        if self.dense_centers and rows.entries is not None:
            raise ValueError(
                f"{type(self).__name__} makes centers dense, and sparse rows of "
                f"{rows.shape[1]:,} features have no room for that; use solver='falkon' with "
                "landmarks, or 'pcg' without"
            )

    def iterations_per_pass(self, n: int) -> float:
        """Return how many iterations evaluate about as many pairs as n rows have: one, mostly."""
        return 1.0

    def check(self, problem: P) -> None:
        """Raise ValueError if this solver cannot solve the problem, before any work."""
        self.check_type(type(problem))
        self.check_penalty(problem.penalty)
        if problem.penalties is not None:
            self.check_penalties()
        self.check_rows(problem.K.rows)
        if self.needs_random_access and not problem.K.rows.random_access:
            raise ValueError(
                f"{type(self).__name__} reads rows in random order, but "
                f"{type(problem.K.rows).__name__} is sequential; convert the file once with "
                "`gramian convert data.parquet data.npy`, or use solver='falkon' with landmarks"
            )


solvers: Registry[Solver[Any, Any]] = Registry("solver")


@dataclass(frozen=True)
class Result:
    """Outcome of a run: its last state, the reason for which it ended, and its history.

    Attributes
    ----------
    state : State
    reason : StopReason
        One of "converged", "max_iterations", "time_limit", "early_stopping", "no_progress",
        "callback", "diverged", "interrupted".
    history : list of dict
        A row per state: iteration, seconds (without callbacks), kernel_evaluations, metrics.
    """

    state: State
    reason: StopReason
    history: list[Row]


class Interrupted(KeyboardInterrupt):
    """An interruption of a run that had a state already.

    Attributes
    ----------
    result : Result
        What the run had come to, with the reason "interrupted".
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f"interrupted at iteration {result.state.iteration}")
        self.result = result


def solve(
    problem: Problem,
    solver: Solver[Any, Any],
    *,
    stop: Sequence[Stop] = (tolerance(1e-6), max_iterations(100)),
    callbacks: Sequence[Callback] = (),
    state: State | None = None,
    rng: torch.Generator | None = None,
) -> Result:
    """Run a solver until the first stopping rule fires, a callback asks, or it diverges.

    Parameters
    ----------
    problem : FullProblem, NystromProblem or LossProblem
    solver : Solver
    stop : sequence of stopping rules
        See `tolerance`, `max_iterations`, `time_limit`, `deadline`, `patience`. First to fire
        wins.
    callbacks : sequence of callables
        ``callback(problem, state)`` after each iteration, in order, before the stopping rules,
        which may use what it adds to ``state.metrics``. Its time is not counted.
    state : State, optional
        One that the solver has yielded: goes on from there. A plain `State`: a starting point.
    rng : torch.Generator, optional
        For random solvers; one seeded with 0 if None.

    Returns
    -------
    Result
        Its state is on the device of the targets of the problem, where the solver works.

    Raises
    ------
    ValueError
        If the solver cannot solve this problem.
    Interrupted
        If it is interrupted, as by Ctrl-C, when there is a state: a KeyboardInterrupt that holds
        the result until then.
    """
    solver.check(problem)
    stop = () if solver.closed_form else stop
    state = None if state is None else moved(state, problem.targets.device)
    rng = torch.Generator().manual_seed(0) if rng is None else rng
    clock = _Clock(problem, state)
    states = solver.iterate(problem, state, rng=rng)
    history: list[Row] = []
    last: State | None = None
    try:
        with _finished(callbacks):
            while (last_or_none := clock.next(states)) is not None:
                last = last_or_none
                asked = [callback(problem, last) for callback in callbacks]
                history.append(row_of(last))
                reason = _reason(last, history, stop, any(answer is True for answer in asked))
                if reason is not None:
                    return Result(last, reason, history)
    except KeyboardInterrupt as error:
        if last is None:
            raise
        raise Interrupted(Result(last, "interrupted", _up_to(last, history))) from error
    if last is None:
        raise ValueError(f"{type(solver).__name__} yielded no state")
    return Result(last, "converged", history)


def row_of(state: State) -> Row:
    """Return the row of a state in the history."""
    return {"iteration": state.iteration, **state.metrics}


def _up_to(last: State, history: list[Row]) -> list[Row]:
    """Return the history with the last state, also if a callback was interrupted there."""
    done = bool(history) and history[-1]["iteration"] == last.iteration
    return history if done else [*history, row_of(last)]


@contextlib.contextmanager
def _finished(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Tell the callbacks that want to know when the run has ended, also by an error."""
    with contextlib.ExitStack() as stack:
        for callback in callbacks:
            finish = getattr(callback, "finish", None)
            if callable(finish):
                stack.callback(finish)
        yield


class _Clock:
    """Times the solver, without callbacks, and reads the meter; continues after a resumption."""

    def __init__(self, problem: Problem, state: State | None) -> None:
        before = {} if state is None else state.metrics
        self._seconds = before.get("seconds", 0.0)
        self._meter = problem.K.meter
        self._offset = before.get("kernel_evaluations", 0) - self._meter.evaluations

    def next(self, states: Iterator[State]) -> State | None:
        start = time.perf_counter()
        state = next(states, None)
        self._seconds += time.perf_counter() - start
        if state is not None:
            state.metrics["seconds"] = self._seconds
            state.metrics["kernel_evaluations"] = self._meter.evaluations + self._offset
        return state


def _reason(
    state: State, history: list[Row], stop: Sequence[Stop], asked: bool
) -> StopReason | None:
    finite = all(math.isfinite(value) for value in state.metrics.values())
    if not (finite and bool(state.coef.isfinite().all())):
        logger.info("iteration %d: a metric or coefficient is not finite", state.iteration)
        return "diverged"
    if state.verdict is not None:
        return state.verdict
    reasons = (rule(history) for rule in stop)
    return next((reason for reason in reasons if reason), "callback" if asked else None)


def drawn_seed(rng: torch.Generator | None) -> int:
    """Return a seed to keep in the state, so that whoever goes on draws the same numbers."""
    return 0 if rng is None else int(torch.randint(2**31, (1,), generator=rng))


def starting_coef(state: State | None, like: Tensor) -> Tensor:
    """Return the coefficients of a plain state as a start, or zeros like the argument."""
    if state is None:
        return torch.zeros_like(like)
    if state.coef.shape != like.shape:
        raise ValueError(
            f"the starting coefficients have shape {tuple(state.coef.shape)}, this problem needs "
            f"{tuple(like.shape)}"
        )
    return state.coef.to(like)


__all__ = ["Callback", "Interrupted", "Result", "Solver", "State", "solve", "solvers"]
