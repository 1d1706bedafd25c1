"""Kinds of arrays: NumPy's on the host, torch's on a device, found without importing torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .csr_array import CsrArray

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
    from jaxtyping import Num as Num
    from jaxtyping import Shaped as Shaped
else:
    # jaxtyping takes a tenth of a second to import, and annotations are text which nobody evaluates
    # at run time, except in tests, which import jaxtyping first.
    class Shaped:
        """Stand-in for a type of jaxtyping: an array with a dtype and a shape."""

        def __class_getitem__(cls, array_and_shape: object) -> Any:
            return Any

    Bool = Float = Int = Num = Shaped

Array: TypeAlias = Any
"""An array of NumPy, dense or `CsrArray`, or a tensor of torch."""

DType: TypeAlias = Any
"""A dtype of NumPy, as arrays on all devices state it here."""

Device: TypeAlias = Any
"""The text "cpu", which is the host, or a device of torch."""

HOST_DEVICE = "cpu"
"""The device of arrays of NumPy."""


def loaded_torch() -> Any:
    """Return the module torch, which is loaded if a tensor exists."""
    return sys.modules["torch"]


def is_array(x: Any) -> bool:
    """Return whether an object is an array: dense or sparse, or a tensor of torch."""
    return type(x) is np.ndarray or isinstance(x, np.ndarray | CsrArray) or is_tensor(x)


def is_tensor(x: Any) -> bool:
    """Return whether an object is a tensor of torch."""
    if type(x) is np.ndarray:
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of NumPy for one of NumPy or torch."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        name = str(dtype).removeprefix("torch.")
        return np.dtype("float32" if name == "bfloat16" else name)
    return np.dtype(dtype)


def torch_dtype(dtype: Any) -> Any:
    """Return the dtype of torch for one of NumPy or torch."""
    import torch

    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    return getattr(torch, np.dtype(dtype).name)
