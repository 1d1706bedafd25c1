"""as_tensor: the tensor of an array, for tests of what users of torch pass; skips without torch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest


def as_tensor(x: Any) -> Any:
    """Return a tensor in the memory of an array."""
    return pytest.importorskip("torch").from_numpy(np.asarray(x))


def tensors_of(*arrays: Any) -> list[Any]:
    """Return the tensors of arrays, or none of them where torch is not installed."""
    return [as_tensor(x) for x in arrays] if find_spec("torch") else []


def fused_engines(device: str | None) -> dict[str, Any]:
    """Return the engine of fused tiles on a device, interpreted without one, by its name."""
    if find_spec("torch") is None or find_spec("triton") is None:
        return {}
    from gramian.operators import TritonEngine

    return {"triton": TritonEngine(device or "cpu", tuned=False)}
