"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from .._messages.display import display_text

if sys.platform != "win32":  # on Windows, files of killed processes are not removed
    import fcntl


ADDRESS_START = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)/(/?)")
"""Start of an address, such as ``s3://``; a `Path` of it has lost a slash."""


def check_local(path: str | Path) -> None:
    """Raise ValueError if a path is an address, where no file is written.

    With one slash it is one unless there is a folder of the name before the slash.
    """
    start = ADDRESS_START.match(str(path))
    if start is None or (not start[2] and Path(start[1]).is_dir()):
        return
    if start[1].lower() == "file:":
        raise ValueError(
            f"{display_text(path)} is an address, but files are written to plain paths: give the "
            "path without file://, such as /folder/name"
        )
    raise ValueError(
        f"{display_text(path)} is an address, but only tables are read from object stores, and "
        "nothing is written there: give a path of this machine, and copy the file with the "
        "store's own tools"
    )


def check_output(path: str | Path, *, folder: bool = False) -> None:
    """Raise an error if a file cannot be written to `path`: every output comes by here.

    It writes nothing, so that a command calls it before the work of hours, too.

    Parameters
    ----------
    path : str or Path
        An existing file can be replaced. One folder may be missing, which is made later, but not
        one in the root of the file system.
    folder : bool, default=False
        Whether the output is a folder of files, not a file.

    Raises
    ------
    ValueError
        If it is an address.
    OSError
        If it is a folder, a pipe or a device; if more than one folder is missing; if this user may
        not write there.
    """
    check_local(path)
    target = Path(os.path.realpath(path))
    if target.exists() and not folder:
        _check_regular(target)
    parent = target if folder and target.exists() else target.parent
    if not parent.exists() and parent.parent != Path(parent.anchor):  # none is made in the root
        parent = parent.parent
    if not parent.exists():
        raise OSError(
            errno.ENOENT, f"there is no folder {display_text(parent)}; make it, or give another"
        )
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise OSError(errno.EACCES, f"{display_text(parent)} is no writable folder")


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new file in the folder of `path`, then replace `path` by it.

    Parameters
    ----------
    path : str or Path
        An existing file keeps its permissions and, as far as this user may, its owner; a
        symbolic link stays, and its target is replaced. See `check_output`.
    write : callable
        Given the path of the temporary file, writes it.

    Raises
    ------
    ValueError
        If it is the address of an object store.
    OSError
        If the disk is full or the folder cannot be written to. Whatever was at `path` before is
        still there, unchanged.

    Notes
    -----
    The temporary file is hidden, ``.NAME.xxxxxxxx.part``, and locked while it is written. A file
    without a lock is a remainder of a killed process; the next call for `path` removes it.
    """
    target = Path(os.path.realpath(path))
    try:
        check_output(path)
        target.parent.mkdir(exist_ok=True)
        before = _status(target)
        _remove_leftovers(target)
        part, descriptor = _new_part(target, before)
        try:
            write(part)
            os.fsync(descriptor)
            _liken(descriptor, before)
            part.replace(target)
        finally:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    except OSError as error:
        unchanged_note = " The file that was there is unchanged." if target.is_file() else ""
        raise OSError(
            error.errno,
            f"could not write {display_text(path)}: {error.strerror or error}.{unchanged_note}",
        ) from error
    _flush_folder(target.parent)


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _check_regular(target: Path) -> None:
    """Raise OSError for a folder, a device or a pipe: a new file would destroy it."""
    if target.is_dir():
        raise OSError(errno.EISDIR, f"{display_text(target)} is a directory; it must be a file")
    if not target.is_file():
        raise OSError(errno.EINVAL, f"{display_text(target)} is not a regular file")


def _new_part(target: Path, before: os.stat_result | None) -> tuple[Path, int]:
    """Return the path of a new file in the folder of `target`, and its descriptor with the lock."""
    mode = 0o666 if before is None else 0o600  # the system's umask removes permissions
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
    while True:
        part = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(part, flags, mode)
            _lock(descriptor)
            if os.fstat(descriptor).st_nlink:
                return part, descriptor
            os.close(descriptor)  # another process took it for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-z_]{{8}}\.part")
    with os.scandir(target.parent) as entries:
        leftovers = [entry.path for entry in entries if name.fullmatch(entry.name)]
    for path in leftovers:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR)
            try:
                if _lock(descriptor):
                    os.unlink(path)
            finally:
                os.close(descriptor)


def _lock(held: int) -> bool:
    """Return whether a file is now locked by this process: not if another one has it."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # also on file systems that know no locks: nothing is removed there
        return False
    return True


def _liken(held: int, before: os.stat_result | None) -> None:
    """Give a file the owner, as far as possible, and the permissions of the one it replaces."""
    if before is None or sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        os.fchown(held, before.st_uid, before.st_gid)
    os.fchmod(held, stat.S_IMODE(before.st_mode))


def _flush_folder(folder: Path) -> None:
    """Make a new name last beyond a power cut, where the system can; the file is whole anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
