"""The first steps of a newcomer: a fresh clone and an empty home, `make demo`, then `make test`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ..lib.results import ROOT, write

STEPS = ("make .venv", "make demo", "make test")
KEPT = ("PATH", "LANG", "PIP_", "SSL_CERT", "REQUESTS_CA", "http", "HTTP", "no_proxy", "NO_PROXY")
NOTES = """\
Seconds of each command in a fresh clone of the last commit with an empty HOME. Of the environment
only PATH, the language, and what pip needs to reach its index (PIP_*, proxies, certificates) are
kept. `make .venv` is the part of `make demo` that downloads and installs."""


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    return kept | {"HOME": str(home)}


def timed(command: str, folder: Path, home: Path) -> dict[str, Any]:
    start = time.perf_counter()
    done = subprocess.run(
        command.split(), cwd=folder, env=environment(home), stdout=sys.stderr, check=False
    )
    row = {"command": command, "seconds": time.perf_counter() - start, "exit": done.returncode}
    print(f"{command}: {row['seconds']:.0f} s, exit status {done.returncode}", flush=True)
    return row


def main(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="gramian-", dir=options.work) as work:
        home, clone = Path(work) / "home", Path(work) / "gramian"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = [timed(step, clone, home) for step in STEPS]
        left = sorted(path.name for path in home.iterdir())
    if any(row["exit"] for row in rows):
        raise SystemExit("a command failed; nothing is written")
    notes = f"{NOTES} Left behind in HOME: {', '.join(left) or 'nothing'}."
    if not options.quick:
        write("newcomer", {"Fresh clone": rows}, notes)
