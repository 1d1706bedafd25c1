"""Serialisation of values for workers: pickled, with keys in place of large arrays."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

LARGE_ARRAY_BYTES = 1 << 12
"""Bytes from which an array is a task of its own, sent once however many tasks need it."""


def is_large(value: Any) -> bool:
    """Return whether a value is a dense array that is large enough to be sent separately."""
    is_plain = type(value) is np.ndarray and value.dtype.kind in "biufU"
    return is_plain and value.nbytes >= LARGE_ARRAY_BYTES


def pack_value(value: Any, share: Callable[[np.ndarray], str]) -> bytes:
    """Return a pickled value; `share` maps each large array to the key that replaces it."""
    file = io.BytesIO()
    _Sender(file, share).dump(value)
    return file.getvalue()


def unpack_value(data: bytes, shared: dict[str, np.ndarray]) -> Any:
    """Return the value that `pack_value` pickled."""
    return _Receiver(data, shared).load()


def receive_array(data: bytes, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array in the memory of its bytes: the task that sends a large array."""
    return np.frombuffer(data, dtype).reshape(shape)


class _Sender(pickle.Pickler):
    def __init__(self, file: io.BytesIO, share: Callable[[np.ndarray], str]) -> None:
        super().__init__(file, protocol=5)
        self.share = share

    def persistent_id(self, value: Any) -> str | None:
        # None leaves the value to plain pickle.
        return self.share(value) if is_large(value) else None


class _Receiver(pickle.Unpickler):
    def __init__(self, data: bytes, shared: dict[str, np.ndarray]) -> None:
        super().__init__(io.BytesIO(data))
        self.shared = shared

    def persistent_load(self, key: str) -> np.ndarray:
        return self.shared[key]
