"""Memory limit of this process: the machine, its container or ulimit -v."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

SYSTEM_ROOT = Path("/")
"""Folder of /proc and /sys; tests replace it."""

CACHED_SECONDS = 1.0
"""Seconds for which control group limits are cached: a fit reads them ten times."""


def machine_memory() -> int:
    """Return the memory that this process may use, in bytes.

    It is the least of the memory of the machine, the limits of the control groups of this process
    (containers, batch systems), and ``ulimit -v`` minus the addresses in use.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    groups = _group_limits(SYSTEM_ROOT, int(time.monotonic() / CACHED_SECONDS))
    return min([machine, *groups, *_address_limits(SYSTEM_ROOT)])


@functools.lru_cache(maxsize=1)
def _group_limits(root: Path, moment: int) -> tuple[int, ...]:
    """Return the limits of the control groups around this process, versions 2 and 1."""
    limits = []
    for path in _limit_files(root):
        with contextlib.suppress(OSError, ValueError):  # no such file, or the limit "max"
            limits.append(int(path.read_text()))
    return tuple(limits)


@functools.cache
def _limit_files(root: Path) -> tuple[Path, ...]:
    """Return the files with limits of the control groups around this process.

    In its own namespace, as in most containers, a process sees its group as the top one. Otherwise
    /proc/self/cgroup names the group, and the limits of all groups above it also apply. The result
    is cached: the search takes as long as a fit of a hundred rows.
    """
    files: dict[Path, None] = {}
    groups = dict(_groups(root))
    for version, top, mount in _mounts(root):
        group = Path(groups.get(version, "/"))
        below = group.relative_to(top) if group.is_relative_to(top) else Path()
        if ".." in below.parts:  # this mount does not contain the group
            below = Path()
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        folder = root / mount.lstrip("/")
        for part in (".", *below.parts):
            folder /= part
            files[folder / name] = None
    return tuple(files)


def _groups(root: Path) -> Iterator[tuple[int, str]]:
    """Yield the version of control groups and the group of this process; man 7 cgroups."""
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, group = line.split(":", 2)
        if number == "0":
            yield 2, group
        elif "memory" in controllers.split(","):
            yield 1, group


def _mounts(root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield version, topmost group and folder of each mount for memory; man 5 proc_pid_mountinfo.

    The usual folders come first, in case /proc has no information.
    """
    yield 2, "/", "/sys/fs/cgroup"
    yield 1, "/", "/sys/fs/cgroup/memory"
    for line in _lines(root / "proc/self/mountinfo"):
        fields_before, _, right = line.partition(" - ")
        top, folder = fields_before.split()[3:5]
        kind, *_, options = right.split()
        if kind == "cgroup2":
            yield 2, top, folder
        elif kind == "cgroup" and "memory" in options.split(","):
            yield 1, top, folder


def _address_limits(root: Path) -> Iterator[int]:
    """Yield the addresses left by ``ulimit -v`` (RLIMIT_AS), which also counts libraries."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return
        taken_pages = sum(int(line.split()[0]) for line in _lines(root / "proc/self/statm"))
        yield max(0, limit - taken_pages * resource.getpagesize())


def _lines(path: Path) -> list[str]:
    """Return the lines of a system file; none if it does not exist."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
