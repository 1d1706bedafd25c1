"""Contract of each kind of columns, and of a kind that another file adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from gramian import KernelRidge, load
from gramian.data.encoding.columns.base import ColumnEncoding, Observer
from gramian.data.encoding.kinds import COLUMN_KINDS, ColumnKind, kind_of

TYPES = {
    "number": [pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(9, 2)],
    "boolean": [pa.bool_()],
    "category": [
        pa.string(), pa.large_string(), pa.string_view(),
        *(pa.dictionary(pa.int8(), value) for value in (pa.string(), pa.int64(), pa.date32())),
    ],
    "ordered": [pa.dictionary(pa.int8(), pa.string(), ordered=True)],
    "date": [pa.date32(), pa.date64(), pa.timestamp("ns")],
    "zoned date": [pa.timestamp("s", "UTC")],
    "time": [pa.time32("s"), pa.time64("ns")],
    "duration": [pa.duration("ms")],
    "nothing": [pa.null()],
}  # fmt: skip
STRANGE = [pa.binary(), pa.list_(pa.int8()), pa.dictionary(pa.int8(), pa.binary())]


def test_each_type_is_of_one_kind_at_most():
    assert set(TYPES) == set(COLUMN_KINDS)
    for expected, types in [*TYPES.items(), (None, STRANGE)]:
        for type_ in types:
            takers = [name for name, kind in COLUMN_KINDS.items() if kind.takes(type_)]
            assert takers == ([] if expected is None else [expected]), type_
            assert kind_of(type_) == expected


@dataclass(frozen=True, eq=False)
class ByteCount(ColumnEncoding):
    """A kind as another file would add it: columns of bytes, by the number of bytes."""

    code: ClassVar[str] = "byte count"
    kind: ClassVar[str] = "bytes"
    name: str

    @property
    def features(self):
        return (f"{self.name} (bytes)",)

    def encode(self, column, part):
        return np.array([len(value.as_py()) for value in column], float)[:, None]

    def describe(self):
        return "number of bytes"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_saved(cls, saved):
        return cls(saved.text("name"))


class ByteObserver(Observer):
    def see(self, column, seen):
        return ()

    def finish(self, summaries):
        return ByteCount(self.name)


def bytes_table(n: int) -> pa.Table:
    counts = np.random.default_rng(0).integers(1, 9, n)
    return pa.table({"raw": pa.array([b"x" * k for k in counts]), "y": counts.astype(float) ** 2})


def test_a_new_kind_is_one_file(tmp_path, monkeypatch):
    kind = ColumnKind("bytes", pa.types.is_binary, ByteObserver)
    monkeypatch.setitem(COLUMN_KINDS, "bytes", kind)
    table = bytes_table(80)
    model = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-9).fit(table, "y")
    assert model.model_.feature_names == ("raw (bytes)",)
    model.save(tmp_path / "y.model")
    other = load(tmp_path / "y.model")
    np.testing.assert_allclose(other.predict(table), table["y"], rtol=1e-3)
    assert other.model_.encoding.describe() == {"raw": "number of bytes"}
    text = table.set_column(0, "raw", pa.array(["x"] * 80))
    with pytest.raises(TypeError, match=r"raw.* bytes in training"):
        other.predict(text)


def test_without_it_bytes_are_refused_and_the_kinds_named():
    with pytest.raises(TypeError, match=r"raw .binary.; expected .*numbers, booleans, ordered"):
        KernelRidge().fit(bytes_table(80), "y")
