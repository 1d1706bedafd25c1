"""Fields of texts that a pattern matches."""

from __future__ import annotations

import re

import pyarrow as pa

from ....rows import arrow_compute as pc


def split_fields(texts: pa.Array, shape: re.Pattern[str]) -> dict[str, pa.Array]:
    """Return the groups of a pattern as texts; ArrowInvalid if a text does not match."""
    parts = pc.extract_regex(texts, f"(?i)^(?:{shape.pattern})$")
    if parts.null_count > texts.null_count:
        raise pa.ArrowInvalid("another order")
    return {name: pc.struct_field(parts, name) for name in shape.groupindex}


def number_of(field: pa.Array, default: str = "0") -> pa.Array:
    """Return a field as whole numbers; `default` where it is empty."""
    return pc.if_else(pc.equal(field, ""), default, field).cast(pa.int64())
