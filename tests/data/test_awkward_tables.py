"""Awkward tables: each is read with the values that were written, or refused in one line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from awkward import TABLES, VERY_WIDE, original

from gramian.data import ReadWarning, as_table

READ = [
    pytest.param(name, marks=pytest.mark.slow) if name == VERY_WIDE else name
    for name, table in TABLES.items()
    if not table.refused
]
REFUSED = [name for name, table in TABLES.items() if table.refused]


def plain(kind: pa.DataType) -> pa.DataType:
    """Return one type for all that hold the same values."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    return kind


@pytest.mark.parametrize("name", READ)
def test_it_is_read_as_it_was_meant(name: str, tmp_path: Path) -> None:
    frame = original()
    path = TABLES[name].write(tmp_path, frame)
    expected = pa.Table.from_pandas(TABLES[name].expected(frame), preserve_index=False)
    with warnings.catch_warnings():  # of encodings that were guessed
        warnings.simplefilter("ignore", ReadWarning)
        table = as_table(path)
    assert table.where == str(path)
    assert len(table) == expected.num_rows
    assert list(table.names) == expected.column_names
    types = [plain(kind) for kind in expected.schema.types]
    assert [plain(kind) for kind in table.schema.types] == types
    found = pa.Table.from_batches(table.batches(table.names, 50_000))
    for column, kind in zip(expected.column_names[:200], types, strict=False):
        there, meant = found[column].cast(kind), expected[column].cast(kind)
        if pa.types.is_floating(kind):
            np.testing.assert_allclose(there.to_numpy(), meant.to_numpy(), rtol=1e-15)
        else:
            assert there.to_pylist() == meant.to_pylist()


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = TABLES[name].write(tmp_path, original())
    with pytest.raises((ValueError, TypeError), match=TABLES[name].refused) as refusal:
        as_table(path)
    said = str(refusal.value)
    assert str(path) in said
    assert "\n" not in said
    assert len(said) < 400


def test_the_original_has_every_type() -> None:
    kinds = [str(kind) for kind in pa.Table.from_pandas(original()).schema.types]
    assert len(set(kinds)) == 5
    assert original()["place"].nunique() == 4
    assert isinstance(original(), pd.DataFrame)
