"""Encoding and compression of a text file, told from its first bytes."""

from __future__ import annotations

import codecs
from pathlib import Path

import pyarrow as pa

NEXT = {"utf-8": "cp1252", "cp1252": "latin-1"}
"""What is tried where bytes are not of an encoding: every byte is of the last one."""

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


def compression_of(path: Path) -> str | None:
    """Return the compression that a file begins like, whatever its name says."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def first_bytes(path: Path, compression: str | None, size: int) -> bytes:
    """Return the beginning of a file, without its compression."""
    try:
        with pa.input_stream(path, compression=compression) as stream:
            return bytes(stream.read(size))
    except OSError as error:
        if compression is None:
            raise
        raise ValueError(
            f"{path} cannot be read: it is compressed ({compression}), and cut off or damaged; "
            f"copy or write it again (Arrow says: {str(error).splitlines()[0]})"
        ) from error


def encoding_of(sample: bytes, path: Path) -> str:
    """Return the encoding of a text that begins so.

    Parameters
    ----------
    sample : bytes
    path : Path
        For the error.

    Returns
    -------
    str
        UTF-16 by its mark or its zeros, else UTF-8 where the bytes are, else Windows' code page of
        western languages.

    Raises
    ------
    ValueError
        If there are zero bytes, which no text has.
    """
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if odd > len(sample) // 4 and even == 0:
        return "utf-16-le"
    if even > len(sample) // 4 and odd == 0:
        return "utf-16-be"
    if odd or even:
        raise ValueError(
            f"{path} is no text: byte {sample.index(0):,} is zero; save it as CSV or Parquet, or "
            "give it the name of its format"
        )
    encoding = "utf-8"
    while not _decodes(sample, encoding):
        encoding = NEXT[encoding]
    return encoding


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def decoded(sample: bytes, encoding: str) -> str:
    """Return the text of a beginning that may end within a character."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    return text.removeprefix("\ufeff")
