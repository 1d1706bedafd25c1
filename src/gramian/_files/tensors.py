"""Files of tensors in the safetensors format, with a digest of their contents."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import safe_open

from .. import _arrays as xp
from .._arrays import Array
from .atomic import write_atomically

DTYPE_NAMES = {
    xp.bool: "BOOL",
    xp.uint8: "U8",
    xp.int32: "I32",
    xp.int64: "I64",
    xp.float32: "F32",
    xp.float64: "F64",
}
"""Names of the data types in the safetensors format."""

DIGEST_KEY = "sha256"
"""Metadata key of the digest of the file, computed with zeros as the digits of the digest."""

READ_BYTES = 1 << 26
"""Default largest size of files that are read into memory; larger files are mapped."""

WRITE_BYTES = 1 << 22
"""Bytes that are written and digested at once."""

DATA_ALIGNMENT = 64
"""Alignment of the data, so that the first tensor of a mapped file is aligned."""

BLANK_DIGEST = "0" * 64


class DamagedFile(ValueError):
    """Error for a file that is no file of tensors, is cut off, or was changed."""


@dataclass(frozen=True)
class Contents:
    """Contents of a file of tensors.

    - `metadata`: without the digest.
    - `digest`: None in old files without a digest.
    """

    metadata: dict[str, str]
    tensors: dict[str, Array]
    digest: str | None


def write_tensors(
    path: str | Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file atomically; OSError as in `write_atomically`.

    Tensors must be contiguous and in CPU memory. Tensors are not copied, unlike in the safetensors
    library, which needs twice the memory of all tensors: mapped tensors stay in their files. The
    digest costs as much as writing, about 1.7 GB/s.
    """
    # The format aligns each tensor to its item size, so the widest come first.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    # The digest covers the header too, so that its 64 digits are zeros while it is computed and are
    # filled in at the end, in place.
    header: dict[str, object] = {"__metadata__": {DIGEST_KEY: BLANK_DIGEST, **metadata}}
    start = 0
    for name, tensor in ordered:
        stop = start + xp.size(tensor) * tensor.itemsize
        shape = list(tensor.shape)
        header[name] = {
            "dtype": DTYPE_NAMES[tensor.dtype], "shape": shape, "data_offsets": [start, stop],
        }  # fmt: skip
        start = stop
    text = json.dumps(header).encode()
    # The format allows spaces after the JSON. The data begin after 8 bytes of length and this text:
    # with its end at a multiple of 64, tensors of a mapped file are aligned as new ones are.
    text += b" " * (-(8 + len(text)) % DATA_ALIGNMENT)
    text = len(text).to_bytes(8, "little") + text

    def write(part: Path) -> None:
        digest = hashlib.sha256(text)
        with part.open("wb") as file:
            file.write(text)
            for _, tensor in ordered:
                data = _bytes(tensor)
                # Written and digested piece by piece: each piece is still in the cache when it is
                # digested, and pages of a mapped tensor are read once.
                for at in range(0, len(data), WRITE_BYTES):
                    file.write(data[at : at + WRITE_BYTES])
                    digest.update(data[at : at + WRITE_BYTES])
            # The file does not have its final name yet: no reader finds it without a digest.
            file.seek(text.index(BLANK_DIGEST.encode()))
            file.write(digest.hexdigest().encode())

    write_atomically(path, write)


