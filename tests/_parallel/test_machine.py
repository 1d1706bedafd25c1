"""Memory that this process may use: of pretended machines, containers and batch systems."""

from __future__ import annotations

import os
import resource

import pytest

from gramian._parallel import machine as machine
from gramian._parallel.machine import machine_memory

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V2, V1 = "memory.max", "memory.limit_in_bytes"
UNLIMITED = "9223372036854771712"
"""What version 1 says where there is no limit."""


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Return a function that writes files below a root of its own, and gives what is found."""

    def run(files: dict[str, str]) -> int:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        monkeypatch.setattr(machine, "SYSTEM_ROOT", tmp_path)
        return machine_memory()

    return run


def mounted(top: str, folder: str, kind: str, options: str) -> str:
    other = "23 1 0:21 / /proc rw,nosuid shared:12 - proc proc rw"
    return f"{other}\n35 31 0:32 {top} {folder} rw,relatime shared:9 - {kind} cgroup {options}"


@pytest.mark.parametrize("name", ["", "memory/"])
def test_a_container_with_a_namespace_of_its_own(found, name):
    file = f"sys/fs/cgroup/{name}{V1 if name else V2}"
    assert found({file: "123456789", "proc/self/cgroup": "0::/\n4:memory:/"}) == 123_456_789


@pytest.mark.parametrize("text", ["max", UNLIMITED, ""])
def test_no_limit(found, text):
    assert found({f"sys/fs/cgroup/{V2}": text, f"sys/fs/cgroup/memory/{V1}": text}) == WHOLE


def test_no_proc_and_no_sys(found):
    assert found({}) == WHOLE


@pytest.mark.parametrize("tight", ["batch", "batch/job_7", "batch/job_7/step_0"])
def test_all_groups_above_hold_in_version_2(found, tight):
    """A batch system limits the job, and the process is in a group below it."""
    limits = {f"sys/fs/cgroup/{g}/{V2}": "max" for g in ("batch", "batch/job_7/step_0")}
    limits[f"sys/fs/cgroup/{tight}/{V2}"] = "7000000"
    limits[f"sys/fs/cgroup/batch/job_8/{V2}"] = "1000"  # of others
    assert found({"proc/self/cgroup": "0::/batch/job_7/step_0", **limits}) == 7_000_000


def test_the_group_of_memory_counts_in_version_1(found):
    limits = {f"sys/fs/cgroup/memory/{g}{V1}": UNLIMITED for g in ("", "docker/")}
    limits[f"sys/fs/cgroup/memory/docker/id/{V1}"] = "7000000"
    limits[f"sys/fs/cgroup/memory/other/{V1}"] = "1000"
    groups = "5:devices:/other\n4:cpu,memory:/docker/id\n1:name=systemd:/other\n0::/other"
    assert found({"proc/self/cgroup": groups, **limits}) == 7_000_000


@pytest.mark.parametrize(
    ("kind", "options", "groups", "name"),
    [
        ("cgroup2", "rw", "0::/docker/id/below", V2),
        ("cgroup", "rw,cpu,memory", "4:cpu,memory:/docker/id/below", V1),
    ],
)
@pytest.mark.parametrize("tight", ["", "below/"])
def test_what_is_mounted_may_be_a_part_and_anywhere(found, kind, options, groups, name, tight):
    """A container without a namespace sees its group on top of the folder, by a longer name."""
    assert (
        found(
            {
                "proc/self/cgroup": groups,
                "proc/self/mountinfo": mounted("/docker/id", "/mnt/groups", kind, options),
                f"mnt/groups/{tight}{name}": "7000000",
            }
        )
        == 7_000_000
    )


def test_a_group_that_is_not_to_be_seen(found):
    limits = {f"sys/fs/cgroup/{V2}": "7000000", f"sys/fs/{V2}": "1000"}
    assert found({"proc/self/cgroup": "0::/../sibling", **limits}) == 7_000_000


def test_a_limit_of_addresses_counts_beyond_those_taken(found):
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit, page = 1 << 42, resource.getpagesize()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        assert found({"proc/self/statm": f"{limit // page - 1000} 10 10 1 0 10 0"}) == 1000 * page
        assert found({"proc/self/statm": f"{limit // page + 1} 10 10 1 0 10 0"}) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert found({}) == WHOLE
