"""The command line on a Dask cluster of this machine: seconds and memory beside its plan."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from ..lib.results import Row

COMMAND = (
    "--target", "y", "--landmarks", "1000", "--lengthscale", "4", "--penalty", "1e-7",
    "--max-iter", "4", "--tol", "1e-12",
)  # fmt: skip


def through_the_command_line(folder: Path, way: tuple[str, ...], out: Path) -> Row:
    """Plan and fit; the memory of the command and of its workers."""
    script = str(Path(sys.executable).parent / "gramian")
    planned = said_by([script, "plan", str(folder), *COMMAND, *way, "--json"])
    started, peaks = time.perf_counter(), dict[int, int]()
    command = [script, "fit", str(folder), *COMMAND, *way, "--out", str(out), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        own = psutil.Process(process.pid)
        while process.poll() is None:
            for one in [own, *children(own)]:
                peaks[one.pid] = max(peaks.get(one.pid, 0), resident(one))
            time.sleep(0.5)
        said = json.loads(process.stdout.read() if process.stdout else "")
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    seconds = time.perf_counter() - started
    others = [peak for pid, peak in peaks.items() if pid != process.pid]
    return {
        "seconds": seconds, "planned": planned["seconds"], "iterations": said["iterations"],
        "MB here": peaks[process.pid] / 1e6, "MB of a worker": max(others, default=0) / 1e6,
        "MB of a worker planned": planned["worker_bytes"] / 1e6,
    }  # fmt: skip


def said_by(command: list[str]) -> Any:
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
