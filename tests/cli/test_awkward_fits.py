"""Awkward tables: each is fitted and predicted, or refused in one line that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from awkward import TABLES, VERY_WIDE, original
from plain import PLAIN, PLAIN_OPTIONS

from gramian import KernelRidge, load
from gramian.data import as_table

SECONDS = ("4,000 columns", "latin-1 late", "late decimal", "late code", "late text")
QUICK = (
    "German decimals",
    "gzip",
    "UTF-16",
    "words for missing",
    "mixed types",
    "1,000 levels",
    "days with points",
    "Feather",
    "folders by year",
    "one row",
    "a field too many",
    "empty",
)
"""Those that are tried in each run; `test_awkward_tables` reads all of them."""

UNUSABLE = {
    "one row": "has no column to learn from: income (left out: one number in all training rows)",
    "one column": "has no column target",
}
"""Tables that are read, and the reason why a fit refuses them."""

LEFT_OUT = {
    "quoted newlines": "place (a different text in nearly every row",
    "days in either order": "sold (a different text in nearly every row",
}
"""Columns that a fit leaves out with a warning: days that may be two are texts."""

REPORTED = {
    "integers beyond 64 bits": "'people' holds whole numbers beyond 2**53",
    "mixed types": "column 'people' is text, because 24 of its first 120 values are no numbers",
}
"""Columns that are used, and what a fit says of them."""


def marked(name: str) -> Any:
    return name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.filterwarnings("ignore:.*read in the encoding")
@pytest.mark.parametrize("name", [marked(name) for name in TABLES if name != VERY_WIDE])
def test_it_is_fitted_and_predicted_or_refused(gramian: Any, tmp_path: Path, name: str) -> None:
    given = TABLES[name]
    path = given.write(tmp_path, original(3000 if "levels" in name else 120))
    model, out = tmp_path / "a.model", tmp_path / "predictions.csv"
    done = gramian(
        "fit", path, "--target", "target", "--landmarks", 50, *PLAIN_OPTIONS, "--out", model
    )
    refusal = given.refused or UNUSABLE.get(name, "")
    if refusal:
        assert done.code == 2, done.err
        (line,) = done.err.splitlines()
        assert path.name in line
        assert given.refused or refusal in line
        assert not model.exists()
        return
    assert done.code == 0, done.err
    assert LEFT_OUT.get(name, "") in done.err
    assert REPORTED.get(name, "") in done.err
    assert gramian("predict", model, path, "--out", out).code == 0
    found = as_table(out).column("prediction").to_numpy()
    table = as_table(path)
    assert len(found) == len(table)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(load(model).predict(path), found, rtol=1e-9)
    if len(table) > 1 and name not in (*SECONDS, *LEFT_OUT, *REPORTED):
        in_python = (
            KernelRidge(landmarks=50, random_state=0, **PLAIN).fit(path, "target").predict(path)
        )
        np.testing.assert_allclose(in_python, found, rtol=1e-6)
