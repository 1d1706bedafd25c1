"""Tables on object stores, by their address: Parquet is streamed, other files are copied once."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.fs

from ..._display import without_secrets
from ..rows.temporary import remove_with
from ..tables.base import Table
from . import Parquet, format_of

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PATH_OF_URI = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")


def address_of(x: str | Path) -> str | None:
    """Return an address with a scheme, such as ``s3://``; None of a path of this machine.

    A `Path` of an address, as the command line makes it, has lost a slash: it gets it back, unless
    there is a folder of the name before the slash.
    """
    if isinstance(x, Path):
        is_address = _PATH_OF_URI.match(str(x)) and not Path(x.parts[0]).is_dir()
        return _PATH_OF_URI.sub(r"\1://", str(x)) if is_address else None
    return x if _URI.match(x) else None


def is_uri(x: str | Path) -> bool:
    """Return whether something is an address with a scheme; see `address_of`."""
    return address_of(x) is not None


@dataclass(frozen=True)
class RemotePath:
    """A file of an object store, opened and named like one of this machine.

    Attributes
    ----------
    system : pyarrow.fs.FileSystem
    place : str
        In that system.
    uri : str
        For error messages, without passwords.
    """

    system: Any
    place: str
    uri: str

    def open(self) -> Any:
        """Open the file for reading, anywhere in it."""
        return self.system.open_input_file(self.place)

    def size_and_time(self) -> tuple[int, int]:
        """Return bytes, and nanoseconds since 1970, as far as the store tells them: else zeros."""
        info = self.system.get_file_info(self.place)
        if info.type == pyarrow.fs.FileType.NotFound:
            raise FileNotFoundError(f"there is no file {self}")
        return info.size or 0, info.mtime_ns or 0

    @property
    def name(self) -> str:
        """Last part of the address."""
        return PurePosixPath(self.place).name

    def __str__(self) -> str:
        """Return the address."""
        return self.uri


def remote_table(uri: str, where: str | None = None) -> Table:
    """Open a table on an object store.

    Parameters
    ----------
    uri : str
        As `pyarrow.fs.FileSystem.from_uri` takes it: ``s3://bucket/folder/table.parquet``,
        ``gs://...``, also with options such as ``?region=eu-west-1``; ``file://`` is this machine.
    where : str, optional
        Subject of error messages; the address by default.

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError, ValueError
        If nothing is there, or it cannot be reached.

    Notes
    -----
    Parquet, a file or a folder, is read through the network in each pass. Another file is copied
    into a temporary one that is removed with the table.
    """
    shown = without_secrets(uri)
    where = shown if where is None else where
    try:
        system, place = pyarrow.fs.FileSystem.from_uri(uri)
        kind = system.get_file_info(place).type
    except (pa.ArrowInvalid, OSError) as error:
        reason = without_secrets(str(error).splitlines()[0])
        raise ValueError(
            f"{shown} cannot be reached: {reason}; check the address, and credentials and region "
            "as the store's own tools use them"
        ) from None
    if kind == pyarrow.fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no file or folder {shown}")
    start = RemotePath(system, place, shown)
    if kind == pyarrow.fs.FileType.Directory:
        return Parquet().remote(start, _below(start), where)
    if isinstance(format_of(start.name), Parquet):
        return Parquet().remote(start, [start], where)
    return _copied(start, where)


def _below(folder: RemotePath) -> list[RemotePath]:
    """Return all files below a folder."""
    selector = pyarrow.fs.FileSelector(folder.place, recursive=True)
    found = [info.path for info in folder.system.get_file_info(selector) if info.is_file]
    uri = folder.uri.rstrip("/")
    start = len(folder.place.rstrip("/"))
    return [RemotePath(folder.system, place, uri + place[start:]) for place in found]


def _copied(file: RemotePath, where: str) -> Table:
    folder = Path(tempfile.mkdtemp(prefix="gramian-"))
    try:
        path = folder / file.name
        with file.system.open_input_stream(file.place) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        table = format_of(path).table(path, where)
    except BaseException:
        shutil.rmtree(folder)
        raise
    remove_with(table, folder)
    return table
