"""Checkpoint: the state of a solver in a file, for exact resumption."""

from __future__ import annotations

import logging
import time
import weakref
from pathlib import Path
from typing import Any

from .. import _arrays as xp
from .._files.atomic import check_local, check_output
from .._messages.checks import as_count, as_positive
from .._messages.errors import TextError
from ..problems import Problem
from ..solvers import Solver, State
from ..solvers.loop.state import move_state
from .checkpoint_file import Saved, check_is_checkpoint, check_state, read_state, save_state
from .fingerprint import fingerprint
from .journal import another_problem, is_journal

logger = logging.getLogger("gramian")


class Checkpoint:
    """Save the state regularly; resume from the file after a crash.

    A fit that was killed, and is run again, resumes from the last saved state. The result is the
    same: to the last bit on the same machine with the same number of threads, to rounding on
    others. The file is replaced only once the new one is complete, so a kill during a write does no
    harm. The last state is always saved, even if the run ends early: Ctrl-C loses only the
    iteration that it interrupts.

    Use it for fits that you cannot afford to repeat.

    Parameters
    ----------
    path : str or Path
        Local path. A file that is not a checkpoint is never overwritten: ValueError.
    every : int, default=1
        Iterations between two saves.
    resume : bool, default=True
        Whether estimators resume from the file if it exists.
    every_seconds : float, optional
        Least seconds between two saves, in addition to `every`.

    Attributes
    ----------
    best : State or None
        Best state so far, saved with the last state. A `KeepBest` sets it, and starts from the best
        state of the file.

    Notes
    -----
    A checkpoint of another problem is refused: the digests of all rows, centers, targets and
    weights must match, and so must kernel, shapes, penalty and the class of the solver. Landmarks
    drawn at random need a ``random_state``. Parameters of the solver (another preconditioner starts
    from the coefficients), a function that augments batches and the engine are not compared. The
    file has its own digest, which reveals damage.

    A resumed solver also compares the state with the problem, see `Solver.verify`, because digests
    do not detect all differences.

    If a state cannot be written, because the disk is full, the log has a warning: the fit
    continues, and tries to write the next state.

    A fit by cells appends each cell to the file once it is solved, independently of `every`; a kill
    loses only unfinished cells, see `Journal`. A search, such as `KernelRidgeCV`, appends its
    trials and last fits: they are not repeated, and their seconds count as before.

    Cost: one pass over the rows for their digest, when a state is first saved or read, at about
    1.5 GB/s (rows in a Parquet file: a pass over the file); one pass of the solver after a
    resumption.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.callbacks import Checkpoint
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("gaussian", lengthscale=3.0, penalty=1e-6, landmarks=100, random_state=0)
    >>> whole = est.fit(X, y).dual_coef_
    >>> est = est.set_params(callbacks=[Checkpoint("fit.state")], tol=0.2).fit(X, y)
    >>> begun = est.n_iter_
    >>> est = est.set_params(tol="auto").fit(X, y)  # resumes from the file
    >>> est.history_[0]["iteration"] == begun, bool((est.dual_coef_ == whole).all())
    (True, True)
    """

    def __init__(
        self,
        path: str | Path,
        every: int = 1,
        resume: bool = True,
        every_seconds: float | int | None = None,
    ) -> None:
        check_local(path)
        self.path, self.every, self.resume = Path(path), as_count(every, "every"), resume
        self.every_seconds = (
            None if every_seconds is None else as_positive(every_seconds, "every_seconds")
        )
        # A weak reference: a problem may have all rows on a device, which this object must not
        # keep there after the fit.
        self._known: tuple[weakref.ref[Problem], dict[str, str]] | None = None
        self._waiting: tuple[Problem, State] | None = None
        self._saved: float | None = None
        self._failed = False
        self.best: State | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the problem, and with it the data, out of copies and pickles."""
        return self.__dict__ | {"_known": None, "_waiting": None, "_saved": None, "best": None}

    def __call__(self, problem: Problem, state: State) -> None:
        """Write the state if a save is due; otherwise remember it."""
        self._waiting = (problem, state)
        # The state is remembered first, so that `finish` can write it after an interruption.
        if state.iteration % self.every == 0 and self._is_time():
            self.finish()

    def finish(self) -> None:
        """Write the last state, if it is not yet written; `solve` calls this at any end of a run.

        Raises
        ------
        ValueError
            If the first state would replace a file that is no checkpoint.
        """
        if self._waiting is None:
            return
        # A write that fails is not repeated for the same state.
        (problem, state), self._waiting = self._waiting, None
        # A state that is not finite must not replace one from which a fit can resume.
        if not bool(xp.isfinite(state.coef).all()):
            return
        about = self._fingerprint(problem)
        try:
            check_is_checkpoint(self.path)
            save_state(self.path, state, about, self.best)
        except (OSError, ValueError) as error:
            # Before the first save, a file that is no checkpoint is an error of the user. Later
            # it must not end a fit of hours.
            if isinstance(error, ValueError) and self._saved is None:
                raise
            self._warn(error)
        else:
            self._failed = False
        self._saved = time.monotonic()

    def _warn(self, error: OSError | ValueError) -> None:
        """Log that a state could not be written, once until a write succeeds."""
        if not self._failed:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            logger.warning("the checkpoint could not be written, and the fit continues: %s", reason)
        self._failed = True

    def _is_time(self) -> bool:
        if self.every_seconds is None or self._saved is None:
            return True
        return time.monotonic() - self._saved >= self.every_seconds

    def restore(self, problem: Problem, solver: Solver[Any, Any]) -> State | None:
        """Return the saved state; None without a file, or with ``resume=False``.

        Set `best` to the best state of the file, if it has one.

        Raises
        ------
        ValueError
            If the file is no checkpoint, is damaged or belongs to another problem or solver.
        OSError
            If no file can be written to the path.
        """
        self.best = None
        check_is_checkpoint(self.path)
        check_output(self.path)
        if not (self.resume and self.path.exists()):
            return None
        if is_journal(self.path):
            raise ValueError(
                f"{self.path} is a checkpoint of a fit by cells or of a search; use another file "
                "name, or delete it to start again"
            )
        saved = read_state(self.path)
        self._check_is_of(saved, problem, solver)
        try:
            check_state(saved.state, problem)
            if saved.best is not None:
                check_state(saved.best, problem)
            # Digests do not detect every difference, so the solver compares the state with the
            # problem.
            solver.verify(problem, move_state(saved.state, problem.targets.device))
        except ValueError as error:
            raise TextError("{} is a damaged checkpoint: {}", self.path, error) from error
        if saved.best is not None:
            self.best = move_state(saved.best, problem.targets.device)
        return saved.state

    def _check_is_of(self, saved: Saved, problem: Problem, solver: Solver[Any, Any]) -> None:
        """Raise ValueError if a checkpoint belongs to another problem or solver."""
        current = self._fingerprint(problem)
        differs = [name for name in current if saved.about.get(name) != current[name]]
        if type(saved.state) is not solver.state_type:
            differs = differs or ["the solver"]
        elif saved.version == 1:
            raise TextError(
                "{} was written by an older version of gramian, which stored no digest of all "
                "rows. Delete it to start again, or solve with "
                "{state=State(0, load_state(path).coef)}",
                self.path,
            )
        if differs:
            raise another_problem(self.path, differs)

    def _fingerprint(self, problem: Problem) -> dict[str, str]:
        if self._known is None or self._known[0]() is not problem:
            self._known = (weakref.ref(problem), fingerprint(problem))
        return self._known[1]
