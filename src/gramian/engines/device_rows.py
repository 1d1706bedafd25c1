"""DeviceRows: rows whose next block is sent to a device while the present one is used."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .. import _arrays as xp
from .._arrays import Float, Int
from .._sparse import is_sparse
from ..data import RowSource
from ..data.rows.prefetch import prefetch

Event = Any
"""A `torch.cuda.Event` or a simulated one; None if there is nothing to wait for."""


@functools.cache
def _stream(device: torch.device) -> Any:
    """Return the only stream for transfers to a device, because each stream has its own memory."""
    return torch.cuda.Stream(device)


class Staging:
    """Two buffers of pinned memory: one is filled while the other is sent.

    A copy from pinned memory runs at the speed of the bus, while the device computes.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers: list[Tensor | None] = [None, None]
        self._sent: list[Event] = [None, None]
        self._turn = 0
        self._stream = _stream(device) if device.type == "cuda" else None

    def send(self, block: Float[Tensor, "b d"]) -> tuple[Tensor, Event]:
        """Return a block on the device, and the event of its arrival; None if it was on the device.

        The call waits until the previous content of the buffer has been sent.
        """
        turn, self._turn = self._turn, 1 - self._turn
        # The buffer may still be read by the bus: overwriting it would corrupt the block before the
        # last.
        event = self._sent[turn]
        if event is not None:
            event.synchronize()
        buffer = self._buffers[turn]
        # The first block is the largest, so a buffer is allocated once in a pass.
        if buffer is None or len(buffer) < len(block):
            buffer = self._buffers[turn] = self._buffer(block)
        sent, self._sent[turn] = self._copy(buffer[: len(block)].copy_(xp.as_tensor(block, "cpu")))
        return sent, self._sent[turn]

    def _buffer(self, like: Tensor) -> Tensor:
        return torch.empty(
            like.shape, dtype=xp.torch_dtype(like.dtype), pin_memory=self._stream is not None
        )

    def _copy(self, staged: Tensor) -> tuple[Tensor, Event]:
        if self._stream is None:
            # Without a copy, a device that shares the host's memory would see the buffer being
            # reused.
            return staged.to(self.device, copy=True), None
        with torch.cuda.stream(self._stream):
            sent = staged.to(self.device, non_blocking=True)
            event = self._stream.record_event()
        return sent, event


class DeviceRows(RowSource):
    """The rows of another source, with blocks on a device.

    A thread reads and sends a block while the previous one is used: two blocks are on the device,
    and two in pinned memory. Blocks that are on the device already are passed on.
    """

    def __init__(self, rows: RowSource, device: str) -> None:
        self.rows = rows
        self.device = torch.device(device)
        self._resemble(rows)

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Tensor, "b d"]]]:
        """Walk over the rows; see `RowSource.blocks`."""
        if size >= self.shape[0]:  # no computation could overlap the only copy
            yield from (
                (rows, xp.to_device(block, self.device)) for rows, block in self.rows.blocks(size)
            )
            return
        for rows, block, event in prefetch(self._sent(size)):
            if event is not None:
                stream = torch.cuda.current_stream(self.device)
                event.wait(stream)
                block.record_stream(stream)  # another stream has allocated its memory
            yield rows, block

    def take(self, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        """Gather rows; see `RowSource.take`."""
        return xp.to_device(self.rows.take(index), self.device)

    def _sent(self, size: int) -> Iterator[tuple[slice, Tensor, Event]]:
        staging = self._staging()
        for rows, block in self.rows.blocks(size):
            # Pinned buffers hold dense numbers, and a block on the device needs no transfer.
            if is_sparse(block) or self._has(block):
                yield rows, xp.to_device(block, self.device), None
            else:
                yield rows, *staging.send(block)

    def _has(self, block: Tensor) -> bool:
        if not xp.is_tensor(block):
            return False
        same = block.device.type == self.device.type
        # A device without a number means the current one, where any block of its kind counts.
        return same and self.device.index in (None, block.device.index)

    def _staging(self) -> Staging:
        return Staging(self.device)
