"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


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
    """Write a safetensors file atomically; OSError as in `write_atomically`."""

    def write(part: Path) -> None:
        try:
            save_file(dict(tensors), part, metadata=dict(metadata))
        except SafetensorError as error:  # which is no OSError, also when the disk is full
            number = re.search(r"os error (\d+)", str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error

    write_atomically(path, write)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
