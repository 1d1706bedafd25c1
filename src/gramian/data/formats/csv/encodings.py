"""Encoding and compression of a text file, from its first bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

NEXT_ENCODING = {"utf-8": "cp1252", "cp1252": "latin-1"}
"""The encoding to try where bytes are not of another: every byte is of the last one."""

_MAGIC_BYTES = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


def compression_of(path: Path) -> str | None:
    """Return the compression that a file begins like, whatever its name says."""
    with path.open("rb") as file:
        # By its first bytes: files are often renamed without being compressed, or the reverse.
        start = file.read(4)
    return next((name for magic, name in _MAGIC_BYTES.items() if start.startswith(magic)), None)


def first_bytes(path: Path, compression: str | None, size: int) -> bytes:
    """Return the beginning of a file, without its compression."""
    try:
        with pa.input_stream(path, compression=compression) as stream:
            return bytes(stream.read(size))
    except OSError as error:
        if compression is None:
            raise
        raise ValueError(
            f"{path} cannot be decompressed ({compression}): it is cut off or damaged; copy or "
            f"write it again (Arrow reports: {str(error).splitlines()[0]})"
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
        If there are zero bytes, which no text has, or UTF-8 that is damaged.
    """
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Western text in UTF-16 has a zero in every second byte, on the side that tells the order of
    # bytes; a quarter of zeros is enough, because other letters have none.
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if odd > len(sample) // 4 and even == 0:
        return "utf-16-le"
    if even > len(sample) // 4 and odd == 0:
        return "utf-16-be"
    if odd or even:
        raise ValueError(
            f"{path} is not a text file: byte {sample.index(0):,} is zero; save it as CSV or "
            "Parquet, or rename it to the suffix of its format"
        )
    # Before other encodings are tried: cp1252 reads damaged UTF-8 without an error, as wrong
    # letters.
    check_utf8([sample], path)
    encoding = "utf-8"
    while not _decodes(sample, encoding):
        encoding = NEXT_ENCODING[encoding]
    return encoding


def check_utf8(parts: Iterable[bytes], path: Path, *, whole: bool = False) -> None:
    """Refuse text of which some letters are UTF-8 and a later byte is not.

    Where all before is ASCII, the text may be of an older encoding; else it would be read wrong.

    Parameters
    ----------
    parts : iterable of bytes
    path : Path
        For the error.
    whole : bool
        Whether the text ends with the last part.

    Raises
    ------
    ValueError
        Names the place of the byte.
    """
    place, line, unread, ascii_only = 0, 1, b"", True
    for part in parts:
        # 1. A part may end within a letter: its first bytes are put in front of the next part.
        text, unread = unread + part, b""
        error = _fault(text)
        # 2. Everything up to the first fault is UTF-8.
        good = text if error is None else text[: error.start]
        ascii_only &= good.isascii()
        place, line = place + len(good), line + good.count(b"\n")
        # 3. A fault within the part is damage, if letters before it were UTF-8; after ASCII alone
        # the text may be of another encoding, which the caller tries.
        if error is not None and not _is_cut(error, text):
            return _refuse(path, place, line) if not ascii_only else None
        # 4. A letter that is cut waits for its rest; at the end of the text it is damage.
        unread = text[len(good) :]
    if unread and whole and not ascii_only:
        _refuse(path, place, line)
    return None


def _fault(text: bytes) -> UnicodeDecodeError | None:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error
    return None


def _is_cut(error: UnicodeDecodeError, text: bytes) -> bool:
    """Return whether a text only ends within a letter."""
    return error.end == len(text) and "end of data" in error.reason


def _refuse(path: Path, place: int, line: int) -> None:
    raise ValueError(
        f"{path}: byte {place + 1:,}, in line {line:,}, is not UTF-8, but letters before it are; "
        "write the whole file in one encoding, preferably UTF-8"
    )


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        # Incremental, because the sample may end within a letter.
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def decode_bytes(sample: bytes, encoding: str) -> str:
    """Return the text of a beginning that may end within a character."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    return text.removeprefix("\ufeff")
