"""Tables on object stores, by their address: Parquet is streamed, other files are copied once."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from ..._files.atomic import remove_with
from ..._messages.display import without_secrets
from ..formats import Parquet, format_of
from ..rows.file_stamp import RemotePath
from ..tables.base import Table

_URI_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PATH_OF_URI = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")


def address_of(x: str | Path) -> str | None:
    """Return an address with a scheme, such as ``s3://``; None for a local path.

    A `Path` of an address, as the command line makes it, has lost a slash, which is restored unless
    there is a folder ``s3:``.
    """
    if isinstance(x, Path):
        # A folder named s3: may exist, and a path through it looks like such an address.
        is_address = _PATH_OF_URI.match(str(x)) and not Path(x.parts[0]).is_dir()
        return _PATH_OF_URI.sub(r"\1://", str(x)) if is_address else None
    return x if _URI_PATTERN.match(x) else None


def is_uri(x: str | Path) -> bool:
    """Return whether something is an address with a scheme; see `address_of`."""
    return address_of(x) is not None


def remote_table(uri: str, where: str | None = None) -> Table:
    """Open a table on an object store.

    - `uri`: address for `pyarrow.fs.FileSystem.from_uri`: ``s3://bucket/folder/table.parquet``,
      ``gs://...``, also with options such as ``?region=eu-west-1``; ``file://`` is this machine.
    - `where`: subject of error messages; the address by default.

    Raise FileNotFoundError or ValueError if there is no file at the address, or it cannot be
    reached.

    Parquet, a file or a folder, is read through the network in each pass. Another file is copied
    into a temporary one that is removed with the table.
    """
    shown = without_secrets(uri)
    where = shown if where is None else where
    try:
        system, place = pyarrow.fs.FileSystem.from_uri(uri)
        kind = system.get_file_info(place).type
    except (pa.ArrowInvalid, OSError) as error:
        # The error repeats the address with its passwords; `from None` keeps it out of the
        # traceback.
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
    return _copy_file(start, where)


def _below(folder: RemotePath) -> list[RemotePath]:
    """Return the paths of all files below a folder of an object store."""
    selector = pyarrow.fs.FileSelector(folder.place, recursive=True)
    file_paths = [info.path for info in folder.system.get_file_info(selector) if info.is_file]
    uri = folder.uri.rstrip("/")
    # Names from the folder on are the same in the system and in the address.
    start = len(folder.place.rstrip("/"))
    return [RemotePath(folder.system, place, uri + place[start:]) for place in file_paths]


def _copy_file(file: RemotePath, where: str) -> Table:
    folder = Path(tempfile.mkdtemp(prefix="gramian-"))
    try:
        path = folder / file.name
        with file.system.open_input_stream(file.place) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        table = format_of(path).table(path, where)
    # Also after Ctrl-C: the folder has no owner yet that would remove it.
    except BaseException:
        shutil.rmtree(folder)
        raise
    remove_with(table, folder)
    return table
