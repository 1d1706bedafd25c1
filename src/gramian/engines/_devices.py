"""CUDA devices: their number, and whether torch keeps float32 precision on them."""

from __future__ import annotations

import torch

from .._messages.errors import Text, TextError


def check_device(device: str, what: str | Text) -> None:
    """Raise ValueError, about `what`, if `device` is not a CUDA device of torch."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise TextError(
            "{} needs a CUDA device and a CUDA build of torch, but torch finds no device. Use "
            "{engine='auto'} to compute on the CPU; for an estimator fitted elsewhere, set "
            "{engine_='auto'}",
            what,
        )
    if not torch_keeps_float32():
        raise TextError(
            "{} needs full float32 products, but torch is set to compute them in TF32, with three "
            'digits; call torch.set_float32_matmul_precision("highest")',
            what,
        )
    index = torch.device(device).index or 0
    if index >= count:
        raise TextError(
            "{} needs CUDA device {}, but torch finds {}, numbered from 0",
            what,
            index,
            count,
        )


def torch_keeps_float32() -> bool:
    """Return whether torch multiplies float32 matrices in float32 on a GPU, not in TF32."""
    cuda = torch.backends.cuda.matmul
    how = getattr(cuda, "fp32_precision", None)  # torch 2.9 on, where asking the other may raise
    return not cuda.allow_tf32 if how is None else how != "tf32"
