"""Serialisation of values for workers: pickled, with keys in place of large tensors."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LARGE_TENSOR_BYTES = 1 << 12
"""Bytes from which a tensor is a task of its own, sent once however many tasks need it."""


def is_large(value: object) -> bool:
    """Return whether a value is a dense tensor that is large enough to be sent separately."""
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return False
    return value.numel() * value.itemsize >= LARGE_TENSOR_BYTES


def pack_value(value: Any, share: Callable[[Tensor], str]) -> bytes:
    """Return a pickled value; `share` maps each large tensor to the key that replaces it."""
    file = io.BytesIO()
    _Sender(file, share).dump(value)
    return file.getvalue()


def unpack_value(data: bytes, shared: dict[str, Tensor]) -> Any:
    """Return the value that `pack_value` pickled."""
    return _Receiver(data, shared).load()


def receive_tensors(data: bytes, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor from its bytes: the task that sends a large tensor."""
    kind = getattr(torch, dtype.removeprefix("torch."))
    # A copy, because bytes are read-only, of which torch warns.
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(shape)


class _Sender(pickle.Pickler):
    def __init__(self, file: io.BytesIO, share: Callable[[Tensor], str]) -> None:
        super().__init__(file, protocol=5)
        self.share = share

    def persistent_id(self, value: Any) -> str | None:
        # None leaves the value to plain pickle.
        return self.share(value) if is_large(value) else None


class _Receiver(pickle.Unpickler):
    def __init__(self, data: bytes, shared: dict[str, Tensor]) -> None:
        super().__init__(io.BytesIO(data))
        self.shared = shared

    def persistent_load(self, key: str) -> Tensor:
        return self.shared[key]
