"""Memory limit of this process, and the clock of deadlines, in wall or CPU seconds."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

SYSTEM_ROOT = Path("/")
"""Folder of /proc and /sys; tests replace it."""

CACHED_SECONDS = 1.0
"""Seconds for which control group limits are cached: a fit reads them ten times."""


def machine_memory() -> int:
    """Return the memory that this process may use, in bytes.

    The minimum of the memory of the machine, the limits of the control groups of this process
    (containers, batch systems), and ``ulimit -v`` minus the addresses in use.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # The time is a part of the cache key: the limits are read again when it changes.
    groups = _group_limits(SYSTEM_ROOT, int(time.monotonic() / CACHED_SECONDS))
    return min([machine, *groups, *_address_limits(SYSTEM_ROOT)])


@functools.lru_cache(maxsize=1)
def _group_limits(root: Path, moment: int) -> tuple[int, ...]:
    """Return the limits of the control groups around this process, versions 2 and 1."""
    limits = []
    for path in _limit_files(root):
        # A missing file, or the text "max", is no limit.
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(path.read_text()))
    return tuple(limits)


@functools.cache
def _limit_files(root: Path) -> tuple[Path, ...]:
    """Return the files with limits of the control groups around this process.

    In its own namespace, as in most containers, a process sees its group as the root. Otherwise
    /proc/self/cgroup names the group, and the limits of all its ancestors also apply. The result
    is cached: the search takes as long as a fit of a hundred rows.
    """
    # A dict is an ordered set here: several mounts may show the same group.
    files: dict[Path, None] = {}
    groups = dict(_groups(root))
    for version, top, mount in _mounts(root):
        group = Path(groups.get(version, "/"))
        # A mount shows only the groups below its root cgroup, by paths relative to that root.
        below = group.relative_to(top) if group.is_relative_to(top) else Path()
        # The path of a group outside the namespace begins with
        # "/..": this mount does not contain it.
        if ".." in below.parts:
            below = Path()
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        # An absolute right operand would replace the root.
        folder = root / mount.lstrip("/")
        # The limits of all groups above the group of the process apply, too.
        for part in (".", *below.parts):
            folder /= part
            files[folder / name] = None
    return tuple(files)


def _groups(root: Path) -> Iterator[tuple[int, str]]:
    """Yield (cgroup version, cgroup) of this process for memory; see man 7 cgroups."""
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, group = line.split(":", 2)
        if number == "0":
            yield 2, group
        elif "memory" in controllers.split(","):
            yield 1, group


def _mounts(root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (cgroup version, root cgroup, mount point) of each mount with the memory controller.

    See man 5 proc_pid_mountinfo.
    """
    # The usual mount points come first, in case /proc has no information.
    yield 2, "/", "/sys/fs/cgroup"
    yield 1, "/", "/sys/fs/cgroup/memory"
    for line in _lines(root / "proc/self/mountinfo"):
        # " - " ends a variable number of optional fields: only the other fields have fixed places.
        fields_before, _, right = line.partition(" - ")
        top, folder = fields_before.split()[3:5]
        kind, *_, options = right.split()
        if kind == "cgroup2":
            yield 2, top, folder
        # In version 1, each controller has a mount of its own, which names it among its options.
        elif kind == "cgroup" and "memory" in options.split(","):
            yield 1, top, folder


def _address_limits(root: Path) -> Iterator[int]:
    """Yield the bytes of address space left by ``ulimit -v`` (RLIMIT_AS), libraries included."""
    # `resource` exists on Unix alone.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return
        # The first number of statm is the size of the address space in pages; elsewhere than on
        # Linux there is no such file, and the sum is 0.
        taken_pages = sum(int(line.split()[0]) for line in _lines(root / "proc/self/statm"))
        # The limit may have been lowered below the addresses in use.
        yield max(0, limit - taken_pages * resource.getpagesize())


def _lines(path: Path) -> list[str]:
    """Return the lines of a system file; none if it does not exist."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


_IS_CPU_TIME: ContextVar[bool] = ContextVar("is_cpu_time", default=False)


def read_seconds() -> float:
    """Return the seconds of `time.monotonic`; inside `cpu_time`, of `time.process_time`.

    CPU time is the sum of all threads of this process, and excludes waiting. A busy machine hardly
    changes it.
    """
    return time.process_time() if _IS_CPU_TIME.get() else time.monotonic()


@contextlib.contextmanager
def cpu_time(is_used: bool = True) -> Iterator[None]:
    """Let `read_seconds` count CPU time while the context lasts, if `is_used`."""
    token = _IS_CPU_TIME.set(is_used)
    try:
        yield
    finally:
        _IS_CPU_TIME.reset(token)