def read_tensors(path: Path, *, verify: bool = True, most: int | None = None) -> Contents:
    """Read a file into memory if it is small, else map it.

    - `most`: bytes of the largest file that is read into memory, by default `READ_BYTES`.
    - `verify`: whether to compare the digest, if the file has one: about 1.7 GB/s. Mapped tensors
      are then read once.

    Raise DamagedFile if the file is no file of tensors, is cut off, or was changed, and
    OSError if it cannot be read.
    """
    while True:
        with path.open("rb") as file:
            try:
                contents = _contents(path, file, verify, READ_BYTES if most is None else most)
            # A file that was replaced while it was read looks damaged: the error counts only if the
            # path still leads to the file that was opened.
            except DamagedFile:
                if _is_at(path, file):
                    raise
            else:
                if _is_at(path, file):
                    return contents
        # A new file replaced it during reading: read again, as parts of both were read.


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Return whether an open file is still at this path."""
    return os.path.samestat(os.fstat(file.fileno()), path.stat())


def _contents(path: Path, file: BufferedReader, verify: bool, most: int) -> Contents:
    header = _header(file)
    layout = _layout(path, header)
    # The other entries of the layout are tensors, which `_read` walks through.
    metadata = layout.pop("__metadata__")
    saved_digest = metadata.pop(DIGEST_KEY, None)
    hasher = hashlib.sha256(header if saved_digest is None else _blank(header, saved_digest))
    # The size of the open file, not of the path, which may lead to another file by now.
    if os.fstat(file.fileno()).st_size <= most:
        tensors = _read(file, layout, hasher)
    else:
        tensors = _map_tensors(file, layout, len(header))
        # The header was read and digested before; the file continues at its data.
        while verify and (piece := file.read(WRITE_BYTES)):
            hasher.update(piece)
    if verify and saved_digest not in (None, hasher.hexdigest()):
        raise DamagedFile("its digest does not match its contents")
    return Contents(metadata, tensors, saved_digest)


def _header(file: BinaryIO) -> bytes:
    """Read the length of the header and the header."""
    size = file.read(8)
    length = int.from_bytes(size, "little")
    # A length beyond the file would otherwise request that many bytes of memory, up to 2^64.
    if len(size) < 8 or length > os.fstat(file.fileno()).st_size - 8:
        raise DamagedFile("it is shorter than the length in its header")
    return size + file.read(length)


def _layout(path: Path, header: bytes) -> dict[str, Any]:
    """Parse the header, after the safetensors library has checked it."""
    with _damage(), safe_open(path, framework="np") as file:
        # The library checks offsets, shapes and types, but does not return the offsets: the header
        # is parsed a second time for these.
        layout: dict[str, Any] = json.loads(header[8:])
        layout["__metadata__"] = dict(file.metadata() or {})
        return layout


def _blank(header: bytes, digest: str) -> bytes:
    """Return the header with zeros in place of the digest, which was computed from this form."""
    digits = digest.encode()
    # Replacing must change these 64 bytes only: a header in which they occur twice, as in the name
    # of a tensor, was not written by `write_tensors`.
    if len(digits) != len(BLANK_DIGEST) or header.count(digits) != 1:
        raise DamagedFile("its digest is damaged")
    return header.replace(digits, BLANK_DIGEST.encode())


def _read(file: BufferedReader, layout: dict[str, Any], found: Any) -> dict[str, Array]:
    """Read tensors into new memory, with the alignment of new tensors."""
    tensors = {}
    # In the order of the file, so that it is read once, from front to back, and digested on the
    # way.
    for name, about in sorted(layout.items(), key=lambda item: item[1]["data_offsets"]):
        with _damage():
            tensor = xp.empty(about["shape"], _dtype(name, about["dtype"]))
            data = _bytes(tensor)
            if file.readinto(data) < len(data):
                raise ValueError("it was truncated while it was being read")
            # A boolean must be a byte 0 or 1: results of other bytes are undefined.
            if tensor.dtype == xp.bool and max(data, default=0) > 1:
                raise ValueError(f"the booleans of {name} must be bytes 0 or 1, got {max(data)}")
        found.update(data)
        tensors[name] = tensor
    return tensors


def _map_tensors(file: BinaryIO, layout: dict[str, Any], start: int) -> dict[str, Array]:
    """Return tensors in the memory of the file, whose data begin at a byte."""
    # Unlike `np.memmap`, this leaves the position in the file, at which reading continues.
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(memory, np.uint8)[start:]
    tensors = {}
    for name, about in layout.items():
        first, last = about["data_offsets"]
        values = data[first:last].view(_dtype(name, about["dtype"]))
        tensors[name] = values.reshape(about["shape"])
    return tensors


def _dtype(name: str, called: str) -> xp.DType:
    for dtype, name_in_file in DTYPE_NAMES.items():
        if name_in_file == called:
            return dtype
    raise ValueError(
        f"the type of {name} must be one of {', '.join(DTYPE_NAMES.values())}, got {called}"
    )


def _bytes(tensor: Array) -> memoryview:
    flat = tensor.reshape(-1)
    # A single number counts as contiguous with any stride, but `view` as bytes needs stride 1.
    if flat.strides[0] != flat.itemsize:
        flat = flat.copy()
    return flat.view(np.uint8).data


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Raise `DamagedFile` for all errors of the library on a damaged file."""
    try:
        yield
    # A file that cannot be read, as for lack of permission, is not damaged.
    except OSError:
        raise
    except Exception as error:
        raise DamagedFile(str(error) or type(error).__name__) from error
