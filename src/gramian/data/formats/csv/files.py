"""Sources of text besides one file: several files, folders, and standard input."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from pathlib import Path

from ...._files.temporary import remove_with
from ...tables.base import Table
from ...tables.read_options import DEFAULT_OPTIONS, ReadOptions
from .table import text_table

STANDARD_INPUT = "-"
"""Path of a table that is read from standard input."""

TEXT_SUFFIXES = (
    ".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.bz2", ".csv.zst",
)  # fmt: skip


def text_files(path: Path) -> list[Path] | None:
    """Return the files of text of a pattern such as ``days/*.csv``, or of a folder; else None.

    Parameters
    ----------
    path : Path
        A folder with other files, such as Parquet, is a table of another format.

    Raises
    ------
    FileNotFoundError
        If no file matches a pattern.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
        return files if files and all(map(_is_text, files)) else None
    if path.exists() or not glob.has_magic(str(path)):
        return None
    files = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not files:
        raise FileNotFoundError(f"there is no file {path}")
    return files if all(map(_is_text, files)) else None


def _is_text(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(TEXT_SUFFIXES)


def standard_input(options: ReadOptions = DEFAULT_OPTIONS) -> Table:
    """Read a table of text from standard input, which can be read only once.

    Parameters
    ----------
    options : ReadOptions

    Returns
    -------
    Table
        Its text is in a temporary file until the table is read.
    """
    handle, name = tempfile.mkstemp(prefix="gramian-", suffix=".csv")
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    try:
        table = text_table(Path(name), "standard input", options)
    except BaseException:
        Path(name).unlink()
        raise
    remove_with(table, Path(name))
    return table
