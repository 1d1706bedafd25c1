"""Atomic writing, after which a file is either complete or unchanged, and temporary files."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from .._messages.display import display_text

ADDRESS_START = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)/(/?)")
"""Start of an address, such as ``s3://``; a `Path` of it has lost a slash."""

LEFTOVER_AGE_SECONDS = 3600.0
"""Seconds without a write after which a temporary file counts as left by a killed process."""


def check_local(path: str | Path) -> None:
    """Raise ValueError if a path is an address, which cannot be written.

    With a single slash, as in ``s3:/bucket``, it is an address unless a folder ``s3:`` exists.
    """
    # `Path` removes one slash of s3://, so that the start of an address may have one or two.
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
        "nothing can be written to them: give a path on this machine, and copy the file with the "
        "store's own tools"
    )


def check_output(path: str | Path, *, folder: bool = False) -> None:
    """Raise an error if a file cannot be written to `path`.

    The check writes nothing, so that commands can call it before hours of work.

    - `path`: an existing file can be replaced. The last folder may be missing, and is made later,
      unless it is in the root of the file system.
    - `folder`: whether the output is a folder of files, not a file.

    Raise ValueError if `path` is the address of an object store. Raise OSError if it is a folder, a
    pipe or a device; if more than one folder is missing; if this user has no permission to write.
    """
    check_local(path)
    target = Path(os.path.realpath(path))
    # The target of a symbolic link is checked, because it is the file that is replaced.
    if target.exists() and not folder:
        _check_regular(target)
    # A folder that exists must itself be writable; a file or a new folder needs a writable parent.
    parent = target if folder and target.exists() else target.parent
    # One missing folder is made later. A new folder in the root is more likely a mistyped path.
    if not parent.exists() and parent.parent != Path(parent.anchor):
        parent = parent.parent
    if not parent.exists():
        raise OSError(
            errno.ENOENT, f"there is no folder {display_text(parent)}; make it, or give another one"
        )
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise OSError(errno.EACCES, f"{display_text(parent)} is not a writable folder")


def write_atomically(path: str | Path, write: Callable[[Path], object]) -> None:
    """Write a new file in the folder of `path` with `write`, and rename it to `path`.

    - `path`: an existing file keeps its permissions and, if this user has the right, its owner; a
      symbolic link stays, and its target is replaced. See `check_output`.
    - `write`: writes the temporary file at the path of its argument.

    Raise ValueError if it is the address of an object store. Raise OSError if the disk is full or
    the folder is not writable. An earlier file at `path` is unchanged.

    The temporary file is hidden, ``.NAME.xxxxxxxx.part``. A killed process leaves it; calls for
    `path` remove it once an hour has passed since it was written to.
    """
    target = Path(os.path.realpath(path))
    try:
        check_output(path)
        target.parent.mkdir(exist_ok=True)
        # Read before the new file replaces it: its owner and mode are copied to the new file.
        before = _status(target)
        _remove_leftovers(target)
        # A new file gets the permissions that the umask leaves, as files of `open` do. A file that
        # replaces one which may be private is private until it gets the permissions of the old one.
        mode = 0o666 if before is None else 0o600
        part = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        try:
            write(part)
            # The contents must be on the disk before the name leads to them: after a power cut some
            # file systems would otherwise have the new name and an empty file.
            os.fsync(descriptor)
            _copy_attributes(descriptor, before)
            part.replace(target)
        finally:
            os.close(descriptor)
            # After a success the name is gone already; after an error, or Ctrl-C, the part is
            # removed.
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    except OSError as error:
        unchanged_note = " The existing file is unchanged." if target.is_file() else ""
        raise OSError(
            error.errno,
            f"could not write {display_text(path)}: {error.strerror or error}.{unchanged_note}",
        ) from error
    # The file is in its place: a file system that cannot flush folders must not turn this into an
    # error.
    _flush_folder(target.parent)


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _check_regular(target: Path) -> None:
    """Raise OSError for a folder, a device or a pipe, which a new file would destroy."""
    if target.is_dir():
        raise OSError(errno.EISDIR, f"{display_text(target)} is a directory; it must be a file")
    if not target.is_file():
        raise OSError(errno.EINVAL, f"{display_text(target)} is not a regular file")


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of killed processes."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-z_]{{8}}\.part")
    # Listed before any is removed: removing entries during a scan may skip others.
    with os.scandir(target.parent) as entries:
        parts = [entry for entry in entries if name.fullmatch(entry.name)]
    for part in parts:
        with contextlib.suppress(OSError):
            # Another process may be writing a recent one.
            if time.time() - part.stat().st_mtime > LEFTOVER_AGE_SECONDS:
                os.unlink(part)


def _copy_attributes(descriptor: int, before: os.stat_result | None) -> None:
    """Copy the owner, if possible, and the permissions of the replaced file."""
    if before is None or sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        # The mode comes after the owner, because a change of owner clears the setuid and setgid
        # bits. Most users may not change an owner; the file is theirs then.
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _flush_folder(folder: Path) -> None:
    """Make a new name survive a power cut, if the system can; the file is complete anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_with(owner: object, path: Path) -> None:
    """Remove a file or folder when its owner is deleted in the process that created it.

    A forked child has a copy of the owner, and must not remove the file.
    """
    # Also runs at the end of the interpreter, unlike `__del__`, which may be skipped.
    weakref.finalize(owner, _remove, path, os.getpid())


def _remove(path: Path, process: int) -> None:
    if os.getpid() != process:
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
