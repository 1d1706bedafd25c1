"""What the benchmarks share: clocks, the data folder, and results as JSON and Markdown."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DATA = ROOT.parent / "shared" / "data"
PACKAGES = ("gramian", "torch", "numpy", "scipy", "scikit-learn", "pyarrow")


@dataclass
class Seconds:
    """Wall time, and CPU time of all threads of this process."""

    wall: float = float("inf")
    cpu: float = float("inf")

    def least(self, other: Seconds) -> Seconds:
        return Seconds(min(self.wall, other.wall), min(self.cpu, other.cpu))


@contextmanager
def clock() -> Iterator[Seconds]:
    """Time what is inside; the figures are there once it is left."""
    seconds = Seconds()
    wall, cpu = time.perf_counter(), time.process_time()
    yield seconds
    seconds.wall, seconds.cpu = time.perf_counter() - wall, time.process_time() - cpu


def interleaved(
    works: dict[str, Callable[[], Any]], *, rounds: int, slow: tuple[str, ...] = ()
) -> dict[str, Seconds]:
    """Give the least seconds of each, taking turns, so that a busy machine is unfair to nobody.

    Those named in `slow` take part in two rounds only, without a warm-up.
    """
    least = {name: Seconds() for name in works}
    for name, work in works.items():
        if name not in slow:
            work()
    for i in range(rounds):
        for name, work in works.items():
            if name in slow and i >= 2:
                continue
            with clock() as seconds:
                work()
            least[name] = least[name].least(seconds)
    return least


def give_back() -> None:
    """Return freed memory to the system, where the C library can: a fit would reuse it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def forget_peak() -> None:
    """Let the peak of this process start again from what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(what: str) -> int:
    """Return resident bytes of this process: "RSS" now, or "HWM", the peak."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"Vm{what}:")[1].split()[0]) * 1024


def data_set(folder: str, name: str) -> Path | None:
    """Return a real data set, or None, saying so, where it is not there."""
    path = Path(folder) / f"{name}.parquet"
    if path.is_file():
        return path
    print(f"skipped: there is no {path}; give the folder of the data sets with --data")
    return None


def machine() -> str:
    """Describe the processor in general terms."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.is_file() else ""
    widest = next((name for name in ("avx512f", "avx2") if name in flags), platform.machine())
    return f"{os.cpu_count()} cores, {widest.replace('avx512f', 'AVX-512').upper()}"


def commit() -> str:
    """Return the commit of the working tree, with a plus if it has been changed since."""
    try:
        git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def about() -> dict[str, Any]:
    """Say when, where and with what a benchmark ran."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def write(
    name: str, tables: dict[str, list[dict[str, Any]]], notes: str, hidden: tuple[str, ...] = ()
) -> None:
    """Write tables to ``results/NAME.json`` and, but those hidden, to ``results/NAME.md``."""
    RESULTS.mkdir(exist_ok=True)
    facts = about()
    record = {"about": facts, "notes": notes, "tables": tables}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    text = [f"# {name}", "", notes, ""]
    for title, rows in tables.items():
        if title in hidden:
            continue
        text += [f"## {title}", "", markdown(rows), ""]
    text += [", ".join(f"{key} {value}" for key, value in facts.items()) + ".", ""]
    (RESULTS / f"{name}.md").write_text("\n".join(text))


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return a table; columns are the keys of the rows, in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(c)) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else _whole(value)


def _whole(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
