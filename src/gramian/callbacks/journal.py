"""Journal: the finished parts of a fit in a file, from which the fit resumes.

The file is a header, then one record for each part: a mark, the number of the part, the length and
the SHA-256 digest of its payload, and the payload, a safetensors file with JSON in its metadata. A
reader searches for the marks, so damage destroys only the records that it touches.

A database does not limit damage in this way. Measured with SQLite, one row for each part: of 150
bits flipped in the file header and in headers of pages, 19 made all 100 rows unreadable and one
lost 8; a commit takes 14 ms on a disk where a record of a journal takes 1.6 ms.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.numpy

from .. import _arrays as xp
from .._arrays import Array
from .._files.atomic import write_atomically
from .._messages.errors import TextError
from .checkpoint_file import JOURNAL_START, KEY_WITHIN_BYTES, STATE_KEY, check_is_checkpoint

logger = logging.getLogger("gramian")

JOURNAL_FORMAT = 2
JOURNAL_KIND = "journal"


def another_problem(path: Path, differences: Sequence[str]) -> ValueError:
    """Return the error about a checkpoint of another fit.

    Its remedy names ``random_state``, without which landmarks, cells and searches differ from run
    to run.
    """
    return TextError(
        "{} is a checkpoint of another problem: {} differ. Delete it, or use "
        "{Checkpoint(..., resume=False)}; for random landmarks, set {random_state}",
        path,
        ", ".join(differences),
    )


FILE_HEADER = JOURNAL_START + b'{"%s": "%s", "format": %d}\n' % (
    STATE_KEY.encode(), JOURNAL_KIND.encode(), JOURNAL_FORMAT
)  # fmt: skip
HEADER_COPIES = 3
"""Copies of the header at the start: a flipped bit leaves two."""

HEADER_PATTERN = re.compile(
    rb'"%s": "%s", "format": (\d+)' % (STATE_KEY.encode(), JOURNAL_KIND.encode())
)
RECORD_MARK = bytes.fromhex("8f6772616d69616ed1a5f03e9b7c42e6")
"""Start of a record: 16 bytes that occur in other data once in 10^38 places by chance."""

RECORD_FIELDS = struct.Struct("<qQ32s")
"""Fields after the mark: number of the part, bytes of the payload, digest of all three."""

Part = tuple[dict[str, Any], dict[str, Array]]
"""The facts of a part, which JSON can hold, and its tensors."""


class Journal:
    """Finished parts of a fit, each appended to a file and flushed to the disk.

    A kill loses only unfinished parts. A part that was cut off or damaged is missing; all others
    remain readable.

    - `path`: file of the checkpoint.
    - `about`: digests and settings of the fit, by the names of its properties, written to each
      record.
    - `resume`: whether to resume from an existing file; otherwise it is replaced.

    Raise ValueError if the file is not a checkpoint, or belongs to another kind of fit, another fit
    or another version.

    Cost: opening reads the file once, to find the marks. A record of 8 kB takes 1.6 ms, mostly for
    the flush.
    """

    def __init__(self, path: Path, about: Mapping[str, str], *, resume: bool) -> None:
        self.path, self._about = path, dict(about)
        self._places: dict[int, list[tuple[int, int]]] = {}
        check_is_checkpoint(path)
        if not (resume and path.exists()):
            write_atomically(path, lambda part: part.write_bytes(HEADER_COPIES * FILE_HEADER))
            return
        if not is_journal(path):
            raise ValueError(
                f"{path} is a checkpoint of another kind of fit; use another file name, or delete "
                "it to start again"
            )
        version = _version(self.path)
        if version is not None and version > JOURNAL_FORMAT:
            raise ValueError(f"{self.path} was written by a newer version of gramian: upgrade it")
        if version is not None and version < JOURNAL_FORMAT:
            raise ValueError(
                f"{self.path} was written by an older version of gramian, whose journals this "
                "version cannot read: finish the fit with that version, or delete the file to "
                "start again"
            )
        for number, place, length in _records(path):
            # A part that was damaged and computed again has two records; `_read` tries the last
            # one first.
            self._places.setdefault(number, []).append((place, length))
        # One readable part is enough to refuse the journal of another fit before any work.
        for number in self._places:
            if self._read(number) is not None:
                break

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self._places)

    def part(self, number: int) -> Part | None:
        """Return the facts and the tensors of a part; None if it is missing or damaged.

        Raise ValueError if the part belongs to another fit.
        """
        part = self._read(number)
        if part is None and number in self._places:
            self.warn_of_damage(number)
        return part

    def warn_of_damage(self, number: int) -> None:
        """Log that a part cannot be used."""
        logger.warning("%s: part %d is damaged and will be computed again", self.path, number)

    def append(self, number: int, facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> None:
        """Write a part, and wait until it is on the disk.

        If the disk is full or missing, log a warning: the fit is worth more than its journal, and a
        resumed fit computes the part again.
        """
        text = json.dumps({"about": self._about, "facts": facts})
        # safetensors refuses tensors that share memory.
        own = {name: xp.copy_by_rows(xp.to_host(tensor)) for name, tensor in tensors.items()}
        payload = safetensors.numpy.save(own, {STATE_KEY: text})
        digest = _digest(number, payload)
        fields = RECORD_FIELDS.pack(number, len(payload), digest)
        record = memoryview(RECORD_MARK + fields + payload)
        try:
            with self.path.open("ab", buffering=0) as file:
                # An unbuffered write may be short.
                while record:
                    record = record[file.write(record) :]
                # A part counts as done when this returns, so it must survive a power failure.
                os.fsync(file.fileno())
        except OSError as error:
            reason = error.strerror or error
            logger.warning("could not write part %d to %s: %s", number, self.path, reason)

    def _read(self, number: int) -> Part | None:
        """Return the last undamaged record of a part; None without one."""
        for place, length in reversed(self._places.get(number, [])):
            with self.path.open("rb") as file:
                file.seek(place)
                digest = file.read(RECORD_FIELDS.size)[-32:]
                payload = file.read(length)
            # The mark may occur in other data by chance; the digest decides.
            content = _unpack(payload) if _digest(number, payload) == digest else None
            if content is not None:
                about, facts, tensors = content
                differs = [name for name in self._about if about.get(name) != self._about[name]]
                if differs:
                    raise another_problem(self.path, differs)
                return facts, tensors
        return None


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, of any version."""
    return _version(path) is not None


