"""One rule for texts in paths and frames: CSV, Parquet, pandas and polars give the same values.

Where they differ, a fit says so.
"""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain import PLAIN
from spellings import COLUMNS, ROWS

from gramian import KernelRidge
from gramian.data import ReadOptions, as_table

TEXTS = {name: column.lines() for name, column in COLUMNS.items()}
FORMS = ("csv", "parquet", "pandas", "polars")
FITTED = ("dollars", "03.01.19", "maybe", "0945", "n.d. and n/a", "offsets", "zip codes", "1h 30m")


def forms_of(texts: list[str], folder: Path, **more: Any) -> dict[str, Any]:
    """Return the same table in all forms, texts as texts."""
    frame = pd.DataFrame({"v": texts, **more})
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_parquet(folder / "x.parquet", index=False)
    return {"csv": folder / "x.csv", "parquet": folder / "x.parquet", "pandas": frame,
            "polars": pl.from_pandas(frame)}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_values_are_the_same_in_all_forms(name: str, tmp_path: Path) -> None:
    forms = forms_of(TEXTS[name], tmp_path, k=range(ROWS))
    tables = {form: as_table(forms[form]) for form in FORMS}
    for form in FORMS[1:]:
        assert tables[form].schema.field("v") == tables["csv"].schema.field("v")
        assert tables[form].column("v").to_pylist() == tables["csv"].column("v").to_pylist()
        odd, meant = (tables[f].column_readings["v"].odd for f in (form, "csv"))
        assert [(row + 2, text) for row, text in odd.first] == meant.first
        assert odd.spellings == meant.spellings


@pytest.mark.parametrize("name", TEXTS)
def test_a_frame_of_pandas_reader_is_the_same_or_a_fit_says_so(name: str, tmp_path: Path) -> None:
    forms = forms_of(TEXTS[name], tmp_path, k=range(ROWS))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = as_table(forms["csv"], options=ReadOptions(labels=()))
        theirs = as_table(pd.read_csv(forms["csv"]), options=ReadOptions(labels=()))
    values = [table.column("v").to_pylist() for table in (ours, theirs)]
    is_same = [str(v) if isinstance(v, str) else v for v in values[0]] == values[1]
    said = "digits are read as" in "".join(str(w.message) for w in caught)
    assert is_same != said


@pytest.mark.parametrize("name", FITTED)
def test_fits_and_predictions_are_the_same(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=ROWS).round(3)
    place = {text: i for i, text in enumerate(dict.fromkeys(TEXTS[name]))}
    y = z + np.array([place[text] for text in TEXTS[name]])
    forms = forms_of(TEXTS[name], tmp_path, z=z, y=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        models = {f: KernelRidge(random_state=0, **PLAIN).fit(forms[f], "y") for f in FORMS}
        expected = models["csv"].predict(forms["csv"])
        for fitted, predicted in itertools.product(FORMS, FORMS):
            found = models[fitted].predict(forms[predicted])
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_plain_numbers_that_are_text_stay_text_with_a_warning(tmp_path: Path) -> None:
    forms = forms_of([str(i) for i in range(ROWS)], tmp_path)
    for form in FORMS[1:]:
        with pytest.warns(UserWarning, match="columns of numbers that are text stay text: v"):
            table = as_table(forms[form], options=ReadOptions(labels=()))
        assert str(table.schema.field("v").type) == "string"


@pytest.mark.parametrize("late", ["$1,234.50", "unknown"])
def test_late_values_of_a_long_file(
    late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramian.data.sources.typed_table.LOOKED_ROWS", 100)
    texts = [f"{i}.5" for i in range(950)] + [late] * (50 if late[0] == "$" else 2)
    found = as_table(forms_of(texts, tmp_path)["parquet"])
    assert found.column("v").to_pylist()[-1] == (1234.5 if late[0] == "$" else None)
    odd = found.column_readings["v"].odd
    assert (odd.count, odd.first[:1]) == ((0, []) if late[0] == "$" else (2, [(950, late)]))
