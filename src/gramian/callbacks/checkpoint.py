"""Checkpoint: the state of a solver in a file, from which it goes on exactly."""

from __future__ import annotations

import hashlib
import json
import weakref
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .._checks import as_count
from .._tensors import write_tensors
from ..problems import Problem
from ..solvers import Solver, State
from ..solvers.base import solvers

FORMAT = 1
SAMPLE = 1000
"""Rows at the start of the data that are compared when a checkpoint is read."""


class Checkpoint:
    """Save the state every few iterations; resume from the file after a crash.

    Run the same fit again after it was killed, and it goes on from the last saved state to the
    same result: to the last bit on the same machine with as many threads, to rounding elsewhere.
    The file is replaced only once the new one is complete, so a kill in mid-write does no harm. A
    checkpoint of another problem (data, targets, landmarks, kernel, penalty) is refused: landmarks
    drawn at random need a ``random_state``.

    Parameters
    ----------
    path : str or Path
    every : int, default=1
        Iterations between two saves.
    resume : bool, default=True
        Whether estimators go on from the file if it exists.
    """

    def __init__(self, path: str | Path, every: int = 1, resume: bool = True) -> None:
        self.path, self.every, self.resume = Path(path), as_count(every, "every"), resume
        # a problem may hold all rows on a device, for longer than anybody else
        self._known: tuple[weakref.ref[Problem], dict[str, str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the problem, and with it the data, out of copies and pickles."""
        return self.__dict__ | {"_known": None}

    def __call__(self, problem: Problem, state: State) -> None:
        """Write the state if it is its turn."""
        if state.iteration % self.every == 0:
            save_state(self.path, state, self._fingerprint(problem))

    def restore(self, problem: Problem, solver: Solver[Any, Any]) -> State | None:
        """Return the saved state, or None if there is no file or it is not to be used.

        Raises
        ------
        ValueError
            If the file is damaged or belongs to another problem or solver.
        """
        if not (self.resume and self.path.exists()):
            return None
        state, saved = _load(self.path)
        now = self._fingerprint(problem)
        differs = [name for name in now if saved.get(name) != now[name]]
        if differs or type(state) is not solver.state_type:
            what = ", ".join(differs) or "the solver"
            raise ValueError(
                f"{self.path} is a checkpoint of another problem: {what} differ. Delete it, or "
                "use Checkpoint(..., resume=False); if landmarks are random, set random_state"
            )
        return state

    def _fingerprint(self, problem: Problem) -> dict[str, str]:
        if self._known is None or self._known[0]() is not problem:
            self._known = (weakref.ref(problem), fingerprint(problem))
        return self._known[1]


def save_state(path: str | Path, state: State, about: dict[str, str] | None = None) -> None:
    """Write a state to a file atomically; see `load_state`."""
    tensors: dict[str, Tensor] = {}
    values = _flatten(state, "", tensors)
    header = {"format": FORMAT, "type": type(state).__name__, "values": values, "about": about}
    write_tensors(path, tensors, {"gramian_state": json.dumps(header)})


def load_state(path: str | Path) -> State:
    """Return the state in a file, for ``solve(..., state=load_state(path))``.

    Raises
    ------
    ValueError
        If the file is no checkpoint, is cut off, or was written by a newer version.
    """
    return _load(Path(path))[0]


def fingerprint(problem: Problem) -> dict[str, str]:
    """Return digests of what makes two problems the same, by the names of their parts."""
    K = problem.K
    first = next(iter(K.rows.blocks(SAMPLE)))[1]
    centers = K.cols.take(torch.arange(min(K.shape[1], 4 * SAMPLE)))
    return {
        "kernel": json.dumps(K.kernel.to_dict()),
        "shape": str((*K.shape, problem.targets.shape[1], str(K.dtype))),
        "penalty": repr(problem.penalty),
        "rows": _digest(first),
        "centers": _digest(centers),
        "targets": _digest(problem.targets),
        "weights": _digest(problem.weights),
        "landmark weights": _digest(_rounded(getattr(problem, "landmark_weight", None))),
    }


def _rounded(x: Tensor | None) -> Tensor | None:
    """Return three digits: leverage scores, of which weights are made, end differently elsewhere.

    Only preconditioners use them, and none depends on the fourth digit.
    """
    if x is None:
        return None
    unit = 10 ** (x.double().abs().clamp(min=1e-300).log10().floor() - 2)
    return (x / unit).round() * unit


def _digest(x: Tensor | None) -> str:
    if x is None:
        return ""
    dense = x.to_dense() if x.layout != torch.strided else x
    array = dense.detach().cpu().contiguous().numpy()
    return hashlib.sha256(array.data).hexdigest()


def _flatten(state: Any, prefix: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Tensor):
            tensors[prefix + f.name] = (
                value.detach().cpu().clone(memory_format=torch.contiguous_format)
            )
        elif is_dataclass(value):
            values[f.name] = _flatten(value, f"{prefix}{f.name}.", tensors)
        else:
            values[f.name] = value
    return values


def _restore(cls: type, values: dict[str, Any], tensors: dict[str, Tensor], prefix: str) -> Any:
    hints = get_type_hints(cls)
    restored = {}
    for f in fields(cls):
        if prefix + f.name in tensors:
            restored[f.name] = tensors[prefix + f.name]
        elif is_dataclass(hints[f.name]):
            nested = (values[f.name], tensors, f"{prefix}{f.name}.")
            restored[f.name] = _restore(hints[f.name], *nested)
        else:
            restored[f.name] = values[f.name]
    return cls(**restored)


def _load(path: Path) -> tuple[State, dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["gramian_state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header["format"] > FORMAT:
            raise ValueError(f"{path} was written by a newer version of gramian: upgrade it")
        types = {solvers[name].state_type.__name__: solvers[name].state_type for name in solvers}
        state = _restore(types[header["type"]], header["values"], tensors, "")
        about = header["about"] or {}
    except (SafetensorError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is not a checkpoint of gramian, or is damaged ({error}); delete it to start "
            "again"
        ) from error
    return state, about
