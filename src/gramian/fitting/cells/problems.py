"""Full problems of the cells, which are solved in parallel and kept in a journal."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import _arrays as xp
from ..._arrays import RandomStream
from ..._parallel.processes import PROCESS_BYTES, processes_pay, run_apart
from ..._parallel.workers import one_thread_if_small, run
from ...callbacks import Checkpoint
from ...callbacks.journal import Journal, another_problem
from ...data import as_rows
from ...data.rows.digest import digest, tensor_digest
from ...solvers.loop.loop import Row
from ...solvers.loop.state import StopReason
from ..inputs.training_data import TrainingData
from ..methods.base import Prepared
from .rows import CellRows
from .solver import CellSolver, CellTask, SolvedCell

logger = logging.getLogger("gramian")

MEASURED_CELLS = 8
"""Cells per worker from which on the first cell is solved alone and measured."""

CELL_FACTS = ("iteration", "reason", "shift", "residual")
"""Fields of a cell that a journal keeps as JSON."""

FINAL_REASONS: tuple[StopReason, ...] = ("converged", "no_progress", "max_iterations")
"""Reasons to stop of cells that a journal keeps; others are solved again by a fit that resumes."""


Told = tuple[SolvedCell, str | None]
"""A cell, and the digest of its data if a journal is to have it."""


@dataclass(frozen=True, eq=False)
class CellProblems:
    """The full problems of all cells, with the same kernel and ridge.

    - `prepared`: the prepared fit, with all rows.
    - `workers`: cells that are solved at once.
    """

    prepared: Prepared
    rows: CellRows
    rng: RandomStream
    workers: int = 1
    seed: int = field(init=False)
    _stopped: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        # A single cell is the plain fit, to the last bit: no number may be drawn before it.
        is_single = len(self.rows) == 1
        seed = 0 if is_single else int(self.rng.integers(2**62, size=()))
        object.__setattr__(self, "seed", seed)

    def journal(self, checkpoint: Checkpoint) -> Journal:
        """Return the journal in the file of a checkpoint."""
        cells = {**self.rows.cells.tensors(), "starts": self.rows.starts}
        data, settings = self.prepared.data, self.prepared.settings
        sizes = ", ".join(map(str, (*data.rows.shape, *data.targets.shape)))
        about = {
            "fit": "by cells",
            "kernel": json.dumps(self.prepared.kernel.to_dict()),
            "shape": f"({sizes}, {xp.file_dtype_name(self.rows.X.dtype)})",
            "ridge": repr(settings.one_penalty * data.total),
            "solver": repr(settings.solver),
            "tol": repr((settings.tol, settings.max_iter)),
            "cells": " ".join(tensor_digest(tensor) for tensor in cells.values()),
        }
        return Journal(checkpoint.path, about, resume=checkpoint.resume)

    def solve_cells(self, journal: Journal | None = None) -> Iterator[SolvedCell]:
        """Yield all solved cells, in order.

        A cell is read from the journal, or else solved and appended to the journal.

        If there are more cells than workers, each worker solves cells on one thread. Workers are
        threads, or processes if these end earlier, see `gramian._parallel.processes.processes_pay`.
        """
        # Several cells use one thread each; a cell that is solved alone uses all.
        several = self.workers > 1
        with one_thread_if_small(0 if several else math.inf):
            in_turn = map(self._work(journal), range(len(self.rows)))
            solved_cells = self._at_once(journal) if several else in_turn
            for cell, (solved_cell, fresh) in enumerate(solved_cells):
                if (
                    fresh is not None
                    and journal is not None
                    and solved_cell.reason in FINAL_REASONS
                ):
                    # Only final cells: one that ran out of time is solved
                    # again when the fit is resumed.
                    facts = {name: getattr(solved_cell, name) for name in CELL_FACTS}
                    journal.append(cell, facts | {"rows": fresh}, {"coef": solved_cell.coef})
                yield solved_cell

    def _at_once(self, journal: Journal | None) -> Iterator[Told]:
        """Yield the cells solved by several workers, after a first cell whose time is measured."""
        work, count, measured = self._work(journal), len(self.rows), 0
        limit = self.prepared.settings.limit
        fits_apart = limit is None or 2 * self.workers * PROCESS_BYTES <= limit
        if count >= MEASURED_CELLS * self.workers and fits_apart:
            # 1. Solve the first cell alone, in a worker: its time
            # decides between threads and processes.
            began = time.monotonic()
            yield from run(self.workers, work, range(1), self._stopped.set)
            measured, seconds = 1, time.monotonic() - began
            # 2. Threads are ready at once; processes take seconds to start.
            if processes_pay(seconds, count - 1, self.workers):
                yield from self._by_processes(journal, measured)
                return
        yield from run(self.workers, work, range(measured, count), self._stopped.set)

    def _by_processes(self, journal: Journal | None, first: int) -> Iterator[Told]:
        # The journal is read first, so that only missing cells are sent to processes.
        cells = range(first, len(self.rows))
        states = {cell: self._read_cell(journal, cell, self._data(cell)) for cell in cells}
        fresh = [cell for cell, (saved, _) in states.items() if saved is None]
        tasks = (self._task(cell) for cell in fresh)
        solved_cells = run_apart(
            self.workers, CellSolver.of(self.prepared, self.workers), tasks, logger=logger
        )
        for saved, data_digest in states.values():
            # Results come in the order of the tasks, which is the order of the missing cells.
            yield (saved, None) if saved is not None else (next(solved_cells), data_digest)

    def _work(self, journal: Journal | None) -> Callable[[int], Told]:
        """Return a function that solves a cell, and computes its digest if there is a journal."""

        def rule(history: Sequence[Row]) -> StopReason | None:
            # Ends all solvers after the fit has failed or been interrupted.
            return "callback" if self._stopped.is_set() else None

        solver = CellSolver.of(self.prepared, self.workers, rule)

        def work(cell: int) -> Told:
            # A worker may begin a cell after another one has failed.
            if self._stopped.is_set():
                raise RuntimeError("stopped: the fit lacks cells")
            data = self._data(cell)
            saved, data_digest = self._read_cell(journal, cell, data)
            return (solver(self._task(cell, data)), data_digest) if saved is None else (saved, None)

        return work

    def _read_cell(
        self, journal: Journal | None, cell: int, data: TrainingData
    ) -> tuple[SolvedCell | None, str | None]:
        """Return the solved cell in a journal, if any, and the digest of its data."""
        if journal is None:
            return None, None
        # The digest finds a file whose rows have changed since the journal was written.
        own = digest(data.rows) + tensor_digest(data.targets) + tensor_digest(data.weights)
        part = journal.part(cell)
        if part is None:
            return None, own
        facts, tensors = part
        if facts.get("rows") != own:
            raise another_problem(journal.path, ["rows"])
        # The solved cell from a record of a journal; None if the record is invalid.
        coef = tensors.get("coef")
        values: dict[str, Any] = {name: facts.get(name) for name in CELL_FACTS}
        is_cell = (
            coef is not None and coef.dtype == xp.float64 and coef.shape == data.targets.shape
            and bool(xp.isfinite(coef).all())
            and isinstance(values["iteration"], int) and values["reason"] in FINAL_REASONS
            and isinstance(values["shift"], float) and isinstance(values["residual"], float | None)
        )  # fmt: skip
        solved = SolvedCell(coef, **values) if coef is not None and is_cell else None
        # A damaged part is solved again, not refused: the rest of the journal is still good.
        if solved is None:
            journal.warn_of_damage(cell)
        return solved, own

    def _data(self, cell: int) -> TrainingData:
        return self.rows.of(cell, self.prepared.data)

    def _task(self, cell: int, data: TrainingData | None = None) -> CellTask:
        """Return the task of a cell; if `data` is None, with copied rows for another process."""
        # The remaining time is divided among the cells that wait, so that none is left out.
        waiting = len(self.rows) - cell
        seconds_left = (self.prepared.ends - time.monotonic()) * min(1.0, self.workers / waiting)
        rng = self.rng
        if len(self.rows) > 1:
            # A generator per cell: the result depends neither on the
            # order nor on the number of workers.
            rng = RandomStream(self.seed ^ cell)
        if data is None:
            cell_data = self._data(cell)
            # A view would be pickled with the rows of all cells.
            rows = as_rows(xp.copy(self.rows.X[self.rows.bounds(cell)]))
            data = TrainingData(rows, cell_data.targets, cell_data.weights)
        return CellTask(data, time.monotonic() + seconds_left, rng)
