"""`gramian convert`: a table in another format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import data
from ..outputs.report import Report


def convert(
    source: Path, target: Path, dtype: str, read: Mapping[str, Any] | None = None
) -> Report:
    """Rewrite a table in another format, and report its size."""
    start = time.perf_counter()
    rows = data.convert(source, target, dtype=dtype, read=read)
    return {
        "source": source,
        "target": target,
        "floats": dtype,
        "rows": rows,
        "file_bytes": target.stat().st_size,
        "seconds": time.perf_counter() - start,
    }
