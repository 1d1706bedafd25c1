"""Encoding and compression of a text file, from its first bytes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa

from ...._messages.errors import Text
from ...tables.read_options import DEFAULT_OPTIONS, ReadOptions

CANDIDATE_ENCODINGS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
    *("koi8_r", "cp866", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "iso8859_5"),
)
"""Encodings that are detected; of western languages the first one, if it is as likely."""

DETECTED_BYTES = 1 << 16
"""Bytes of lines with letters outside ASCII that tell the encoding."""

WESTERN_MARGIN = 0.05
"""Share of unlikely letters by which another encoding must be better than the western one."""

LARGEST_CHAOS = 0.6
"""Share of unlikely letters up to which an encoding is possible: a few short words have many."""

_SYMBOL_IN_WORD = re.compile(
    r"[^\W\d_][\u00a1-\u00a9\u00ab-\u00b4\u00b6\u00b8\u00b9\u00bb-\u00bf×÷][^\W\d_]"
)

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


def encoding_of(
    sample: bytes, path: Path, options: ReadOptions = DEFAULT_OPTIONS
) -> tuple[str, Text | None]:
    """Return the encoding of a text that begins so, and a remark if it was guessed.

    - `path`: for the error.
    - `options`: encoding of the file, or of the files of training.

    The encoding is UTF-32 by its mark, UTF-16 by its mark or its zeros, else UTF-8 where the bytes
    are, else the encoding of training or a likely one.

    Raise ValueError if there are zero bytes, which no text has, or UTF-8 that is damaged, or bytes
    that are not of the given encoding.
    """
    if options.encoding is not None and not options.is_stored:
        if not _decodes(sample, options.encoding):
            raise ValueError(f"{path} has bytes that are not {options.encoding}; give its encoding")
        return options.encoding, None
    if (wide := _wide_encoding(sample, path)) is not None:
        return wide, None
    # Before other encodings are tried: cp1252 reads damaged UTF-8 without an error, as wrong
    # letters.
    check_utf8([sample], path)
    if _decodes(sample, "utf-8"):
        return "utf-8", None
    if options.encoding is not None and _decodes(sample, options.encoding):
        return options.encoding, None
    return detect_encoding([sample])


def _wide_encoding(sample: bytes, path: Path) -> str | None:
    """Return an encoding of two or four bytes for a letter; None if a letter may be one byte."""
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
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
    return None


def detect_encoding(parts: Iterable[bytes]) -> tuple[str, Text]:
    """Return a likely encoding of a text that is not UTF-8, and a remark for users."""
    from charset_normalizer import from_bytes

    # 1. Only lines with other letters tell encodings apart, and there may be few of them in a long
    # file.
    lines: list[bytes] = []
    size = 0
    for part in parts:
        outside = [line for line in part.splitlines(keepends=True) if not line.isascii()]
        lines += outside
        size += sum(map(len, outside))
        if size >= DETECTED_BYTES:
            break
    sample = b"".join(lines)[:DETECTED_BYTES]
    # 2. Most files that are not UTF-8 are western: another encoding must look clearly better, or
    # cp1252 must give signs within words.
    matches = list(
        from_bytes(sample, cp_isolation=list(CANDIDATE_ENCODINGS), threshold=LARGEST_CHAOS)
    )
    chaos = {name: match.chaos for match in matches for name in match.could_be_from_charset}
    western = chaos.get("cp1252", 1.0)
    likely = [match.encoding for match in matches if match.encoding != "cp1252"]
    encoding = "cp1252" if _decodes(sample, "cp1252") else "iso8859-1"
    if likely and (
        western > chaos[likely[0]] + WESTERN_MARGIN
        or _SYMBOL_IN_WORD.search(decode_bytes(sample, "cp1252"))
    ):
        encoding = likely[0]
    # 3. A word in the remark lets the user judge the guess at a glance.
    words = re.findall(r"\w+", decode_bytes(sample, encoding))
    shown = next((word for word in words if not word.isascii()), "")
    return encoding, Text(
        "read in the encoding {}, in which it has {!r}: give {encoding='NAME'} if that is wrong",
        encoding,
        shown[:40],
    )


def check_utf8(parts: Iterable[bytes], path: Path, *, whole: bool = False) -> None:
    """Refuse text of which some letters are UTF-8 and a later byte is not.

    Where all before is ASCII, the text may be of an older encoding; else it would be read wrong.

    - `path`: for the error.
    - `whole`: whether the text ends with the last part.

    Raise ValueError, which names the place of the byte.
    """
    place, line, unread, ascii_only = 0, 1, b"", True
    # The empty part after the last one ends the text: a letter that is cut there is damage.
    for part in chain(parts, [b""] if whole else []):
        # 1. A part may end within a letter: its first bytes are put in front of the next part.
        text, is_damaged = unread + part, False
        try:
            good = text[: codecs.utf_8_decode(text, "strict", not part)[1]]
        except UnicodeDecodeError as error:
            good, is_damaged = text[: error.start], True
        # 2. Everything up to the first fault is UTF-8.
        ascii_only &= good.isascii()
        place, line, unread = place + len(good), line + good.count(b"\n"), text[len(good) :]
        # 3. After ASCII alone the text may be of another encoding, which the caller tries.
        if is_damaged and ascii_only:
            return
        if is_damaged:
            raise ValueError(
                f"{path}: byte {place + 1:,}, in line {line:,}, is not UTF-8, but letters before "
                "it are; write the whole file in one encoding, preferably UTF-8"
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
    return text.lstrip("\ufeff")  # joined files have two marks
