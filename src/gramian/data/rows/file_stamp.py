"""Size and time of a file, which reveal a change during a fit, and files of object stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.display import display_text


@dataclass(frozen=True)
class RemotePath:
    """A file of an object store, with the methods of a local file.

    - `place`: path in that file system.
    - `uri`: address for error messages, without passwords.
    """

    system: Any
    place: str
    uri: str

    def open(self) -> pa.NativeFile:
        """Open the file for reading, anywhere in it."""
        return self.system.open_input_file(self.place)

    def size_and_time(self) -> tuple[int, int]:
        """Return bytes, and nanoseconds since 1970; zeros if the store does not report them."""
        info = self.system.get_file_info(self.place)
        # By its name, because most processes need no `pyarrow.fs`.
        if info.type.name == "NotFound":
            raise FileNotFoundError(f"there is no file {self}")
        # Some stores tell neither; zeros then equal each other, and no change is found.
        return info.size or 0, info.mtime_ns or 0

    @property
    def name(self) -> str:
        """Last part of the address."""
        return PurePosixPath(self.place).name

    def __str__(self) -> str:
        """Return the address."""
        return self.uri


@dataclass(frozen=True)
class FileStamp:
    """Size and modification time of a file.

    A fit reads its files several times: targets, then features, then in each iteration. A fit to
    rows of two versions of a file would be a fit to data that never existed.

    - `size`: size in bytes.
    - `time_ns`: time of the last modification, in nanoseconds since 1970.
    """

    size: int
    time_ns: int

    @classmethod
    def of(cls, path: Path | RemotePath) -> FileStamp:
        """Return the stamp of a file now. Cost: some microseconds, or a request to its store."""
        if isinstance(path, Path):
            status = path.stat()
            return cls(status.st_size, status.st_mtime_ns)
        return cls(*path.size_and_time())

    def check(self, path: Path | RemotePath) -> None:
        """Raise ValueError, with the name and the change, if a file has another stamp now."""
        try:
            current = FileStamp.of(path)
        except FileNotFoundError:
            raise change_error(path, "it no longer exists") from None
        self.compare(current, path)

    def compare(self, current: FileStamp, path: Path | RemotePath) -> None:
        """Raise ValueError if the present stamp of a file differs."""
        if current.size != self.size:
            raise change_error(path, f"it had {self.size:,} bytes and now has {current.size:,}")
        if current != self:
            # Only all of its bytes could tell a file that was touched from one with other values.
            moment = datetime.fromtimestamp(current.time_ns / 1e9, UTC)
            when = moment.isoformat(" ", "milliseconds")
            raise change_error(
                path, f"its modification time is now {when}: it was written again, or touched"
            )

    @contextmanager
    def require_unchanged(self, path: Path | RemotePath) -> Iterator[None]:
        """Context that checks a file before and after reading; a change may cause a read error."""
        self.check(path)
        try:
            yield
        # Reading a file in the midst of a change fails in any way: the change is the better reason.
        except Exception:
            self.check(path)
            raise
        self.check(path)


def change_error(path: Path | RemotePath, change: str) -> ValueError:
    """Return the error about a file that changed while it was read."""
    return ValueError(
        f"{display_text(path)} has changed since it was opened: {change}. All passes must read the "
        "same rows: start again, and do not write, touch or sync the file until the end"
    )


@dataclass(frozen=True)
class MappedFile:
    """A file that an array is mapped from.

    A map keeps its file: replacing or removing the file does not change the map. Only a write to
    the file in place does.

    - `inode`: device and number of the file, which differ for another file of this name.
    """

    path: Path
    inode: tuple[int, int]
    stamp: FileStamp

    @classmethod
    def of(cls, array: Any) -> MappedFile | None:
        """Return the file of an array, if it still has its name and nobody writes through it."""
        while array is not None and not isinstance(array, np.memmap):  # a view of a map is no map
            # Slices through `np.asarray` are plain arrays, but keep their map as a base.
            array = getattr(array, "base", None)
        # An array that is mapped for writing may change its own file, and the stamp would differ.
        if not (isinstance(array, np.memmap) and array.mode in ("r", "c") and array.filename):
            return None
        path = Path(array.filename)
        status = _status(path)
        # The name may lead to another file by now. The map keeps the old one open, so that the file
        # of this name is the mapped one only if it is open in this process.
        if status is None or not _is_open(_inode(status)):  # unlinked, moved or replaced
            return None
        return cls(path, _inode(status), FileStamp(status.st_size, status.st_mtime_ns))

    def check(self) -> None:
        """Raise ValueError if the file was written in place; see `FileStamp.check`."""
        status = _status(self.path)
        # A missing or replaced name is no change: the map has the old contents.
        if status is not None and _inode(status) == self.inode:
            self.stamp.compare(FileStamp(status.st_size, status.st_mtime_ns), self.path)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_open(inode: tuple[int, int]) -> bool:
    """Return whether this process has a file open, as it has mapped files.

    Cost: a microsecond for each open file. Windows has no list of open files, but does not allow to
    remove or replace a mapped file.
    """
    try:
        # Linux and macOS list the open descriptors of the process in this folder.
        names = os.listdir("/dev/fd")
    except OSError:
        return True
    for name in names:
        with suppress(OSError):  # the list itself was open
            if _inode(os.fstat(int(name))) == inode:
                return True
    return False