def _version(path: Path) -> int | None:
    """Return the format in most copies of the header; None for other files."""
    with path.open("rb") as file:
        # The majority: a flipped bit changes one copy.
        versions = HEADER_PATTERN.findall(file.read(KEY_WITHIN_BYTES))
    return int(max(versions, key=versions.count)) if versions else None


def _records(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield number, place of the fields and length of the payload of each record."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for mark in re.finditer(re.escape(RECORD_MARK), content):
            place = mark.end()
            available = len(content) - place - RECORD_FIELDS.size
            # A record cut off within its fields counts as lost.
            number, length = 0, 1
            if available >= 0:
                number, length, _ = RECORD_FIELDS.unpack_from(content, place)
            if length <= available:
                yield number, place, length
            else:
                logger.warning("%s: %d bytes of a part were lost", path, len(content) - place)


def _digest(number: int, payload: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<qQ", number, len(payload)) + payload).digest()


def _unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Array]] | None:
    """Return the contents of a payload with a valid digest; None if it was forged."""
    try:
        tensors = safetensors.numpy.load(payload)
        end = 8 + int.from_bytes(payload[:8], "little")
        header = json.loads(json.loads(payload[8:end])["__metadata__"][STATE_KEY])
        return dict(header["about"]), dict(header["facts"]), tensors
    # Bytes with a right digest may still be no file of tensors, and safetensors and JSON raise
    # errors of many types.
    except Exception:
        return None
