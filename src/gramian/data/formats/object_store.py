"""Addresses of files on object stores, and the files themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.fs

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


@dataclass(frozen=True)
class RemotePath:
    """A file of an object store, with the methods of a local file.

    Attributes
    ----------
    system : pyarrow.fs.FileSystem
    place : str
        Path in that file system.
    uri : str
        Address for error messages, without passwords.
    """

    system: Any
    place: str
    uri: str

    def open(self) -> Any:
        """Open the file for reading, anywhere in it."""
        return self.system.open_input_file(self.place)

    def size_and_time(self) -> tuple[int, int]:
        """Return bytes, and nanoseconds since 1970; zeros if the store does not report them."""
        info = self.system.get_file_info(self.place)
        if info.type == pyarrow.fs.FileType.NotFound:
            raise FileNotFoundError(f"there is no file {self}")
        # Some stores tell neither; zeros then equal each other, and no change is found.
        return info.size or 0, info.mtime_ns or 0

    @property
    def name(self) -> str:
        """Last part of the address."""
        return PurePosixPath(self.place).name

    def __str__(self) -> str:
        """Return the address."""
        return self.uri
