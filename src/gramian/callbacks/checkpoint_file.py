"""File of a solver state: its format, and the checks before a solver resumes from it.

A safetensors file with the tensors of a `State`. Its metadata contain a JSON header, with the class
of the state, all other values and the caller's description, and a digest of the file. Format 3 adds
the best state. Format 1, without the digest, can still be read.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from .. import _arrays as xp
from .._arrays import Array
from .._files.atomic import check_local
from .._files.tensors import DamagedFile, read_tensors, write_tensors
from ..problems import Problem
from ..solvers import State
from ..solvers.base import solvers
from ..solvers.loop.state import ADDED_LATER

STATE_FORMAT = 3
WITHOUT_BEST = 2
"""Format of a file without a best state, which older versions can read."""
STATE_KEY = "gramian_state"
JOURNAL_START = b"gramian\n"
"""First bytes of a `Journal`; a file of a state starts with the length of its header."""
BEST_PREFIX = "best."
"""Prefix of the names of the tensors of the best state."""
KEY_WITHIN_BYTES = 1 << 12
"""Number of bytes at the start of a file that must contain the key of a checkpoint."""


@dataclass(frozen=True)
class Saved:
    """The contents of a checkpoint.

    - `about`: description by the caller.
    - `version`: the format of the file.
    - `best`: the coefficients with the smallest error on held-out rows, if it was measured.
    """

    state: State
    about: dict[str, str]
    version: int
    best: State | None


def save_state(
    path: str | Path,
    state: State,
    about: dict[str, str] | None = None,
    best: State | None = None,
) -> None:
    """Write a state, and the best state, to a file atomically; see `load_state`."""
    tensors: dict[str, Array] = {}
    values = _flatten(state, "", tensors)
    header: dict[str, Any] = {"format": WITHOUT_BEST, "type": type(state).__name__}
    header |= {"values": values, "about": about}
    if best is not None:
        # Only a file with a best state needs the new format: older versions read the others.
        header |= {"format": STATE_FORMAT, "best": _flatten(best, BEST_PREFIX, tensors)}
    write_tensors(path, tensors, {STATE_KEY: json.dumps(header)})


def load_state(path: str | Path) -> State:
    """Return the state in a file, for ``solve(..., state=load_state(path))``.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, is cut off, was changed since it was written, contains an
        invalid state, or was written by a newer version.
    """
    return read_state(Path(path)).state


def read_state(path: Path) -> Saved:
    """Read a checkpoint. Raises the same errors as `load_state`."""
    check_is_checkpoint(path)
    try:
        # Without a limit tensors are read and not mapped: a state must not change with its file.
        contents = read_tensors(path, most=sys.maxsize)
        header = json.loads(contents.metadata.pop(STATE_KEY))
        version = header["format"]
        if version > STATE_FORMAT:
            raise _Newer(f"{path} was written by a newer version of gramian: upgrade it")
        # The digest covers metadata, too. Keys that are left were not written by `save_state`.
        if contents.metadata or (version > 1 and contents.digest is None):
            raise ValueError("its digest is missing")
        types = {solvers[name].state_type.__name__: solvers[name].state_type for name in solvers}
        cls = types[header["type"]]
        state = _restore(cls, header["values"], contents.tensors, "")
        best = None
        if "best" in header:
            best = _restore(State, header["best"], contents.tensors, BEST_PREFIX)
            check_state(best)
        # `_restore` has removed the tensors of the state; the others are not of it.
        if contents.tensors:
            raise ValueError(f"{cls.__name__} has no {', '.join(contents.tensors)}")
        about = {str(name): str(value) for name, value in (header["about"] or {}).items()}
        check_state(state)
    except (OSError, _Newer):
        raise
    except (DamagedFile, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is a damaged checkpoint of gramian ({type(error).__name__}: {error}); delete "
            "it to start again"
        ) from error
    return Saved(state, about, version, best)


class _Newer(ValueError):
    """Error for a file that only a newer version can read."""


def check_is_checkpoint(path: Path) -> None:
    """Raise ValueError if a file exists that is not a checkpoint: it must not be replaced."""
    check_local(path)
    if not path.exists():
        return
    # Opening a pipe would wait for a writer.
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise ValueError(f"{path} is {kind}; a checkpoint needs the name of a file")
    with path.open("rb") as file:
        start = file.read(KEY_WITHIN_BYTES)
    # The length of a header, or the start of a journal, then JSON: no table begins like this.
    if (start[8:9] == b"{" or start[:8] == JOURNAL_START) and f'"{STATE_KEY}"'.encode() in start:
        return
    raise ValueError(
        f"{path} is not a checkpoint of gramian, and is not overwritten; use another file name"
    )


def check_state(state: State, problem: Problem | None = None) -> None:
    """Raise ValueError if tensors are not finite, or if their shapes disagree with a problem."""
    sizes: dict[str, int] = {}
    if problem is not None:
        (n, m), t = problem.K.shape, problem.targets.shape[1]
        sizes = {"n": n, "m": m, "p": m, "t": t}
    _check_fields(state, sizes)


def _field_types(cls: type) -> dict[str, Any]:
    """Return the types of the fields of a state, with the types of jaxtyping for arrays."""
    # Annotations of arrays have no meaning without jaxtyping, which only a resumed fit imports.
    import jaxtyping

    kinds = {name: getattr(jaxtyping, name) for name in ("Bool", "Float", "Int")}
    return get_type_hints(cls, localns=kinds)


def _check_fields(state: Any, sizes: dict[str, int]) -> None:
    hints = _field_types(type(state))
    for f in fields(state):
        value = getattr(state, f.name)
        if xp.is_array(value):
            _check_tensor(f.name, value, hints[f.name], sizes)
        elif is_dataclass(value):
            # A nested state may be in coordinates of its own, with other sizes than the problem.
            _check_fields(value, {name: k for name, k in sizes.items() if name == "t"})
        else:
            _check_value(f.name, value, hints[f.name])


def _check_tensor(name: str, value: Array, hint: Any, sizes: dict[str, int]) -> None:
    if not isinstance(value, hint):
        raise ValueError(f"{name} must be {hint.__name__}, not {value.dtype} {tuple(value.shape)}")
    # The first tensor with a letter sets its size, and the later ones must agree.
    for letter, size in zip(hint.dim_str.split(), value.shape, strict=True):
        if size != sizes.setdefault(letter, size):
            raise ValueError(f"{name} has shape {tuple(value.shape)}, but {letter} must be {size}")
    if not bool(xp.isfinite(value).all()):
        raise ValueError(f"{name} has numbers that are not finite")


def _check_value(name: str, value: Any, hint: Any) -> None:
    if hint is bool:
        good = isinstance(value, bool)
    elif hint in (int, float):
        # By the type itself, as a boolean is an integer to Python; and within 64 bits, which JSON
        # does not limit.
        good = type(value) in ((int,) if hint is int else (int, float)) and not math.isnan(value)
        good = good and (hint is float or 0 <= value < 2**63)
    else:
        good = isinstance(value, dict) and all(
            isinstance(number, int | float) for number in value.values()
        )
    if not good:
        raise ValueError(f"{name} cannot be {value!r}")


def _flatten(state: Any, prefix: str, tensors: dict[str, Array]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for f in fields(state):
        value = getattr(state, f.name)
        if xp.is_array(value):
            tensors[prefix + f.name] = xp.to_host(xp.detach(value))
        elif is_dataclass(value):
            values[f.name] = _flatten(value, f"{prefix}{f.name}.", tensors)
        else:
            values[f.name] = value
    return values


def _restore(cls: type, values: dict[str, Any], tensors: dict[str, Array], prefix: str) -> Any:
    """Return a state from its parts, and remove them from `values` and `tensors`."""
    hints = _field_types(cls)
    restored = {}
    for f in fields(cls):
        hint = hints[f.name]
        # A file of an older version lacks fields that came later: their defaults are the state of
        # such a fit.
        if f.metadata.get(ADDED_LATER) and f.name not in values and prefix + f.name not in tensors:
            continue
        if isinstance(hint, type) and is_dataclass(hint):
            nested = (values.pop(f.name), tensors, f"{prefix}{f.name}.")
            restored[f.name] = _restore(hint, *nested)
        # Annotations of arrays state their axes: `dim_str` tells them from numbers and
        # dictionaries.
        elif hasattr(hint, "dim_str"):
            restored[f.name] = tensors.pop(prefix + f.name)
        else:
            restored[f.name] = values.pop(f.name)
    if values:
        raise ValueError(f"{cls.__name__} has no {', '.join(values)}")
    return cls(**restored)
