"""Digest of rows: equal for equal numbers, whatever their storage."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .base import RowSource, default_block_size
from .reduce import BlockReduction


def digest(rows: RowSource) -> str:
    """Return the SHA-256 of all rows, as hexadecimal digits.

    Any change of any entry changes it. It depends on the numbers that a source delivers, in their
    type (float32 or float64), and not on their container (array, table, file, device) or on the
    size of blocks; the digest of remote rows also depends on their parts. Sparse rows are digested
    by their nonzero entries; the same rows as a dense matrix have another digest.

    Notes
    -----
    Cost: one pass over the data, at about 1.5 GB/s where the processor computes SHA-256 (one core),
    a third of that elsewhere. Memory: a block of about a million numbers.
    """
    n, d = rows.shape
    hasher = hashlib.sha256(f"{n} {d} {rows.dtype} {rows.sparse}".encode())
    size = default_block_size(rows)
    if rows.remote:
        # SHA-256 cannot be merged: each block of a part has a digest of its own, and these are
        # digested in their order.
        blocks: list[str] = rows.fold(_BlockDigests(), size=size)
        hasher.update("".join(blocks).encode())
        return hasher.hexdigest()
    # Counts, columns and values of sparse rows have a hash each: in one hash they would alternate
    # block by block, and the digest would depend on the size of blocks.
    parts = [hashlib.sha256() for _ in range(3 if rows.sparse else 1)]
    for _, block in rows.blocks(size):
        _update(parts, block)
    for part in parts:
        hasher.update(part.digest())
    return hasher.hexdigest()


def _update(parts: list[Any], block: Tensor) -> None:
    for part, numbers in zip(parts, _entries(block.cpu()), strict=True):
        part.update(numbers.contiguous().numpy().data)


@dataclass(frozen=True)
class _BlockDigests(BlockReduction[list[str]]):
    """The digests of blocks, in order."""

    def __call__(self, start: int, block: Tensor, *rowwise: Any) -> list[str]:
        """Digest one block."""
        parts = [hashlib.sha256() for _ in _entries(block)]
        _update(parts, block)
        return [part.hexdigest() for part in parts]

    def merge(self, a: list[str], b: list[str]) -> list[str]:
        """Concatenate the digests of neighbouring rows."""
        return a + b


def tensor_digest(x: Tensor | None) -> str:
    """Return the SHA-256 of a dense tensor's shape, type and numbers; an empty text for None."""
    if x is None:
        return ""
    hasher = hashlib.sha256(f"{tuple(x.shape)} {x.dtype}".encode())
    hasher.update(x.detach().cpu().contiguous().numpy().data)
    return hasher.hexdigest()


def _entries(block: Tensor) -> tuple[Tensor, ...]:
    if block.layout == torch.strided:
        return (block,)
    # Stored zeros are left out: they are the same rows as without them.
    is_nonzero = block.values() != 0
    before = torch.cat([is_nonzero.new_zeros(1, dtype=torch.int64), is_nonzero.cumsum(0)])
    # Entries per row instead of row starts, which depend on where the block begins.
    counts = before[block.crow_indices()].diff()
    return counts, block.col_indices()[is_nonzero], block.values()[is_nonzero]
