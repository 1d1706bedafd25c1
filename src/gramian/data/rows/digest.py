"""Digest of rows: equal for equal numbers, whatever their storage."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from .base import RowSource, default_block_size
from .reduce import BlockReduction


def digest(rows: RowSource) -> str:
    """Return the SHA-256 of all rows, as hexadecimal digits.

    Any change of any entry changes the digest. The digest depends on the numbers that a source
    delivers, in their type (float32 or float64), and not on their container (array, table, file,
    device) or on the size of blocks; the digest of remote rows also depends on their parts. Sparse
    rows are digested by their nonzero entries; the same rows as a dense matrix have another digest.

    Cost: one pass over the data, at about 1.5 GB/s where the processor computes SHA-256 (one core),
    a third of that elsewhere. Memory: a block of about a million numbers.
    """
    n, d = rows.shape
    hasher = hashlib.sha256(f"{n} {d} {xp.file_dtype_name(rows.dtype)} {rows.sparse}".encode())
    hasher.update(rows.fold(_Hashing(), size=default_block_size(rows)).digests)
    return hasher.hexdigest()


class _PartDigest:
    """SHA-256 of the rows of one part, or digests of several parts, in their order."""

    def __init__(self, hashers: list[Any], earlier: bytes = b"") -> None:
        self.hashers, self.earlier = hashers, earlier

    @property
    def digests(self) -> bytes:
        return self.earlier + b"".join(hasher.digest() for hasher in self.hashers)

    def __reduce__(self) -> tuple[Any, ...]:
        # The state of a hash cannot be sent: its digest is.
        return _PartDigest, ([], self.digests)


@dataclass(frozen=True)
class _Hashing(BlockReduction[_PartDigest]):
    """Reduction that digests the rows of each part."""

    def __call__(self, start: int, block: Array, *rowwise: Any) -> _PartDigest:
        # Counts, columns and values of sparse rows have a hash each: in one hash they would
        # alternate block by block, and the digest would depend on the size of blocks.
        count = 3 if xp.is_sparse(block) else 1
        return self.add(_PartDigest([hashlib.sha256() for _ in range(count)]), start, block)

    def merge(self, a: _PartDigest, b: _PartDigest) -> _PartDigest:
        """Join the digests of neighbouring parts, because SHA-256 cannot be merged."""
        return _PartDigest([], a.digests + b.digests)

    def add(self, total: _PartDigest, start: int, block: Array, *rowwise: Any) -> _PartDigest:
        for hasher, numbers in zip(total.hashers, _entries(xp.to_host(block)), strict=True):
            hasher.update(xp.contiguous(numbers).data)
        return total


def tensor_digest(x: Array | None) -> str:
    """Return the SHA-256 of a dense array's shape, type and numbers; an empty text for None."""
    if x is None:
        return ""
    hasher = hashlib.sha256(f"{tuple(x.shape)} {xp.file_dtype_name(x.dtype)}".encode())
    hasher.update(xp.contiguous(xp.to_host(xp.detach(x))).data)
    return hasher.hexdigest()


def _entries(block: Array) -> tuple[Array, ...]:
    if not xp.is_sparse(block):
        return (block,)
    # Stored zeros are left out: they are the same rows as without them.
    is_nonzero = xp.entries(block) != 0
    before = xp.concat([xp.zeros(1, xp.int64, like=is_nonzero), is_nonzero.cumsum(axis=0)])
    # Entries per row instead of row starts, which depend on where the block begins.
    counts = xp.diff(before[xp.indptr(block)])
    return counts, xp.indices(block)[is_nonzero], xp.entries(block)[is_nonzero]
