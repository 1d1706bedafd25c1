"""Training data from tables: no row sees its own target, and those held out have no say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plain import PLAIN

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian.data import EncodedRows, FittedEncoding, TrainingTable, as_table
from gramian.fitting import FitSettings, Generators, table_data

N = 300
DRAWS = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "street": [f"Weg {i}" for i in DRAWS.integers(0, 250, N)],
        "size": DRAWS.standard_normal(N),
        "price": DRAWS.standard_normal(N),
    }
)


def settings(**changes: Any) -> FitSettings:
    return KernelRidge(**(PLAIN | changes))._settings()


def rng() -> Generators:
    return Generators.from_random_state(np.random.RandomState(0))


def blocks(rows: Any, size: int) -> np.ndarray:
    parts: np.ndarray = np.concatenate([block for _, block in rows.blocks(size)])
    return parts


def test_means_are_those_of_other_rows() -> None:
    given = TrainingTable.open(FRAME, "price")
    data, _ = table_data(given, settings(), rng())
    own = FittedEncoding.fit(given.table, given.columns, given.y, rng=rng().encoding)
    crossed = blocks(own.training_rows(given.table), 64)
    np.testing.assert_array_equal(blocks(data.rows, 64), crossed)
    assert not np.array_equal(crossed, blocks(own.encoding.rows(given.table), 64))


def test_rows_that_do_not_count_have_no_say() -> None:
    other = FRAME.copy()
    other.loc[200:, ["size", "price"]] = 1e6
    keep = np.arange(N) < 200
    weights = xp.to_float64(keep)
    one, two, three = (
        table_data(TrainingTable.open(frame, "price"), settings(), rng(), **how)[0]
        for frame, how in (
            (FRAME, {"keep": keep}),
            (other, {"keep": keep}),
            (other, {"weights": weights}),
        )
    )
    assert one.encoding is not None
    for found in (two, three):
        assert found.encoding is not None
        assert len(found.rows) == len(found.targets) == 200
        np.testing.assert_array_equal(blocks(one.rows, 64), blocks(found.rows, 64))
        assert one.encoding.to_dict() == found.encoding.to_dict()


def test_what_is_held_is_taken_off_the_limit() -> None:
    given = TrainingTable.open(FRAME, "price")
    data, left = table_data(given, settings(memory_limit="200MB"), rng())
    held = data.rows.shape[0] * data.rows.shape[1] * 8
    assert left.limit == 200_000_000 - held - 2 * 8 * N - 2 * N
    tight, _ = table_data(given, settings(memory_limit=8 * held - 1), rng())
    assert isinstance(tight.rows, EncodedRows)


@pytest.mark.parametrize(("limit", "most"), [("1GB", 250_000_000), (None, None)])
def test_the_sample_for_medians_obeys_the_limit(
    limit: str | None, most: int | None, monkeypatch: Any
) -> None:
    asked: list[Any] = []
    fit = FittedEncoding.fit

    def noted(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["sample_bytes"])
        return fit(*args, **kwargs)

    monkeypatch.setattr(FittedEncoding, "fit", noted)
    table_data(TrainingTable.open(FRAME, "price"), settings(memory_limit=limit), rng())
    assert asked == [most]


def test_numbers_that_cannot_fit_are_refused_before_they_are_read(monkeypatch: Any) -> None:
    def read(*_: Any) -> None:
        raise RuntimeError("rows are read")

    given = TrainingTable.open(FRAME[["size", "price"]], "price")
    monkeypatch.setattr(type(given.table), "batches", read)
    with pytest.raises(ValueError, match="memory_limit is 1 MB"):
        table_data(given, settings(memory_limit="1MB"), rng())


@pytest.mark.parametrize("size", [1, 7, 64, 299, 300, 1000])
@pytest.mark.parametrize("stored", [False, True])
def test_blocks_have_the_size_that_was_asked_for(
    size: int, stored: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    # 16 rows at a time
    monkeypatch.setattr("gramian.data.encoding.table_encoding.ENCODED_NUMBERS", 50)
    FRAME.to_parquet(tmp_path / "x.parquet", row_group_size=41)
    table = as_table(tmp_path / "x.parquet" if stored else FRAME)
    encoding = FittedEncoding.fit(
        table, ["street", "size"], FRAME["price"].to_numpy(), rng=rng().encoding
    ).encoding
    rows = encoding.rows(table)
    lengths = [len(block) for _, block in rows.blocks(size)]
    assert lengths[:-1] == [size] * (len(lengths) - 1)
    assert sum(lengths) == N
    np.testing.assert_array_equal(blocks(rows, size), rows.take(np.arange(N)))
