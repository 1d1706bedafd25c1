"""Journal: the parts of a fit that are ready, appended to a file from which it goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import torch
from jaxtyping import Float
from torch import Tensor

from .._atomic import write_atomically
from .state_file import KEY, check_is_checkpoint

logger = logging.getLogger("gramian")

FORMAT = 1
KIND = "journal"
LENGTH_BYTES = 8
ANOTHER = (
    "Delete it, or use Checkpoint(..., resume=False); if landmarks are random, set random_state"
)
"""What to do with a checkpoint that is not that of this fit; cells are random as landmarks are."""

PARTS = {"part", "shape", "sha256"}
MOST_FACTS = 1 << 16
"""Bytes that the facts of a part may take; a length beyond is damage."""


class Journal:
    """Parts of a fit, kept in a file as they are ready; used inside a ``with`` statement.

    A part is appended once it is ready: a kill costs the parts under way. What it has left of a
    part that was being written is cut off, and a part that was damaged since is not there.

    Parameters
    ----------
    path : Path
        Of a checkpoint.
    about : mapping of str to str
        What the fit is, by the names of its properties.
    resume : bool
        Whether to go on from a file that is there; else it is replaced.

    Raises
    ------
    ValueError
        If the file is no checkpoint, one of another kind, of another fit, or of a newer version.
    """

    def __init__(self, path: Path, about: Mapping[str, str], *, resume: bool) -> None:
        check_is_checkpoint(path)
        self.path, self._about = path, dict(about)
        self._file: BinaryIO | None = None
        self._parts: dict[int, tuple[dict[str, Any], int]] = {}
        if not (resume and path.exists()):
            header = json.dumps({KEY: KIND, "format": FORMAT, "about": self._about}).encode()
            write_atomically(path, lambda part: _written(part, _sized(header)))

    def __enter__(self) -> Journal:
        self._file = self.path.open("r+b")
        try:
            self._check_header(self._file)
            self._find_parts(self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __len__(self) -> int:
        """Give the number of parts."""
        return len(self._parts)

    def part(self, number: int) -> tuple[dict[str, Any], Float[Tensor, "n t"]] | None:
        """Return the facts and the coefficients of a part; None if it is not there, or damaged."""
        if number not in self._parts:
            return None
        facts, at = self._parts[number]
        self._opened.seek(at)
        data = self._opened.read(_bytes_of(facts))
        if _digest(facts, data) != facts["sha256"]:
            logger.warning("%s: part %d is damaged, and is computed again", self.path, number)
            return None
        coef = torch.frombuffer(bytearray(data), dtype=torch.float64).reshape(facts["shape"])
        return facts, coef

    def append(self, number: int, facts: Mapping[str, Any], coef: Float[Tensor, "n t"]) -> None:
        """Write a part.

        Raises
        ------
        OSError
            If the disk is full: what was written before stays.
        """
        data = coef.double().contiguous().numpy().tobytes()
        whole = {**facts, "part": number, "shape": list(coef.shape)}
        whole["sha256"] = _digest(whole, data)
        self._opened.seek(0, os.SEEK_END)
        try:
            self._opened.write(_sized(json.dumps(whole).encode()) + data)
            self._opened.flush()
        except OSError as error:
            raise OSError(
                error.errno, f"could not write {self.path}: {error.strerror or error}"
            ) from error

    @property
    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise RuntimeError("a journal is used inside a with statement")
        return self._file

    def _check_header(self, file: BinaryIO) -> None:
        header = _read(file)
        if header is None or header.get(KEY) != KIND:
            raise ValueError(
                f"{self.path} is a checkpoint of another kind of fit; give the name of another "
                "file, or delete it to start again"
            )
        if header["format"] > FORMAT:
            raise ValueError(f"{self.path} was written by a newer version of gramian: upgrade it")
        before = header["about"]
        differs = [name for name in self._about if before.get(name) != self._about[name]]
        if differs:
            raise ValueError(
                f"{self.path} is a checkpoint of another problem: {', '.join(differs)} differ. "
                f"{ANOTHER}"
            )

    def _find_parts(self, file: BinaryIO) -> None:
        """Note where each part is, and cut off the rest."""
        end, size = file.tell(), file.seek(0, os.SEEK_END)
        file.seek(end)
        while (facts := _read(file)) is not None and set(facts) >= PARTS:
            at = file.tell()
            last = at + _bytes_of(facts)
            if last > size:
                break
            self._parts[int(facts["part"])] = (facts, at)
            end = file.seek(last)
        if end < size:
            logger.warning("%s: %d bytes of a part were lost", self.path, size - end)
            file.truncate(end)


def is_journal(path: Path) -> bool:
    """Return whether a file is that of a journal."""
    with path.open("rb") as file:
        header = _read(file)
    return header is not None and header.get(KEY) == KIND


def _written(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _sized(text: bytes) -> bytes:
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _read(file: BinaryIO) -> dict[str, Any] | None:
    """Return the JSON that begins here; None if it is none, or cut off."""
    length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if not 0 < length <= MOST_FACTS:
        return None
    try:
        found = json.loads(file.read(length))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _bytes_of(facts: Mapping[str, Any]) -> int:
    n, t = facts["shape"]
    return 8 * int(n) * int(t)


def _digest(facts: Mapping[str, Any], data: bytes) -> str:
    rest = {name: value for name, value in facts.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + data).hexdigest()
