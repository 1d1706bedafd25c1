"""Places and types of arrays: the host, devices, and dtypes of NumPy."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ._kinds import (
    HOST_DEVICE,
    CsrArray,
    csr,
    is_array,
    is_tensor,
    loaded_torch,
    numpy_dtype,
    torch_dtype,
)

__all__ = [
    "Limits", "as_tensor", "cast", "cast_like", "detach", "device", "device_of", "dtype_name",
    "dtype_of", "file_dtype_name", "finfo", "is_complex", "is_contiguous", "is_floating",
    "is_host", "promote_types", "to_device", "to_float64", "to_host", "view_as",
]  # fmt: skip


def device(name: Any) -> Any:
    """Return the device with a name: "cpu" is the host, and other names are devices of torch."""
    if not isinstance(name, str) or name == HOST_DEVICE:
        return name
    import torch

    return torch.device(name)


def is_host(device: Any) -> bool:
    """Return whether a device is the host, with arrays of NumPy; the CPU of torch is another."""
    return isinstance(device, str) and device == HOST_DEVICE


def device_of(x: Any) -> Any:
    """Return the device of an array or an operator: "cpu" for arrays of NumPy."""
    return HOST_DEVICE if isinstance(x, np.ndarray) else getattr(x, "device", HOST_DEVICE)


def to_host(x: Any) -> Any:
    """Return an array on the host, which is a copy if x is on a device."""
    if not is_tensor(x):
        return x
    x = x.detach().cpu()
    if x.layout is loaded_torch().sparse_csr:
        starts, columns, values = (
            part.numpy() for part in (x.crow_indices(), x.col_indices(), x.values())
        )
        return CsrArray(starts, columns, values, tuple(x.shape))
    # Forced: a lazily negated tensor has no memory that NumPy could read.
    return (x.float() if x.dtype == loaded_torch().bfloat16 else x).numpy(force=True)


def to_device(x: Any, device: Any) -> Any:
    """Return an array on a device, or anything else by its own method `to`."""
    if is_host(device):
        return to_host(x)
    return as_tensor(x, device)


def as_tensor(x: Any, device: Any) -> Any:
    """Return a tensor on a device of torch, which may be torch's CPU."""
    if is_tensor(x):
        return x.to(device)
    if isinstance(x, CsrArray):
        starts, columns, values = (
            as_tensor(part, device) for part in (x.indptr, x.indices, x.data)
        )
        return csr(starts, columns, values, x.shape)
    import torch

    return torch.from_numpy(_readable(np.asarray(x))).to(device)


class _Writable:
    """The memory of an array, declared as writable."""

    def __init__(self, x: np.ndarray) -> None:
        address, _ = x.__array_interface__["data"]
        self.x, self.__array_interface__ = x, x.__array_interface__ | {"data": (address, False)}


def _readable(x: np.ndarray) -> np.ndarray:
    """Return an array that torch reads without warnings, in its memory where the steps allow."""
    # torch has no steps back, and warns of memory that it could not write to, as of mapped files.
    x = x if min(x.strides, default=0) >= 0 else np.ascontiguousarray(x)
    return x if x.flags.writeable else np.asarray(_Writable(x))


def cast(x: Any, dtype: Any) -> Any:
    """Return an array in a dtype, without a copy if the array has this dtype."""
    if type(x) is np.ndarray and x.dtype == dtype:
        return x
    if isinstance(x, CsrArray):
        return x if x.dtype == dtype else replace(x, data=cast(x.data, dtype))
    if isinstance(x, np.ndarray | np.generic):
        return x.astype(numpy_dtype(dtype), copy=False)
    return x.to(torch_dtype(dtype) if is_tensor(x) else dtype)


def cast_like(x: Any, like: Any) -> Any:
    """Return an array in the dtype and on the device of another."""
    if is_tensor(like):
        return as_tensor(x, like.device).to(like.dtype)
    return cast(to_host(x), like.dtype)


def to_float64(x: Any) -> Any:
    """Return an array in float64; anything else by its own method `double`."""
    return cast(x, np.float64) if is_array(x) or isinstance(x, np.generic) else x.double()


def dtype_of(x: Any) -> Any:
    """Return the dtype of an array as NumPy's."""
    return numpy_dtype(x.dtype)


def is_floating(x: Any) -> bool:
    """Return whether the numbers are floating-point numbers."""
    return x.is_floating_point() if is_tensor(x) else x.dtype.kind == "f"


def is_complex(x: Any) -> bool:
    """Return whether the numbers are complex."""
    return x.is_complex() if is_tensor(x) else x.dtype.kind == "c"


def is_contiguous(x: Any) -> bool:
    """Return whether the rows follow each other in memory."""
    return x.is_contiguous() if is_tensor(x) else bool(x.flags.c_contiguous)


def promote_types(a: Any, b: Any) -> Any:
    """Return the dtype that holds the numbers of two dtypes."""
    return np.promote_types(numpy_dtype(a), numpy_dtype(b))


class Limits(NamedTuple):
    """Limits of a floating-point type, as numbers of Python."""

    bits: int
    eps: float
    max: float
    tiny: float
    smallest_normal: float


def finfo(dtype: Any) -> Limits:
    """Return the limits of a floating-point dtype."""
    return _limits(numpy_dtype(dtype))


@functools.cache
def _limits(dtype: np.dtype[Any]) -> Limits:
    """Return the limits of a dtype of NumPy."""
    limits = np.finfo(dtype)
    numbers = (limits.eps, limits.max, limits.tiny, limits.smallest_normal)
    return Limits(limits.bits, *map(float, numbers))


def detach(x: Any) -> Any:
    """Return a tensor without its graph of derivatives; arrays as they are."""
    return x.detach() if is_tensor(x) else x


def view_as(x: Any, dtype: Any) -> Any:
    """Return the memory of an array as numbers of another type."""
    return x.view(torch_dtype(dtype) if is_tensor(x) else dtype)


def file_dtype_name(dtype: Any) -> str:
    """Return the name of a dtype in files and digests, such as "torch.float32".

    Earlier versions of gramian computed with torch, and their files stay readable.
    """
    return f"torch.{numpy_dtype(dtype).name}"


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, without its library."""
    return numpy_dtype(dtype).name
