"""CellProblems: the full problem of each cell, several solved at once, kept in a journal."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .._linalg.threads import one_thread_if_small
from .._workers import default_threads, run
from ..callbacks import Checkpoint
from ..callbacks.journal import ANOTHER, Journal
from ..data.digest import digest, tensor_digest
from ..kernels import Kernel
from ..operators import Engine
from ..solvers import Result, Solver, solve
from ..solvers.metrics import RESIDUAL
from ..solvers.stopping import Row, Stop, StopReason
from . import resolve
from .cell_rows import CellRows
from .data import TrainingData
from .fitted import check_not_diverged
from .landmarks import problem_of
from .memory import FitSize
from .placed import PlacedData
from .settings import FitSettings
from .start import stopping

logger = logging.getLogger("gramian")

LARGER, TRIES = 10.0, 4
"""Factor of the ridge of a cell whose solver has diverged, and how often it is tried."""

UNFINISHED: tuple[StopReason, ...] = ("time_limit", "callback")
"""Cells that have stopped so are solved again by a fit that goes on."""


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """A cell: its coefficients, and how the solver came to them.

    Attributes
    ----------
    coef : Tensor of shape (k, t)
        In float64.
    iteration : int
    reason : StopReason
    shift : float
        The ridge: the one that was asked for, or a larger one.
    residual : float or None
        The relative one, where the solver measures it.
    """

    coef: Float[Tensor, "k t"]
    iteration: int
    reason: StopReason
    shift: float
    residual: float | None

    @property
    def row(self) -> Row:
        """The row of the history."""
        row: Row = {"iteration": self.iteration, "rows": len(self.coef), "ridge": self.shift}
        return row if self.residual is None else row | {RESIDUAL: self.residual}


@dataclass(frozen=True, eq=False)
class CellProblems:
    """The problems of all cells: the same kernel and ridge.

    Attributes
    ----------
    settings : FitSettings
        With values.
    asked : FitSettings
    data : TrainingData
        All of it, as the kernel sees it.
    rows : CellRows
    kernel : Kernel
    engine : Engine
    shift : float
    rng : torch.Generator
    ends : float
        The time of `time.monotonic` at which the fit is to end.
    """

    settings: FitSettings
    asked: FitSettings
    data: TrainingData
    rows: CellRows
    kernel: Kernel
    engine: Engine
    shift: float
    rng: torch.Generator
    ends: float
    workers: int = 1
    seed: int = field(init=False)
    _stopped: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        one = len(self.rows) == 1  # it is the plain fit, to the last bit
        seed = 0 if one else int(torch.randint(2**62, (), generator=self.rng))
        object.__setattr__(self, "seed", seed)

    def solver(self, cell: int) -> Solver[Any, Any]:
        """Return the solver of a cell."""
        return self._solver(self.settings, self.rows.of(cell, self.data))[0]

    def journal(self, checkpoint: Checkpoint) -> Journal:
        """Return the journal in the file of a checkpoint."""
        cells = {**self.rows.cells.tensors(), "starts": self.rows.starts}
        about = {
            "kernel": json.dumps(self.kernel.to_dict()),
            "shape": str((*self.data.rows.shape, *self.data.targets.shape, self.rows.X.dtype)),
            "ridge": repr(self.shift),
            "solver": repr(self.settings.solver),
            "tol": repr((self.settings.tol, self.settings.max_iter)),
            "cells": " ".join(tensor_digest(each) for each in cells.values()),
        }
        return Journal(checkpoint.path, about, resume=checkpoint.resume)

    def solved(self, journal: Journal | None = None) -> Iterator[SolvedCell]:
        """Yield all cells, in order, and append them to the journal; those that it has, from there.

        Notes
        -----
        Several are solved at once where there are more cells than workers, each on one thread.
        """
        cells = range(len(self.rows))
        several = self.workers > 1
        with one_thread_if_small(0 if several else math.inf):
            work, stop = self._work(journal), self._stopped.set
            every = run(self.workers, work, cells, stop) if several else map(work, cells)
            for cell, (found, fresh) in zip(cells, every, strict=True):
                if fresh is not None and journal is not None and found.reason not in UNFINISHED:
                    journal.append(cell, _facts(found) | {"rows": fresh}, found.coef)
                yield found

    def _work(self, journal: Journal | None) -> Callable[[int], tuple[SolvedCell, str | None]]:
        """Return what solves a cell; with the digest of its data, if it is to be kept."""
        lock = threading.Lock()

        def work(cell: int) -> tuple[SolvedCell, str | None]:
            data = self.rows.of(cell, self.data)
            if journal is None:
                return self._solve(cell, data), None
            own = digest(data.rows) + tensor_digest(data.targets) + tensor_digest(data.weights)
            with lock:
                known = journal.part(cell)
            if known is None:
                return self._solve(cell, data), own
            facts, coef = known
            if facts["rows"] != own:
                raise ValueError(
                    f"{journal.path} is a checkpoint of another problem: rows differ. {ANOTHER}"
                )
            told = (facts["iteration"], facts["reason"], facts["ridge"], facts["residual"])
            return SolvedCell(coef, *told), None

        return work

    def _solve(self, cell: int, data: TrainingData) -> SolvedCell:
        """Solve a cell, with a larger ridge where its solver diverges."""
        if self._stopped.is_set():
            raise RuntimeError("stopped: cells are missing")
        n, shift, waiting = len(data.rows), self.shift, len(self.rows) - cell
        left = (self.ends - time.monotonic()) * min(1.0, self.workers / waiting)
        ends, rng = time.monotonic() + left, self.rng
        if len(self.rows) > 1:
            rng = torch.Generator().manual_seed(self.seed ^ cell)
        for _ in range(TRIES):
            result = self._result(data, shift, ends, rng)
            if result.reason != "diverged":
                last = result.history[-1].get(RESIDUAL)
                return SolvedCell(
                    result.state.coef.cpu(), result.state.iteration, result.reason, shift,
                    None if last is None else float(last),
                )  # fmt: skip
            shift *= LARGER
            logger.warning("the solver diverged in a cell of %d rows: ridge %.3g", n, shift)
        check_not_diverged(result)
        raise FloatingPointError("the solver diverged in a cell")

    def _result(
        self, data: TrainingData, shift: float, ends: float, rng: torch.Generator
    ) -> Result:
        own = replace(self.settings, penalty=shift / data.total, callbacks=())
        if own.limit is not None:
            own = replace(own, memory_limit=max(1, own.limit // self.workers))
        solver, size = self._solver(own, data)
        placed = PlacedData.place(data, self.kernel, self.engine, solver, size, own.limit)
        problem = problem_of(placed.K, placed.data, None, own.one_penalty)
        stop = [self._rule, *stopping(own, solver, len(data.rows), ends)]
        return solve(problem, solver, stop=stop, rng=rng)

    def _solver(
        self, settings: FitSettings, data: TrainingData
    ) -> tuple[Solver[Any, Any], FitSize]:
        _, size = resolve.solver_and_size(settings, data.rows, data.targets.shape[1])
        return resolve.solver_for(settings, self.asked, size), size

    @property
    def _rule(self) -> Stop:
        """Stops the solvers when nobody waits for the cells any more."""
        return lambda history: "callback" if self._stopped.is_set() else None


def workers_of(cells: int, engine: Engine) -> int:
    """Return how many cells are solved at once: as many as torch has threads, on the host."""
    return min(default_threads(), cells) if engine.device_bytes() is None else 1


def _facts(found: SolvedCell) -> dict[str, Any]:
    return {
        "iteration": found.iteration, "reason": found.reason, "ridge": found.shift,
        "residual": found.residual,
    }  # fmt: skip
