"""Small files that need much memory, and the memory of commands that read them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gramian import KernelModel, kernels
from gramian._arrays import RandomStream
from gramian.cells import TreeCells
from gramian.model.cells import CellCenters

from ..lib.results import Row

LIMIT_MB = 500
"""What --memory-limit allows; libraries alone take 300 MB."""

COMMAND = """
import sys
from gramian.cli import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()  # getrusage counts the parent's memory, too
print(code, int(status.split("VmHWM:")[1].split()[0]) // 1000)
"""
FIT = ("--target", "y", "--landmarks", "20", "--lengthscale", "1", "--penalty", "1e-3")


def write_line(folder: Path) -> tuple[Path, list[str]]:
    """Write a compressed line of 300 MB."""
    path = folder / "line.csv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(300):
            file.write(b"a" * 10**6)
    return path, ["fit", str(path), *FIT, "--out", str(folder / "line.model")]


def write_texts(folder: Path) -> tuple[Path, list[str]]:
    """Write 400 equal texts of 1 MB."""
    path, x = folder / "texts.parquet", np.arange(400.0)
    table = pa.table({"x": x, "y": np.sin(x), "text": ["a" * 10**6] * 400})
    pq.write_table(table, path, compression="zstd")
    return path, ["fit", str(path), *FIT, "--out", str(folder / "texts.model")]


def write_cells(folder: Path, splits: int = 1023) -> tuple[Path, list[str]]:
    """Write a model of cells to all of which each of 4,000 rows belongs."""
    path, data = folder / "cells.model", folder / "rows.npy"
    child = np.arange(1, 2 * splits + 1).reshape(splits, 2)
    child = np.where(child < splits, child, splits - 1 - child)
    bands = np.full((splits,), 9.0, dtype=np.float32)
    direction = np.full((splits, 2), 0.5**0.5, dtype=np.float32)
    cells = CellCenters(TreeCells(direction, -bands, bands, child), np.arange(splits + 2))
    rng = RandomStream(0)
    centers, coef = (rng.standard_normal((splits + 1, k), np.float32) for k in (2, 1))
    KernelModel(kernels.Gaussian(1.0), centers, coef, cells=cells).save(path)
    np.save(data, rng.standard_normal((4000, 2), np.float32))
    return path, ["predict", str(path), str(data), "--out", str(folder / "predicted.npy")]


BOMBS = {"line": write_line, "texts": write_texts, "cells": write_cells}


def measure_bomb(name: str, folder: Path) -> Row:
    """Return the peak memory of a command that reads a file, and its exit code."""
    path, arguments = BOMBS[name](folder)
    command = [sys.executable, "-c", COMMAND, *arguments, "--memory-limit", f"{LIMIT_MB}MB"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, peak = map(int, done.stdout.split()[-2:])
    return {"file": path.name, "kB": path.stat().st_size / 1e3, "exit code": code,
            "limit, MB": LIMIT_MB, "peak, MB": peak, "of the limit": peak / LIMIT_MB}  # fmt: skip
