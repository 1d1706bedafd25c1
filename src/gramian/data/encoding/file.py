"""Files of encodings: safetensors with a JSON header and a digest of the contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..._files.tensors import DamagedFile, read_tensors, write_tensors
from ..._messages.display import display_text
from .table_encoding import Encoding

ENCODING_FORMAT = 1
ENCODING_KEY = "gramian.encoding"


def save_encoding(path: str | Path, encoding: Encoding, about: dict[str, Any]) -> None:
    """Write an encoding, and facts about it.

    - `about`: facts that JSON can represent.
    """
    header = {"format": ENCODING_FORMAT, "encoding": encoding.to_dict(), "about": about}
    write_tensors(path, encoding.tensors(), {ENCODING_KEY: json.dumps(header)})


def load_encoding(path: str | Path) -> tuple[Encoding, dict[str, Any]]:
    """Return the encoding in a file, and facts about it.

    Raise FileNotFoundError if there is no such file. Raise ValueError if it is no encoding, is
    damaged, or was written by a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no encoding file {display_text(path)}")
    try:
        contents = read_tensors(path)
        header = json.loads(contents.metadata.get(ENCODING_KEY, "null"))
    # A header of thousands of nested brackets exceeds the recursion of the JSON parser.
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not an encoding file, or was cut off or changed since it was written "
            f"({error})"
        ) from error
    if not isinstance(header, dict) or set(header) != {"format", "encoding", "about"}:
        raise ValueError(f"{path} is a safetensors file but contains no encoding")
    if header["format"] != ENCODING_FORMAT:
        raise ValueError(
            f"{path} has format {header['format']}, but this version reads format "
            f"{ENCODING_FORMAT}: upgrade gramian"
        )
    try:
        # `read_tensors` accepts old models without a digest; encodings have always had one.
        if contents.digest is None or not isinstance(header["about"], dict):
            raise ValueError("its digest is missing, or its 'about' is not an object")
        return Encoding.from_parts(header["encoding"], contents.tensors), header["about"]
    except ValueError as error:
        raise ValueError(f"{path} is a damaged encoding file: {error}") from error
