"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

DTYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.float64: "F64",
}
"""What the safetensors format calls the types that are written."""


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new file beside `path`, then put it in the place of `path`.

    Parameters
    ----------
    path : str or Path
    write : callable
        Given the path of the temporary file, writes it.

    Raises
    ------
    OSError
        If the disk is full or the folder cannot be written to. Whatever was at `path` before is
        still there, unchanged.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        _flush(part)
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except OSError as error:
        kept = " The file that was there is unchanged." if path.exists() else ""
        raise OSError(
            error.errno, f"could not write {path}: {error.strerror or error}.{kept}"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file atomically; OSError as in `write_atomically`.

    Nothing is copied, other than by the library of that name, which would need the memory of all
    tensors twice over: those that are mapped from files stay there. They are contiguous and in the
    memory of the CPU.
    """
    # the format wants each tensor to start at a multiple of its item size: the widest come first
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    start = 0
    for name, tensor in ordered:
        stop = start + tensor.numel() * tensor.itemsize
        shape = list(tensor.shape)
        header[name] = {
            "dtype": DTYPES[tensor.dtype], "shape": shape, "data_offsets": [start, stop],
        }  # fmt: skip
        start = stop
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)

    def write(part: Path) -> None:
        with part.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, tensor in ordered:
                file.write(tensor.numpy().reshape(-1).data)

    write_atomically(path, write)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
