"""Results: tables as compressed JSON, to be read again, and as Markdown, to be read by people."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("gramian", "torch", "numpy", "scipy", "scikit-learn", "pyarrow")

Row = dict[str, Any]


def machine() -> str:
    """Return the name of the processor, its cores and its widest instructions."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.is_file() else ""
    keys = ("model name", "cpu family", "model")
    lines = [re.search(rf"^{key}\s*: (.+)$", flags, re.MULTILINE) for key in keys]
    # Virtual machines shorten the name; family and model determine the generation.
    processor = "{} (family {}, model {})".format(
        *(line[1].strip() if line else "?" for line in lines)
    )
    widest = next((name for name in ("avx512f", "avx2") if name in flags), platform.machine())
    return f"{processor}, {os.cpu_count()} cores, {widest.replace('avx512f', 'AVX-512').upper()}"


def commit() -> str:
    """Return the commit of the working tree, with a plus if files have changed since."""
    try:
        git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def about() -> dict[str, str]:
    """Describe when, where and with which versions a benchmark ran."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := installed_version(name))},
    }


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed, as torch need not be."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def read(name: str) -> dict[str, list[Row]]:
    """Return the tables in ``results/NAME.json.gz``, none if there is no such file."""
    path = RESULTS / f"{name}.json.gz"
    if not path.is_file():
        return {}
    tables: dict[str, list[Row]] = json.loads(gzip.decompress(path.read_bytes()))["tables"]
    return tables


def write(
    name: str, tables: dict[str, list[Row]], notes: str, hidden: tuple[str, ...] = ()
) -> None:
    """Write tables to ``results/NAME.json.gz`` and, but those hidden, to ``results/NAME.md``."""
    RESULTS.mkdir(exist_ok=True)
    facts = about()
    record = {"about": facts, "notes": notes, "tables": tables}
    (RESULTS / f"{name}.json.gz").write_bytes(compressed(record))
    text = [f"# {name}", "", notes, ""]
    for title, rows in tables.items():
        if title in hidden:
            continue
        text += [f"## {title}", "", markdown(rows), ""]
    text += [", ".join(f"{key} {value}" for key, value in facts.items()) + ".", ""]
    (RESULTS / f"{name}.md").write_text("\n".join(text))


def compressed(record: Any) -> bytes:
    """Return JSON, a value on each line, compressed; without a time, equal records equal bytes."""
    text = json.dumps(record, indent=1) + "\n"
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def shown(row: Row) -> Row:
    """Print a row on one line, and return it."""
    cells = (f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items())
    print("  ".join(cells), flush=True)
    return row


def markdown(rows: list[Row]) -> str:
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
    # A bar in a text would end the cell.
    return f"{value:,.0f}" if isinstance(value, float) else str(value).replace("|", "\\|")
